"""Job queue: background jobs, added in the transaction that causes them and run at least once.

waiting ─▶ running ─▶ deleted, or `done` if it has a key (so that the key is never accepted again)
   ▲          │
   └── fails ─┴─▶ `aside` (dead letter) after the third attempt, with its error

Waiting jobs are served round-robin by queue: one user's thousand files do not delay another user's note.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tertulia.core.jobs import JobPayload, encode
from tertulia.store.sql import Statement, sql
from tertulia.store.transactions import Row, Tx

ATTEMPTS = 3
BACK_OFF_MS = 5_000
"""The wait before the second attempt; each further wait is six times as long."""


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    kind: str
    payload: str
    key: str | None
    queue: str
    """The queue it waits in; queues are served in turn. Empty for jobs that belong to no user."""
    attempts: int
    run_at: int
    """When it is due; while it runs, when its lease ends."""
    error: str | None


_COLUMNS = "id, kind, payload, key, queue, attempts, run_at, error"


def enqueue(
    tx: Tx, payload: JobPayload, *, key: str | None = None, queue: str = "", run_at: int | None = None
) -> bool:
    """Adds a job. Of jobs with the same key only the first is added; returns whether it was."""
    return add(tx, payload.kind, encode(payload), key=key, queue=queue, run_at=run_at)


def enqueue_once(tx: Tx, payload: JobPayload, *, queue: str = "") -> None:
    """Adds a job unless an equal one is waiting; a running one may have missed the newest change."""
    add_once(tx, payload.kind, encode(payload), queue=queue)


def add(
    tx: Tx, kind: str, payload: str, *, key: str | None = None, queue: str = "", run_at: int | None = None
) -> bool:
    """Adds a job of any kind; enqueue() does it for the kinds in core/jobs.py."""
    due = tx.now if run_at is None else run_at
    added = tx.maybe(
        _ADD, id=tx.new_id(), kind=kind, payload=payload, key=key, queue=queue, run_at=due, now=tx.now
    )
    return added is not None


_ADD = sql("""
    INSERT INTO jobs (id, kind, payload, key, queue, state, run_at, attempts, created_at)
    VALUES (:id, :kind, :payload, :key, :queue, 'waiting', :run_at, 0, :now)
    ON CONFLICT (key) DO NOTHING RETURNING id
""")


def add_once(tx: Tx, kind: str, payload: str = "", *, queue: str = "") -> None:
    """Adds a job of any kind unless an equal one is waiting; see enqueue_once()."""
    tx.execute(
        _ADD_ONCE,
        id=tx.new_id(),
        kind=kind,
        payload=payload,
        queue=queue,
        now=tx.now,
        **_split_payload(payload),
    )


def _split_payload(payload: str) -> dict[str, str]:
    """Splits a payload into its indexed start and the rest: some payloads are too long for an index."""
    return {"begins": payload[:64], "rest": payload[64:]}


_IS_EQUAL = """
    state = 'waiting' AND kind = :kind AND SUBSTR(payload, 1, 64) = :begins AND SUBSTR(payload, 65) = :rest
"""

_ADD_ONCE = sql(f"""
    INSERT INTO jobs (id, kind, payload, queue, state, run_at, attempts, created_at)
    SELECT :id, CAST(:kind AS TEXT), CAST(:payload AS TEXT), CAST(:queue AS TEXT), 'waiting',
        CAST(:now AS BIGINT), 0, CAST(:now AS BIGINT)
    WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE {_IS_EQUAL})
