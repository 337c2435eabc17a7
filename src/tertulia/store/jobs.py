"""Background jobs: added in the transaction that causes them, done at least once.

waiting ─▶ running ─▶ gone, or done when it has a key (so that the key is never taken again)
   ▲          │
   └── fails ─┴─▶ aside after the third time, with what went wrong

Where many wait, their queues take turns: one person's thousand files leave another's one note its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from sqlalchemy import TextClause, text

from tertulia.store.transactions import Row, Tx

ATTEMPTS = 3
BACK_OFF_MS = 5_000
"""Before the second attempt; each further wait is six times as long."""


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    kind: str
    payload: str
    key: str | None
    queue: str
    """Whose it is, among those who take turns; empty for what serves everybody."""
    attempts: int
    run_at: int
    """When it is due; while it runs, until when it is taken."""
    error: str | None


_COLUMNS = "id, kind, payload, key, queue, attempts, run_at, error"


def add(
    tx: Tx, kind: str, payload: str, *, key: str | None = None, queue: str = "", run_at: int | None = None
) -> bool:
    """Leaves a job to be done. With a key, only the first of its name is taken; says whether this was it."""
    due = tx.now if run_at is None else run_at
    added = tx.maybe(
        _ADD, id=tx.new_id(), kind=kind, payload=payload, key=key, queue=queue, run_at=due, now=tx.now
    )
    return added is not None


_ADD = text("""
    INSERT INTO jobs (id, kind, payload, key, queue, state, run_at, attempts, created_at)
    VALUES (:id, :kind, :payload, :key, :queue, 'waiting', :run_at, 0, :now)
    ON CONFLICT (key) DO NOTHING RETURNING id
""")


def add_once(tx: Tx, kind: str, payload: str = "", *, queue: str = "") -> None:
    """Leaves a job unless one just like it waits already; one that runs may have missed what is new."""
    tx.execute(
        _ADD_ONCE, id=tx.new_id(), kind=kind, payload=payload, queue=queue, now=tx.now, **_halves(payload)
    )


def _halves(payload: str) -> dict[str, str]:
    """How it begins, which is in the index, and the rest: some are longer than an index can hold."""
    return {"begins": payload[:64], "rest": payload[64:]}


_LIKE_IT = """
    state = 'waiting' AND kind = :kind AND SUBSTR(payload, 1, 64) = :begins AND SUBSTR(payload, 65) = :rest
"""

_ADD_ONCE = text(f"""
    INSERT INTO jobs (id, kind, payload, queue, state, run_at, attempts, created_at)
    SELECT :id, CAST(:kind AS TEXT), CAST(:payload AS TEXT), CAST(:queue AS TEXT), 'waiting',
        CAST(:now AS BIGINT), 0, CAST(:now AS BIGINT)
    WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE {_LIKE_IT})
""")


def hurry(tx: Tx, kind: str) -> None:
    """What waits for its time is due now: the reason to wait may be gone."""
    tx.execute(_HURRY, kind=kind, now=tx.now)


_HURRY = text("UPDATE jobs SET run_at = :now WHERE kind = :kind AND state = 'waiting' AND run_at > :now")


def claim(tx: Tx, node: str, lease_ms: int, *, only: str = "", but: str = "", after: str = "") -> Job | None:
    """Takes what another node let go of, or the job due the longest in the queue after the last one's.

    Of one kind only, or of all but one, where those who claim share the work.
    """
    statement = claiming(tx.skip_locked, only, but)
    while row := tx.maybe(statement, node=node, now=tx.now, until=tx.now + lease_ms, after=after):
        job = _job(row)
        if job.attempts <= ATTEMPTS:
            return job
        tx.execute(_SET_ASIDE, id=job.id, error=job.error or "The server stopped each time this was tried.")
    return None


@cache
def claiming(skip_locked: str, only: str, but: str) -> TextClause:
    """The queues are a ring. Each step reads one entry of an index, however many wait."""
    due = f"SELECT id FROM jobs WHERE {_kinds(only, but)} AND run_at <= :now AND"
    first = f"ORDER BY queue, run_at, id LIMIT 1 {skip_locked}"
    return text(f"""
        UPDATE jobs SET state = 'running', node = :node, run_at = :until, attempts = attempts + 1
        WHERE id = COALESCE(
            ({due} state = 'running' {first}),
            ({due} state = 'waiting' AND queue > :after {first}),
            ({due} state = 'waiting' AND queue <= :after {first})
        )
        RETURNING {_COLUMNS}
    """)


def _kinds(only: str, but: str) -> str:
    """Written out: an index of some kinds serves only a statement in which they are read, not handed in."""
    assert all(kind.isidentifier() for kind in (only, but) if kind)
    return f"kind = '{only}'" if only else f"kind <> '{but}'"


def _job(row: Row) -> Job:
    return Job(row.id, row.kind, row.payload, row.key, row.queue, row.attempts, row.run_at, row.error)


_SET_ASIDE = text("UPDATE jobs SET state = 'aside', error = :error WHERE id = :id")


def renew(tx: Tx, job_id: str, lease_ms: int) -> None:
    """Still at it."""
    tx.execute(_RENEW, id=job_id, until=tx.now + lease_ms)


_RENEW = text("UPDATE jobs SET run_at = :until WHERE id = :id AND state = 'running'")


def finish(tx: Tx, job_id: str) -> None:
    if tx.maybe(_REMOVE, id=job_id) is None:
        tx.execute(_DONE, id=job_id)


_REMOVE = text("DELETE FROM jobs WHERE id = :id AND key IS NULL RETURNING id")

_DONE = text("UPDATE jobs SET state = 'done' WHERE id = :id")


def fail(tx: Tx, job_id: str, error: str) -> None:
    """Waits longer each time; set aside after the third."""
    row = tx.maybe(_ATTEMPTS, id=job_id)
    if row is None:
        return
    if row.attempts >= ATTEMPTS:
        tx.execute(_SET_ASIDE, id=job_id, error=error)
    else:
        wait = BACK_OFF_MS * 6 ** (row.attempts - 1)
        tx.execute(_WAIT, id=job_id, error=error, run_at=tx.now + wait)


_ATTEMPTS = text("SELECT attempts FROM jobs WHERE id = :id AND state = 'running'")

_WAIT = text("UPDATE jobs SET state = 'waiting', run_at = :run_at, error = :error WHERE id = :id")


def withdraw(tx: Tx, kind: str, payload: str) -> None:
    """What it was about is gone; one that runs finds that out for itself."""
    tx.execute(_WITHDRAW, kind=kind, **_halves(payload))


_WITHDRAW = text(f"DELETE FROM jobs WHERE {_LIKE_IT}")


def free_key(tx: Tx, key: str) -> None:
    """The next job of this key is taken again."""
    tx.execute(_FREE_KEY, key=key)


_FREE_KEY = text("UPDATE jobs SET key = NULL WHERE key = :key")


def set_aside(tx: Tx) -> tuple[Job, ...]:
    """Those that failed too often, the newest first."""
    return tuple(_job(row) for row in tx.execute(_ASIDE))


_ASIDE = text(f"SELECT {_COLUMNS} FROM jobs WHERE state = 'aside' ORDER BY run_at DESC, id DESC")


def prune(tx: Tx, before_ms: int) -> None:
    """Forgets keys that were done long ago."""
    tx.execute(_PRUNE, before=before_ms)


_PRUNE = text("DELETE FROM jobs WHERE state = 'done' AND created_at < :before")
