"""The blob clean-up job: deletes blobs that nothing refers to any more."""

from __future__ import annotations

from tertulia.core.jobs import SweepBlobs
from tertulia.engine.dependencies import Dependencies
from tertulia.store.blobs import GRACE_MS


async def sweep_blobs(dependencies: Dependencies, _: SweepBlobs) -> None:
    await dependencies.blobs.sweep(dependencies.clock() - GRACE_MS)
