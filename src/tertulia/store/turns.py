"""Turns: who is answering what, and how it ended."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache

from sqlalchemy import TextClause, text

from tertulia.core.blind import veiled_turn
from tertulia.core.conversations import Visibility
from tertulia.core.errors import TurnReused
from tertulia.core.events import Kind, conversation_place
from tertulia.core.messages import Round
from tertulia.core.passages import Passage, SearchScope, united, without
from tertulia.core.plain import from_json
from tertulia.core.turns import Purpose, State, Style, Turn
from tertulia.core.users import Actor
from tertulia.store import access, events, receipts
from tertulia.store.conversations import voices
from tertulia.store.lineage import LINEAGE
from tertulia.store.messages import voice
from tertulia.store.transactions import Row, Tx, as_json

_COLUMNS = """
    t.id, t.conversation_id, t.round_number, t.purpose, t.mode, t.voices, t.visibility, t.state, t.message_id,
    t.created_by, t.created_at, t.finished_at, t.chair, t.brief, t.is_blind, t.style, t.search_scope, t.found
"""


def open(tx: Tx, turn: Turn, fingerprint: str, node: str | None = None) -> None:
    """Writes down a turn; the fingerprint tells a repeated request from another one under the same id."""
    added = tx.maybe(
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
    if added is None:
        raise TurnReused("This turn id was already used. Make a new id and send again.")
    _changed(tx, turn)


_OPEN = text("""
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


def _changed(tx: Tx, turn: Turn) -> None:
    tx.emit(conversation_place(turn.conversation_id), Kind.CHANGED, "turn", turn.id, veiled_turn(turn))


def find_opened(tx: Tx, user_id: str, turn_id: str) -> tuple[Turn, str] | None:
    """The turn a person opened under this id before, and the fingerprint of what they sent.

    Of two requests that come at once, the second waits here for the first, and then finds its turn.
    """
    tx.hold(f"turn:{turn_id}")
    row = tx.maybe(_FIND_OPENED, id=turn_id, user_id=user_id)
    return (_turn(row), row.fingerprint) if row else None


