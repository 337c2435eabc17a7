"""Turns: the rows of all turns with their states, nodes and heartbeats."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache

from tertulia.core.blind import anonymised_turn
from tertulia.core.conversations import Visibility
from tertulia.core.errors import TurnReused
from tertulia.core.events import EventKind, conversation_topic
from tertulia.core.messages import Round
from tertulia.core.passages import Passage, SearchScope, united, without
from tertulia.core.serialization import from_json
from tertulia.core.turns import Purpose, Style, Turn, TurnState
from tertulia.core.users import Actor
from tertulia.store import access, events, receipts
from tertulia.store.column_values import as_json
from tertulia.store.conversations import voices
from tertulia.store.lineage import LINEAGE
from tertulia.store.messages import voice
from tertulia.store.sql import Statement, sql
from tertulia.store.transactions import Row, Tx

_COLUMNS = """
    t.id, t.conversation_id, t.round_number, t.purpose, t.mode, t.voices, t.visibility, t.state, t.message_id,
    t.created_by, t.created_at, t.finished_at, t.chair, t.brief, t.is_blind, t.style, t.search_scope, t.found
"""


def open(tx: Tx, turn: Turn, fingerprint: str, node: str | None = None) -> None:
    """Stores a new turn.

    The request fingerprint distinguishes a repeated request from a different one with the same id.
    """
    row = tx.maybe(
        _OPEN,
        id=turn.id,
        conversation_id=turn.conversation_id,
        round_number=turn.round_number,
        purpose=turn.purpose.value,
        mode=turn.mode,
        voices=as_json(turn.table),
        visibility=turn.visibility.value,
        state=turn.state.value,
        message_id=turn.message_id,
        fingerprint=fingerprint,
        node=node or tx.node,
        heartbeat_at=tx.now,
        created_by=turn.created_by,
        created_at=turn.created_at,
        finished_at=turn.finished_at,
        chair=None if turn.chair is None else as_json(turn.chair),
        brief=turn.brief,
        is_blind=turn.is_blind,
        style=turn.style.value,
        search_scope=None if turn.scope is None else as_json(turn.scope),
        found=as_json(turn.found),
    )
    if row is None:
        raise TurnReused("This turn id was already used. Make a new id and send again.")
    _emit_changed(tx, turn)


_OPEN = sql("""
    INSERT INTO turns (
        id, conversation_id, round_number, purpose, mode, voices, visibility, state, message_id, fingerprint,
        node, heartbeat_at, created_by, created_at, finished_at, chair, brief, is_blind, style,
        search_scope, found
    )
    VALUES (
        :id, :conversation_id, :round_number, :purpose, :mode, :voices, :visibility, :state, :message_id,
        :fingerprint, :node, :heartbeat_at, :created_by, :created_at, :finished_at, :chair, :brief,
        :is_blind, :style, :search_scope, :found
    )
    ON CONFLICT (id) DO NOTHING RETURNING id
""")


def _emit_changed(tx: Tx, turn: Turn) -> None:
    tx.emit(
        conversation_topic(turn.conversation_id), EventKind.CHANGED, "turn", turn.id, anonymised_turn(turn)
    )


def find_opened(tx: Tx, user_id: str, turn_id: str) -> tuple[Turn, str] | None:
    """The turn that a user opened under this id before, and its request fingerprint.

    Of two simultaneous requests, the second waits here for the first, and then finds its turn.
    """
    tx.lock(f"turn:{turn_id}")
    row = tx.maybe(_FIND_OPENED, id=turn_id, user_id=user_id)
    return (_turn(row), row.fingerprint) if row else None


_FIND_OPENED = sql(f"""
    SELECT {_COLUMNS}, t.fingerprint FROM turns AS t WHERE t.id = :id AND t.created_by = :user_id
""")


def _turn(row: Row) -> Turn:
    return Turn(
        id=row.id,
        conversation_id=row.conversation_id,
        round_number=row.round_number,
        purpose=Purpose(row.purpose),
        mode=row.mode,
        table=voices(row.voices),
        visibility=Visibility(row.visibility),
        state=TurnState(row.state),
        created_by=row.created_by,
        created_at=row.created_at,
        finished_at=row.finished_at,
        message_id=row.message_id,
        chair=voice(row.chair) if row.chair else None,
        brief=row.brief,
        is_blind=bool(row.is_blind),
        style=Style(row.style),
        scope=None if row.search_scope is None else from_json(SearchScope, row.search_scope),
        found=_parse_passages(row.found),
    )


def _parse_passages(json_text: str) -> tuple[Passage, ...]:
    return () if json_text == _NO_PASSAGES else from_json(tuple[Passage, ...], json_text)


_NO_PASSAGES = "[]"


def get(tx: Tx, actor: Actor, turn_id: str) -> Turn:
    return _turn(tx.one(_GET, actor_id=actor.user_id, id=turn_id))


_GET = sql(f"""
    SELECT {_COLUMNS} FROM turns AS t
    JOIN conversations AS c ON c.id = t.conversation_id {access.MEMBER_OF_CONVERSATION}
    WHERE t.id = :id