""")


def run_now(tx: Tx, kind: str) -> None:
    """Makes all waiting jobs of a kind due now, since the reason to wait may be gone."""
    tx.execute(_RUN_NOW, kind=kind, now=tx.now)


_RUN_NOW = sql("UPDATE jobs SET run_at = :now WHERE kind = :kind AND state = 'waiting' AND run_at > :now")


def claim(tx: Tx, node: str, lease_ms: int, *, only: str = "", but: str = "", after: str = "") -> Job | None:
    """Leases a job: one whose lease has expired, or else the longest due of the next queue after `after`.

    `only` and `but` limit it to one kind or exclude one, so that workers can divide the kinds.
    """
    statement = claiming(tx.skip_locked, only, but)
    while row := tx.maybe(statement, node=node, now=tx.now, until=tx.now + lease_ms, after=after):
        job = _job(row)
        if job.attempts <= ATTEMPTS:
            return job
        tx.execute(_SET_ASIDE, id=job.id, error=job.error or "The server stopped each time this was tried.")
    return None


@cache
def claiming(skip_locked: str, only: str, but: str) -> Statement:
    """The statement of claim(). Queues form a ring; each step reads one index entry, however many wait."""
    due = f"SELECT id FROM jobs WHERE {_kinds(only, but)} AND run_at <= :now AND"
    first = f"ORDER BY queue, run_at, id LIMIT 1 {skip_locked}"
    return sql(f"""
        UPDATE jobs SET state = 'running', node = :node, run_at = :until, attempts = attempts + 1
        WHERE id = COALESCE(
            ({due} state = 'running' {first}),
            ({due} state = 'waiting' AND queue > :after {first}),
            ({due} state = 'waiting' AND queue <= :after {first})
        )
        RETURNING {_COLUMNS}
    """)


def _kinds(only: str, but: str) -> str:
    """The kinds as literals: a partial index serves only a statement that names them, not parameters."""
    assert all(kind.isidentifier() for kind in (only, but) if kind)
    return f"kind = '{only}'" if only else f"kind <> '{but}'"


def _job(row: Row) -> Job:
    return Job(row.id, row.kind, row.payload, row.key, row.queue, row.attempts, row.run_at, row.error)


_SET_ASIDE = sql("UPDATE jobs SET state = 'aside', error = :error WHERE id = :id")


def renew(tx: Tx, job_id: str, lease_ms: int) -> None:
    """Extends the lease of a running job."""
    tx.execute(_RENEW, id=job_id, until=tx.now + lease_ms)


_RENEW = sql("UPDATE jobs SET run_at = :until WHERE id = :id AND state = 'running'")


def finish(tx: Tx, job_id: str) -> None:
    if tx.maybe(_REMOVE, id=job_id) is None:
        tx.execute(_MARK_DONE, id=job_id)


_REMOVE = sql("DELETE FROM jobs WHERE id = :id AND key IS NULL RETURNING id")

_MARK_DONE = sql("UPDATE jobs SET state = 'done' WHERE id = :id")


def fail(tx: Tx, job_id: str, error: str) -> None:
    """Records a failure: the job waits longer after each attempt and is set aside after the third."""
    row = tx.maybe(_ATTEMPTS, id=job_id)
    if row is None:
        return
    if row.attempts >= ATTEMPTS:
        tx.execute(_SET_ASIDE, id=job_id, error=error)
    else:
        wait = BACK_OFF_MS * 6 ** (row.attempts - 1)
        tx.execute(_RETRY_LATER, id=job_id, error=error, run_at=tx.now + wait)


_ATTEMPTS = sql("SELECT attempts FROM jobs WHERE id = :id AND state = 'running'")

_RETRY_LATER = sql("UPDATE jobs SET state = 'waiting', run_at = :run_at, error = :error WHERE id = :id")


def cancel(tx: Tx, payload: JobPayload) -> None:
    """Removes waiting jobs with this payload, whose subject is gone; a running one finds that out itself."""
    tx.execute(_CANCEL, kind=payload.kind, **_split_payload(encode(payload)))


_CANCEL = sql(f"DELETE FROM jobs WHERE {_IS_EQUAL}")


def free_key(tx: Tx, key: str) -> None:
    """Allows a new job with this key."""
    tx.execute(_FREE_KEY, key=key)


_FREE_KEY = sql("UPDATE jobs SET key = NULL WHERE key = :key")


def dead_jobs(tx: Tx) -> tuple[Job, ...]:
    """The jobs that failed too often (dead letters), newest first."""
    return tuple(_job(row) for row in tx.execute(_DEAD_JOBS))


_DEAD_JOBS = sql(f"SELECT {_COLUMNS} FROM jobs WHERE state = 'aside' ORDER BY run_at DESC, id DESC")


def prune(tx: Tx, before_ms: int) -> None:
    """Deletes finished jobs with keys that were added before this time."""
    tx.execute(_PRUNE, before=before_ms)


_PRUNE = sql("DELETE FROM jobs WHERE state = 'done' AND created_at < :before")
