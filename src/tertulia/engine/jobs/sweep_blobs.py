"""The sweep: bytes nobody refers to any more go, and with them the keys of jobs done long ago."""

from __future__ import annotations

from tertulia.engine.means import Means
from tertulia.store import jobs
from tertulia.store.blobs import GRACE_MS

KEYS_KEPT_MS = 30 * 86_400_000


async def sweep_blobs(means: Means, _: str) -> None:
    await means.blobs.sweep(means.clock() - GRACE_MS)
    await means.db.write(lambda tx: jobs.prune(tx, tx.now - KEYS_KEPT_MS))