""")


def waiting_or_running(tx: Tx, conversation_id: str) -> tuple[Turn, ...]:
    """The unfinished turns of a conversation, in the order in which they are answered."""
    return tuple(_turn(row) for row in tx.execute(_WAITING_OR_RUNNING, conversation_id=conversation_id))


_WAITING_OR_RUNNING = sql(f"""
    SELECT {_COLUMNS} FROM turns AS t
    WHERE t.conversation_id = :conversation_id AND t.state IN ('queued', 'running')
    ORDER BY CASE t.state WHEN 'running' THEN 0 ELSE 1 END, t.round_number, t.created_at, t.id
""")


def is_inheriting(tx: Tx, conversation_id: str) -> bool:
    """Whether a round that a branch inherits is still being answered in one of its ancestors."""
    row = tx.maybe(_INHERITING, id=conversation_id, first_round=0, last_round=_NO_LAST_ROUND)
    return row is not None


_NO_LAST_ROUND = 2**31

_INHERITING = sql(f"""
    {LINEAGE}
    SELECT 1 FROM lineage AS l JOIN turns AS t ON t.conversation_id = l.id
        AND (t.round_number < l.last_round OR t.round_number = l.last_round AND l.only_id IS NULL)
    WHERE l.id <> :id AND t.state IN ('queued', 'running') LIMIT 1
""")


def of_rounds(tx: Tx, rounds: Sequence[Round]) -> tuple[Turn, ...]:
    """The turns that wrote the messages of these rounds, inherited rounds included, oldest first."""
    ids = sorted({message.turn_id for round_ in rounds for message in round_.messages})
    rows = tx.execute(_select_of_rounds(tx.text_index.in_list), ids=tx.text_index.list_param(ids))
    return tuple(_turn(row) for row in rows)


@cache
def _select_of_rounds(in_list: str) -> Statement:
    return sql(f"""
        SELECT {_COLUMNS} FROM turns AS t WHERE {in_list.format(column="t.id", name="ids")}
        ORDER BY t.round_number, t.created_at, t.id
    """)


def reveal(tx: Tx, conversation_ids: Sequence[str], number: int) -> tuple[Turn, ...]:
    """Makes the blind turns of a round visible and returns them. The caller emits their events."""
    rows = tx.execute(
        _reveal_rounds(tx.text_index.in_list), ids=tx.text_index.list_param(conversation_ids), number=number
    )
    return tuple(_turn(row) for row in rows)


@cache
def _reveal_rounds(in_list: str) -> Statement:
    return sql(f"""
        UPDATE turns AS t SET is_blind = FALSE
        WHERE {in_list.format(column="t.conversation_id", name="ids")}
            AND t.round_number = :number AND t.is_blind
        RETURNING {_COLUMNS.replace("t.", "")}
    """)


# ── passages found for a question


def add_found(tx: Tx, turn_id: str, passages: Sequence[Passage]) -> Turn | None:
    """Adds the passages that were sent to one voice to the passages of the turn.

    Returns None and emits nothing if there is no new passage or the turn was deleted.
    """
    row = tx.maybe(_LOCK_PASSAGES, id=turn_id)
    if row is None:
        return None
    stored = _parse_passages(row.found)
    all_passages = united(stored, passages)
    return _save_passages(tx, turn_id, all_passages) if all_passages != stored else None


def _save_passages(tx: Tx, turn_id: str, passages: Sequence[Passage]) -> Turn:
    turn = _turn(tx.one(_SAVE_PASSAGES, id=turn_id, found=as_json(tuple(passages))))
    _emit_changed(tx, turn)
    return turn


_LOCK_PASSAGES = sql("UPDATE turns SET found = found WHERE id = :id RETURNING found")  # locks the row

_SAVE_PASSAGES = sql(f"""
    UPDATE turns AS t SET found = :found WHERE t.id = :id RETURNING {_COLUMNS.replace("t.", "")}
