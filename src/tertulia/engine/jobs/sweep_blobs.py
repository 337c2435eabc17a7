"""The sweep of blobs: bytes nobody refers to any more go."""

from __future__ import annotations

from tertulia.engine.dependencies import Dependencies
from tertulia.store.blobs import GRACE_MS


async def sweep_blobs(means: Dependencies, _: str) -> None:
    await means.blobs.sweep(means.clock() - GRACE_MS)