_FIND_OPENED = text(f"""
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
        state=State(row.state),
        created_by=row.created_by,
        created_at=row.created_at,
        finished_at=row.finished_at,
        message_id=row.message_id,
        chair=voice(row.chair) if row.chair else None,
        brief=row.brief,
        is_blind=bool(row.is_blind),
        style=Style(row.style),
        scope=None if row.search_scope is None else from_json(SearchScope, row.search_scope),
        found=_found(row.found),
    )


def _found(written: str) -> tuple[Passage, ...]:
    return () if written == _NOTHING else from_json(tuple[Passage, ...], written)


_NOTHING = "[]"


def get(tx: Tx, actor: Actor, turn_id: str) -> Turn:
    return _turn(tx.one(_GET, actor_id=actor.user_id, id=turn_id))


_GET = text(f"""
    SELECT {_COLUMNS} FROM turns AS t
    JOIN conversations AS c ON c.id = t.conversation_id {access.MEMBER_OF_CONVERSATION}
    WHERE t.id = :id
""")


def waiting_or_running(tx: Tx, conversation_id: str) -> tuple[Turn, ...]:
    """Those not over, in the order in which they will be answered."""
    return tuple(_turn(row) for row in tx.execute(_WAITING_OR_RUNNING, conversation_id=conversation_id))


_WAITING_OR_RUNNING = text(f"""
    SELECT {_COLUMNS} FROM turns AS t
    WHERE t.conversation_id = :conversation_id AND t.state IN ('queued', 'running')
    ORDER BY CASE t.state WHEN 'running' THEN 0 ELSE 1 END, t.round_number, t.created_at, t.id
""")


def is_inheriting(tx: Tx, conversation_id: str) -> bool:
    """Whether somebody is still answering, in a conversation it left, what this one goes on from."""
    found = tx.maybe(_INHERITING, id=conversation_id, first_round=0, last_round=_NO_LAST)
    return found is not None


_NO_LAST = 2**31

_INHERITING = text(f"""
    {LINEAGE}
    SELECT 1 FROM lineage AS l JOIN turns AS t ON t.conversation_id = l.id
        AND (t.round_number < l.last_round OR t.round_number = l.last_round AND l.only_id IS NULL)
    WHERE l.id <> :id AND t.state IN ('queued', 'running') LIMIT 1
""")


def of_rounds(tx: Tx, rounds: Sequence[Round]) -> tuple[Turn, ...]:
    """Those that the messages of these rounds were written in, also before the branch, the oldest first."""
    ids = sorted({message.turn_id for round_ in rounds for message in round_.messages})
    rows = tx.execute(_of_rounds(tx.words.among), ids=tx.words.many(ids))
    return tuple(_turn(row) for row in rows)


@cache
def _of_rounds(among: str) -> TextClause:
    return text(f"""
        SELECT {_COLUMNS} FROM turns AS t WHERE {among.format(column="t.id", name="ids")}
        ORDER BY t.round_number, t.created_at, t.id
    """)


def reveal(tx: Tx, conversation_ids: Sequence[str], number: int) -> tuple[Turn, ...]:
    """Those of a round that were blind until now; who calls this tells of them."""
    rows = tx.execute(_reveal(tx.words.among), ids=tx.words.many(conversation_ids), number=number)
    return tuple(_turn(row) for row in rows)


@cache
def _reveal(among: str) -> TextClause:
    return text(f"""
        UPDATE turns AS t SET is_blind = FALSE
        WHERE {among.format(column="t.conversation_id", name="ids")}
            AND t.round_number = :number AND t.is_blind
        RETURNING {_COLUMNS.replace("t.", "")}
    """)


# ── what was found for a question


def add_found(tx: Tx, turn_id: str, passages: Sequence[Passage]) -> Turn | None:
    """Adds what one voice was sent to what the others were; says something only when that is new.

    None: there is nothing new, or the turn is gone.
    """
    row = tx.maybe(_FOUND_BY, id=turn_id)
    if row is None:
        return None
    known = _found(row.found)
    found = united(known, passages)
    return _set_found(tx, turn_id, found) if found != known else None


def _set_found(tx: Tx, turn_id: str, found: Sequence[Passage]) -> Turn:
    turn = _turn(tx.one(_SET_FOUND, id=turn_id, found=as_json(tuple(found))))
    _changed(tx, turn)
    return turn


_FOUND_BY = text("UPDATE turns SET found = found WHERE id = :id RETURNING found")  # the others wait for it

_SET_FOUND = text(f"""
    UPDATE turns AS t SET found = :found WHERE t.id = :id RETURNING {_COLUMNS.replace("t.", "")}
""")


def forget_found(tx: Tx, turn_ids: Sequence[str], source_ids: Collection[str]) -> None:
    """Some sources were deleted: these turns do not name them any more, nor do the events that told of it."""
    for id in turn_ids:
        row = tx.maybe(_FOUND_BY, id=id)
        known = _found(row.found) if row else ()
        left = without(known, source_ids)
        if left != known:
            turn = _set_found(tx, id, left)
            place = conversation_place(turn.conversation_id)
            events.rewrite(tx, place, "turn", id, as_json(veiled_turn(turn)))


def naming(tx: Tx, conversation_id: str, source_ids: Collection[str]) -> tuple[str, ...]:
    """Ids of the turns of a conversation that found one of these sources."""
    rows = tx.execute(_WITH_FOUND, conversation_id=conversation_id)
    return tuple(row.id for row in rows if any(one.source_id in source_ids for one in _found(row.found)))


_WITH_FOUND = text("""
    SELECT id, found FROM turns WHERE conversation_id = :conversation_id AND found <> '[]' ORDER BY id
""")


@dataclass(frozen=True, slots=True)
class FoundGone:
    """What some turns name as found, though it was deleted since."""

    turn_ids: tuple[str, ...]
    source_ids: frozenset[str]
    next: str | None
    """After which turn to go on; None after the last."""


def found_gone(tx: Tx, project_id: str, after: str) -> FoundGone:
    """Of the next turns of a project that found something."""
    rows = tx.execute(_FOUND_IN_PROJECT, project_id=project_id, after=after, limit=_AT_ONCE)
    named = {row.id: {one.source_id for one in _found(row.found)} for row in rows}
    ids = frozenset(id for ids in named.values() for id in ids)
    gone = ids - receipts.still_there(tx, ids)
    naming = tuple(turn_id for turn_id, ids in named.items() if not gone.isdisjoint(ids))
    return FoundGone(naming, gone, rows[-1].id if len(rows) == _AT_ONCE else None)


_AT_ONCE = 200

_FOUND_IN_PROJECT = text("""
    SELECT t.id, t.found FROM turns AS t JOIN conversations AS c ON c.id = t.conversation_id
    WHERE c.project_id = :project_id AND t.found <> '[]' AND t.id > :after ORDER BY t.id LIMIT :limit
""")


def count_unfinished(tx: Tx, user_id: str) -> int:
    number: int = tx.one(_COUNT_UNFINISHED, user_id=user_id).number
    return number


_COUNT_UNFINISHED = text("""
    SELECT COUNT(*) AS number FROM turns WHERE created_by = :user_id AND state IN ('queued', 'running')
""")


def set_state(tx: Tx, turn_id: str, state: State) -> Turn:
    """Moves a turn on. One that is over stays as it ended."""
    row = tx.maybe(_SET_STATE, id=turn_id, state=state.value, finished_at=tx.now if state.is_over else None)
    if row is None:
        return _turn(tx.one(_READ, id=turn_id))
    turn = _turn(row)
    _changed(tx, turn)
    return turn


_SET_STATE = text(f"""
    UPDATE turns AS t SET state = :state, finished_at = :finished_at
    WHERE t.id = :id AND t.state IN ('queued', 'running') RETURNING {_COLUMNS.replace("t.", "")}
""")

_READ = text(f"SELECT {_COLUMNS} FROM turns AS t WHERE t.id = :id")


def unfinished(tx: Tx) -> tuple[Turn, ...]:
    """Every turn that is not over, the oldest first."""
    return tuple(_turn(row) for row in tx.execute(_UNFINISHED))


_UNFINISHED = text(f"""
    SELECT {_COLUMNS} FROM turns AS t WHERE t.state IN ('queued', 'running') ORDER BY t.created_at, t.id
""")


def beat(tx: Tx, node: str | None = None) -> None:
    """A node, this one unless told otherwise, is alive, and so are its turns."""
    tx.execute(_BEAT, node=node or tx.node, now=tx.now)


_BEAT = text("""
    UPDATE turns SET heartbeat_at = :now WHERE node = :node AND state IN ('queued', 'running')
""")


def abandoned(tx: Tx, before_ms: int) -> tuple[Turn, ...]:
    """Unfinished turns whose node has not been heard of since."""
    return tuple(_turn(row) for row in tx.execute(_ABANDONED, before=before_ms))


_ABANDONED = text(f"""
    SELECT {_COLUMNS} FROM turns AS t
    WHERE t.state IN ('queued', 'running') AND t.heartbeat_at < :before ORDER BY t.created_at, t.id
""")


def take_over(tx: Tx, turn_id: str, before_ms: int) -> bool:
    """Makes an abandoned turn this node's own; of several that try at once, one does."""
    return tx.maybe(_TAKE_OVER, id=turn_id, before=before_ms, node=tx.node, now=tx.now) is not None


_TAKE_OVER = text("""
    UPDATE turns SET node = :node, heartbeat_at = :now
    WHERE id = :id AND state IN ('queued', 'running') AND heartbeat_at < :before RETURNING id
""")


def keep(tx: Tx, turn_id: str) -> None:
    """From here to the commit nobody takes it over; raises NotFound when someone has."""
    tx.one(_KEEP, id=turn_id, node=tx.node, now=tx.now)


_KEEP = text("UPDATE turns SET heartbeat_at = :now WHERE id = :id AND node = :node RETURNING id")


def must_wait(tx: Tx, turn: Turn) -> bool:
    """Whether another node runs a turn of this conversation, or has an earlier round of it in its queue."""
    found = tx.maybe(
        _BEFORE,
        conversation_id=turn.conversation_id,
        node=tx.node,
        number=turn.round_number,
        ask=Purpose.ASK.value,
        summary=Purpose.SUMMARY.value,
    )
    return found is not None


_BEFORE = text("""
    SELECT id FROM turns
    WHERE conversation_id = :conversation_id AND node <> :node AND (
        state = 'running'
        OR state = 'queued' AND purpose IN (:ask, :summary) AND round_number < :number
    )
    LIMIT 1
""")


def has_company(tx: Tx, turn: Turn) -> bool:
    """Whether other turns answer the same round, here or in a conversation this one left; or the turn that
    would go on with it was stopped since this one was opened."""
    number = turn.round_number
    found = tx.maybe(
        _COMPANY,
        id=turn.conversation_id,
        first_round=number,
        last_round=number,
        turn_id=turn.id,
        since=turn.created_at,
        ask=Purpose.ASK.value,
        synthesis=Purpose.SYNTHESIS.value,
    )
    return found is not None


_COMPANY = text(f"""
    {LINEAGE}
    SELECT 1 FROM lineage AS l JOIN turns AS t ON t.conversation_id = l.id AND t.round_number = :first_round
    WHERE l.only_id IS NULL AND t.id <> :turn_id AND (
        t.state IN ('queued', 'running')
        OR t.state = 'stopped' AND t.purpose IN (:ask, :synthesis) AND t.finished_at >= :since
    )
    LIMIT 1
""")


def is_here(tx: Tx, turn_id: str) -> bool:
    """Whether it is this node's."""
    return tx.maybe(_IS_HERE, id=turn_id, node=tx.node) is not None


_IS_HERE = text("SELECT 1 FROM turns WHERE id = :id AND node = :node")


def elsewhere(tx: Tx) -> tuple[Turn, ...]:
    """Those that other nodes run or have in line."""
    return tuple(_turn(row) for row in tx.execute(_RUN_ELSEWHERE, node=tx.node))


_RUN_ELSEWHERE = text(f"""
    SELECT {_COLUMNS} FROM turns AS t WHERE t.state IN ('queued', 'running') AND t.node <> :node
""")


def find(tx: Tx, turn_id: str) -> Turn | None:
    """For who runs or mirrors it; it may be gone with its conversation."""
    row = tx.maybe(_READ, id=turn_id)
    return _turn(row) if row else None


def next_round(tx: Tx, conversation_id: str) -> int:
    """Takes the next round's number. Whoever else wants one waits until this transaction is over."""
    number: int = tx.one(_NEXT_ROUND, id=conversation_id, now=tx.now).round_count
    return number


_NEXT_ROUND = text("""
    UPDATE conversations SET round_count = round_count + 1, updated_at = :now WHERE id = :id
    RETURNING round_count
""")