""")


def forget_found(tx: Tx, turn_ids: Sequence[str], source_ids: Collection[str]) -> None:
    """Removes passages of deleted sources from these turns, and from the events that showed them."""
    for id in turn_ids:
        row = tx.maybe(_LOCK_PASSAGES, id=id)
        stored = _parse_passages(row.found) if row else ()
        remaining = without(stored, source_ids)
        if remaining != stored:
            turn = _save_passages(tx, id, remaining)
            topic = conversation_topic(turn.conversation_id)
            events.rewrite(tx, topic, "turn", id, as_json(anonymised_turn(turn)))


def naming(tx: Tx, conversation_id: str, source_ids: Collection[str]) -> tuple[str, ...]:
    """The ids of a conversation's turns with passages of these sources."""
    rows = tx.execute(_WITH_PASSAGES, conversation_id=conversation_id)
    return tuple(
        row.id
        for row in rows
        if any(passage.source_id in source_ids for passage in _parse_passages(row.found))
    )


_WITH_PASSAGES = sql("""
    SELECT id, found FROM turns WHERE conversation_id = :conversation_id AND found <> '[]' ORDER BY id
""")


@dataclass(frozen=True, slots=True)
class StalePassages:
    """Turns with passages of sources that were deleted since."""

    turn_ids: tuple[str, ...]
    source_ids: frozenset[str]
    next: str | None
    """The turn id to continue after; None after the last turn."""


def found_gone(tx: Tx, project_id: str, after: str) -> StalePassages:
    """The stale passages among the next turns of a project that have passages."""
    rows = tx.execute(_NEXT_WITH_PASSAGES, project_id=project_id, after=after, limit=_BATCH)
    by_turn = {row.id: {passage.source_id for passage in _parse_passages(row.found)} for row in rows}
    ids = frozenset(id for ids in by_turn.values() for id in ids)
    deleted_ids = ids - receipts.existing_sources(tx, ids)
    turn_ids = tuple(turn_id for turn_id, ids in by_turn.items() if not deleted_ids.isdisjoint(ids))
    return StalePassages(turn_ids, deleted_ids, rows[-1].id if len(rows) == _BATCH else None)


_BATCH = 200

_NEXT_WITH_PASSAGES = sql("""
    SELECT t.id, t.found FROM turns AS t JOIN conversations AS c ON c.id = t.conversation_id
    WHERE c.project_id = :project_id AND t.found <> '[]' AND t.id > :after ORDER BY t.id LIMIT :limit
""")


def count_unfinished(tx: Tx, user_id: str) -> int:
    number: int = tx.one(_COUNT_UNFINISHED, user_id=user_id).number
    return number


_COUNT_UNFINISHED = sql("""
    SELECT COUNT(*) AS number FROM turns WHERE created_by = :user_id AND state IN ('queued', 'running')
""")


def set_state(tx: Tx, turn_id: str, state: TurnState) -> Turn:
    """Sets the state of a turn. A finished turn keeps its state."""
    row = tx.maybe(_SET_STATE, id=turn_id, state=state.value, finished_at=tx.now if state.is_over else None)
    if row is None:
        return _turn(tx.one(_READ, id=turn_id))
    turn = _turn(row)
    _emit_changed(tx, turn)
    return turn


_SET_STATE = sql(f"""
    UPDATE turns AS t SET state = :state, finished_at = :finished_at
    WHERE t.id = :id AND t.state IN ('queued', 'running') RETURNING {_COLUMNS.replace("t.", "")}
""")

_READ = sql(f"SELECT {_COLUMNS} FROM turns AS t WHERE t.id = :id")


def unfinished(tx: Tx) -> tuple[Turn, ...]:
    """All unfinished turns, oldest first."""
    return tuple(_turn(row) for row in tx.execute(_UNFINISHED))


_UNFINISHED = sql(f"""
    SELECT {_COLUMNS} FROM turns AS t WHERE t.state IN ('queued', 'running') ORDER BY t.created_at, t.id
""")


def beat(tx: Tx, node: str | None = None) -> None:
    """Records a heartbeat for all unfinished turns of a node; of this node by default."""
    tx.execute(_BEAT, node=node or tx.node, now=tx.now)


_BEAT = sql("""
    UPDATE turns SET heartbeat_at = :now WHERE node = :node AND state IN ('queued', 'running')
""")


