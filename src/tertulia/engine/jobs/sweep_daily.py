"""The daily clean-up job: deletes old sessions, events, job keys and cancelled uploads."""

from __future__ import annotations

from tertulia.core.jobs import SweepDaily
from tertulia.core.sessions import DAY_MS
from tertulia.engine.dependencies import Dependencies
from tertulia.store import events, jobs, sessions, uploads
from tertulia.store.database import Tx

EVENTS_KEPT_MS = 7 * DAY_MS
"""A device that was away for longer loads everything again."""
KEYS_KEPT_MS = 30 * DAY_MS
CANCELLED_KEPT_MS = DAY_MS
EVENTS_PER_TRANSACTION = 2_000
"""Other writers wait for one transaction."""


def enqueue_sweep(tx: Tx, days_ahead: int = 0) -> None:
    """Enqueues the job once for each day, however many nodes there are and however often they start."""
    day = tx.now // DAY_MS + days_ahead
    jobs.enqueue(tx, SweepDaily(), key=f"{SweepDaily.kind}:{day}", run_at=day * DAY_MS)


async def sweep_daily(
    dependencies: Dependencies, _: SweepDaily, per_transaction: int = EVENTS_PER_TRANSACTION
) -> None:
    def sweep(tx: Tx) -> None:
        enqueue_sweep(tx, days_ahead=1)
        sessions.remove_over(tx)
        jobs.prune(tx, tx.now - KEYS_KEPT_MS)
        uploads.forget_cancelled(tx, tx.now - CANCELLED_KEPT_MS)

    await dependencies.db.write(sweep)
    while (
        await dependencies.db.write(lambda tx: events.prune(tx, tx.now - EVENTS_KEPT_MS, per_transaction))
        == per_transaction
    ):
        pass
