"""The sweep of blobs: bytes nobody refers to any more go."""

from __future__ import annotations

from tertulia.engine.dependencies import Dependencies
from tertulia.store.blobs import GRACE_MS


async def sweep_blobs(dependencies: Dependencies, _: str) -> None:
    await dependencies.blobs.sweep(dependencies.clock() - GRACE_MS)