def abandoned(tx: Tx, before_ms: int) -> tuple[Turn, ...]:
    """Unfinished turns whose node has sent no heartbeat since this time."""
    return tuple(_turn(row) for row in tx.execute(_ABANDONED, before=before_ms))


_ABANDONED = sql(f"""
    SELECT {_COLUMNS} FROM turns AS t
    WHERE t.state IN ('queued', 'running') AND t.heartbeat_at < :before ORDER BY t.created_at, t.id
""")


def take_over(tx: Tx, turn_id: str, before_ms: int) -> bool:
    """Makes an abandoned turn this node's own. Returns False if another node was faster."""
    return tx.maybe(_TAKE_OVER, id=turn_id, before=before_ms, node=tx.node, now=tx.now) is not None


_TAKE_OVER = sql("""
    UPDATE turns SET node = :node, heartbeat_at = :now
    WHERE id = :id AND state IN ('queued', 'running') AND heartbeat_at < :before RETURNING id
""")


def assert_owned(tx: Tx, turn_id: str) -> None:
    """Raises NotFound if another node has taken the turn over; otherwise none can until the commit."""
    tx.one(_ASSERT_OWNED, id=turn_id, node=tx.node, now=tx.now)


_ASSERT_OWNED = sql("UPDATE turns SET heartbeat_at = :now WHERE id = :id AND node = :node RETURNING id")


def must_wait(tx: Tx, turn: Turn) -> bool:
    """Whether another node runs a turn of this conversation, or queues an earlier round of it."""
    row = tx.maybe(
        _BLOCKING,
        conversation_id=turn.conversation_id,
        node=tx.node,
        number=turn.round_number,
        ask=Purpose.ASK.value,
        summary=Purpose.SUMMARY.value,
    )
    return row is not None


_BLOCKING = sql("""
    SELECT id FROM turns
    WHERE conversation_id = :conversation_id AND node <> :node AND (
        state = 'running'
        OR state = 'queued' AND purpose IN (:ask, :summary) AND round_number < :number
    )
    LIMIT 1
""")


def has_company(tx: Tx, turn: Turn) -> bool:
    """Whether other turns answer the same round, in this conversation or an ancestor.

    True too if an ask or synthesis of the round was stopped since this turn was opened.
    """
    number = turn.round_number
    row = tx.maybe(
        _OTHERS_OF_ROUND,
        id=turn.conversation_id,
        first_round=number,
        last_round=number,
        turn_id=turn.id,
        since=turn.created_at,
        ask=Purpose.ASK.value,
        synthesis=Purpose.SYNTHESIS.value,
    )
    return row is not None


_OTHERS_OF_ROUND = sql(f"""
    {LINEAGE}
    SELECT 1 FROM lineage AS l JOIN turns AS t ON t.conversation_id = l.id AND t.round_number = :first_round
    WHERE l.only_id IS NULL AND t.id <> :turn_id AND (
        t.state IN ('queued', 'running')
        OR t.state = 'stopped' AND t.purpose IN (:ask, :synthesis) AND t.finished_at >= :since
    )
    LIMIT 1
""")


def is_here(tx: Tx, turn_id: str) -> bool:
    """Whether this node owns the turn."""
    return tx.maybe(_IS_HERE, id=turn_id, node=tx.node) is not None


_IS_HERE = sql("SELECT 1 FROM turns WHERE id = :id AND node = :node")


def owned_by_other_nodes(tx: Tx) -> tuple[Turn, ...]:
    """The turns that other nodes run or queue."""
    return tuple(_turn(row) for row in tx.execute(_OF_OTHER_NODES, node=tx.node))


_OF_OTHER_NODES = sql(f"""
    SELECT {_COLUMNS} FROM turns AS t WHERE t.state IN ('queued', 'running') AND t.node <> :node
""")


def find(tx: Tx, turn_id: str) -> Turn | None:
    """The turn with this id, read without an actor by nodes that run or mirror it; None if it was deleted."""
    row = tx.maybe(_READ, id=turn_id)
    return _turn(row) if row else None


def next_round(tx: Tx, conversation_id: str) -> int:
    """Reserves the next round number. Other transactions that want one wait until this one ends."""
    number: int = tx.one(_NEXT_ROUND, id=conversation_id, now=tx.now).round_count
    return number


_NEXT_ROUND = sql("""
    UPDATE conversations SET round_count = round_count + 1, updated_at = :now WHERE id = :id
    RETURNING round_count
""")
