"""Replays: the stored progress of each replay. Its events go to the topic of the branch that it fills."""

from __future__ import annotations

from tertulia.core.events import EventKind, conversation_topic
from tertulia.core.replays import Replay, ReplayState
from tertulia.core.users import Actor
from tertulia.store import access
from tertulia.store.sql import sql
from tertulia.store.transactions import Row, Tx

_COLUMNS = """
    r.id, r.source_id, r.from_round, r.to_round, r.done_round, r.cap_micros, r.spent_micros, r.state,
    r.reason, r.created_by, r.created_at
"""


def add(tx: Tx, replay: Replay, request: str) -> None:
    """Stores a replay, with the client's request as it arrived."""
    tx.execute(
        _ADD,
        id=replay.id,
        source_id=replay.source_id,
        from_round=replay.from_round,
        to_round=replay.to_round,
        done_round=replay.done_round,
        request=request,
        cap_micros=replay.cap_micros,
        spent_micros=replay.spent_micros,
        state=replay.state.value,
        reason=replay.reason,
        created_by=replay.created_by,
        created_at=replay.created_at,
    )
    _emit_changed(tx, replay)


_ADD = sql("""
    INSERT INTO replays (
        id, source_id, from_round, to_round, done_round, request, cap_micros, spent_micros, state, reason,
        created_by, created_at
    )
    VALUES (
        :id, :source_id, :from_round, :to_round, :done_round, :request, :cap_micros, :spent_micros, :state,
        :reason, :created_by, :created_at
    )
""")


def find(tx: Tx, actor: Actor, conversation_id: str) -> Replay | None:
    """The replay that fills a conversation; None for a conversation that no replay fills."""
    access.to_conversation(tx, actor, conversation_id)
    row = tx.maybe(_FIND, id=conversation_id)
    return _replay(row) if row else None


_FIND = sql(f"SELECT {_COLUMNS} FROM replays AS r WHERE r.id = :id")


def find_running(tx: Tx, replay_id: str) -> Replay | None:
    """The replay with this id, read without an actor by the engine; None once it is over."""
    row = tx.maybe(_FIND_RUNNING, id=replay_id)
    return _replay(row) if row else None


_FIND_RUNNING = sql(f"SELECT {_COLUMNS} FROM replays AS r WHERE r.id = :id AND r.state = 'running'")


def request(tx: Tx, replay_id: str) -> str:
    """The client's request as it arrived."""
    stored: str = tx.one(_REQUEST, id=replay_id).request
    return stored


_REQUEST = sql("SELECT request FROM replays WHERE id = :id")


def _replay(row: Row) -> Replay:
    return Replay(
        id=row.id,
        source_id=row.source_id,
        from_round=row.from_round,
        to_round=row.to_round,
        done_round=row.done_round,
        cap_micros=row.cap_micros,
        spent_micros=row.spent_micros,
        state=ReplayState(row.state),
        reason=row.reason,
        created_by=row.created_by,
        created_at=row.created_at,
    )


def advance(tx: Tx, replay_id: str, done_round: int, spent_micros: int) -> None:
    """Records that one more round was answered. The state is not changed, so an ended replay stays ended."""
    _emit_row(tx, tx.maybe(_ADVANCE, id=replay_id, done_round=done_round, spent_micros=spent_micros))


_ADVANCE = sql(f"""
    UPDATE replays AS r SET done_round = :done_round, spent_micros = :spent_micros
    WHERE r.id = :id RETURNING {_COLUMNS.replace("r.", "")}
""")


def end(tx: Tx, replay_id: str, state: ReplayState, reason: str = "") -> None:
    """Ends a running replay. If it has ended already, its first state and reason stay."""
    _emit_row(tx, tx.maybe(_END, id=replay_id, state=state.value, reason=reason))


_END = sql(f"""
    UPDATE replays AS r SET state = :state, reason = :reason
    WHERE r.id = :id AND r.state = 'running' RETURNING {_COLUMNS.replace("r.", "")}
""")


def abandoned(tx: Tx, before_ms: int) -> tuple[tuple[Replay, str], ...]:
    """Running replays without any turn since this time, each with its request."""
    rows = tx.execute(_ABANDONED, before=before_ms)
    return tuple((_replay(row), row.request) for row in rows)


_ABANDONED = sql(f"""
    SELECT {_COLUMNS}, r.request FROM replays AS r
    WHERE r.state = 'running' AND r.created_at < :before AND NOT EXISTS (
        SELECT 1 FROM turns AS t WHERE t.conversation_id = r.id
            AND (t.state IN ('queued', 'running') OR t.finished_at >= :before)
    ) ORDER BY r.created_at, r.id
""")


def _emit_row(tx: Tx, row: Row | None) -> None:
    if row is not None:
        _emit_changed(tx, _replay(row))


def _emit_changed(tx: Tx, replay: Replay) -> None:
    tx.emit(conversation_topic(replay.id), EventKind.CHANGED, "replay", replay.id, replay)
