"""The daily sweep of sessions: those that have been idle or have lasted too long are signed out for good."""

from __future__ import annotations

from tertulia.core.sessions import DAY_MS
from tertulia.engine.means import Means
from tertulia.store import jobs, sessions
from tertulia.store.database import Tx

KIND = "sweep_sessions"


def leave_sweep(tx: Tx, days_ahead: int = 0) -> None:
    """Once for each day, however many servers there are and however often they start."""
    day = tx.now // DAY_MS + days_ahead
    jobs.add(tx, KIND, "", key=f"{KIND}:{day}", run_at=day * DAY_MS)


async def sweep_sessions(means: Means, _: str) -> None:
    def sweep(tx: Tx) -> None:
        sessions.remove_over(tx)
        leave_sweep(tx, days_ahead=1)

    await means.db.write(sweep)
