"""Messages: written once, read through the lineage of branches.

A branch copies nothing. It reads its parent's rounds before the branch point and, of the round at that point,
the question with all replies or with the one reply it branched from. `history` reads up this lineage, `heirs`
looks down it; nothing else needs to know.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import groupby

from sqlalchemy import TextClause, text

from tertulia.core.attachments import Attachment
from tertulia.core.blind import veiled_message
from tertulia.core.errors import NotFound
from tertulia.core.events import Kind, conversation_place
from tertulia.core.findings import Findings
from tertulia.core.messages import (
    Failure,
    Message,
    Quote,
    ReadReply,
    Role,
    Round,
    Status,
    Step,
    Thinking,
    Usage,
)
from tertulia.core.plain import from_json
from tertulia.core.users import Actor
from tertulia.core.voices import Voice
from tertulia.store import access
from tertulia.store.lineage import LINEAGE
from tertulia.store.transactions import GONE, Row, Tx, as_json

ROUNDS_LIMIT = 100


@dataclass(frozen=True, slots=True)
class RoundPage:
    rounds: tuple[Round, ...]
    """Oldest first."""
    next_before: int | None
    """Ask for the rounds before this one to go further back; None at the beginning."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a message is made of besides its text."""

    thinking: Thinking | None = None
    attachments: tuple[Attachment, ...] = ()
    quotes: tuple[Quote, ...] = ()
    findings: Findings | None = None


@dataclass(frozen=True, slots=True)
class _Metadata:
    """How a message came to be."""

    usage: Usage | None = None
    failure: Failure | None = None
    step: Step = Step.ANSWER
    brings_id: str | None = None
    read_replies: tuple[ReadReply, ...] = ()


_COLUMNS = """
    m.id, m.conversation_id, m.round_number, m.turn_id, m.speaker, m.role, m.content, m.parts, m.voice,
    m.reply_to_id, m.critique_of_id, m.replaces_id, m.status, m.metadata, m.created_by, m.created_at
"""


def add(tx: Tx, message: Message) -> None:
    voice = message.voice
    tx.execute(
        _ADD,
        id=message.id,
        conversation_id=message.conversation_id,
        round_number=message.round_number,
        turn_id=message.turn_id,
        speaker=message.speaker,
        role=message.role.value,
        content=message.content,
        parts=_parts(message),
        voice=None if voice is None else as_json(voice),
        persona_id=None if voice is None else voice.persona_id,
        model_id=None if voice is None else voice.model,
        reply_to_id=message.reply_to_id,
        critique_of_id=message.critique_of_id,
        replaces_id=message.replaces_id,
        status=message.status.value,
        metadata=_metadata(message),
        created_by=message.created_by,
        created_at=message.created_at,
    )
    tell(tx, message)


def tell(tx: Tx, message: Message) -> None:
    """Says wherever a message is seen what it is."""
    told = veiled_message(message) if _is_hidden(tx, message) else message
    for place in places(tx, message):
        tx.emit(place, Kind.CHANGED, "message", message.id, told)


def _is_hidden(tx: Tx, message: Message) -> bool:
    if message.voice is None or not message.voice.letter:
        return False
    return bool(tx.one(_IS_BLIND, id=message.turn_id).is_blind)


_IS_BLIND = text("SELECT is_blind FROM turns WHERE id = :id")

_ADD = text("""
    INSERT INTO conversation_messages (
        id, conversation_id, round_number, turn_id, speaker, role, content, parts, voice, persona_id,
        model_id, reply_to_id, critique_of_id, replaces_id, status, metadata, created_by, created_at
    )
    VALUES (
        :id, :conversation_id, :round_number, :turn_id, :speaker, :role, :content, :parts, :voice,
        :persona_id, :model_id, :reply_to_id, :critique_of_id, :replaces_id, :status, :metadata,
        :created_by, :created_at
    )
""")


def _parts(message: Message) -> str | None:
    parts = _Parts(message.thinking, message.attachments, message.quotes, message.findings)
    return None if parts == _NO_PARTS else as_json(parts)


def _metadata(message: Message) -> str | None:
    metadata = _Metadata(
        message.usage, message.failure, message.step, message.brings_id, message.read_replies
    )
    return None if metadata == _NO_METADATA else as_json(metadata)


def get(tx: Tx, actor: Actor, message_id: str) -> Message:
    return _message(tx.one(_GET, actor_id=actor.user_id, id=message_id))


def find(tx: Tx, actor: Actor, message_id: str) -> Message | None:
    row = tx.maybe(_GET, actor_id=actor.user_id, id=message_id)
    return _message(row) if row else None


_FROM_SEEN = f"""
    SELECT {_COLUMNS} FROM conversation_messages AS m
    JOIN conversations AS c ON c.id = m.conversation_id {access.MEMBER_OF_CONVERSATION}
"""
_GET = text(f"{_FROM_SEEN} WHERE m.id = :id")


def find_some(tx: Tx, actor: Actor, ids: Collection[str]) -> tuple[Message, ...]:
    """Those of them that are there."""
    if not ids:
        return ()
    rows = tx.execute(_find_some(tx.words.among), actor_id=actor.user_id, ids=tx.words.many(sorted(ids)))
    return tuple(map(_message, rows))


@cache
def _find_some(among: str) -> TextClause:
    return text(f"{_FROM_SEEN} WHERE {among.format(column='m.id', name='ids')} ORDER BY m.id")


def _message(row: Row) -> Message:
    parts = from_json(_Parts, row.parts) if row.parts else _NO_PARTS
    metadata = _known_metadata(row.metadata) if row.metadata else _NO_METADATA
    return Message(
        id=row.id,
        conversation_id=row.conversation_id,
        round_number=row.round_number,
        turn_id=row.turn_id,
        speaker=row.speaker,
        role=Role(row.role),
        content=row.content,
        status=Status(row.status),
        created_by=row.created_by,
        created_at=row.created_at,
        voice=voice(row.voice) if row.voice else None,
        thinking=parts.thinking,
        usage=metadata.usage,
        failure=metadata.failure,
        reply_to_id=row.reply_to_id,
        critique_of_id=row.critique_of_id,
        replaces_id=row.replaces_id,
        attachments=parts.attachments,
        step=metadata.step,
        findings=parts.findings,
        quotes=parts.quotes,
        brings_id=metadata.brings_id,
        read_replies=metadata.read_replies,
    )


_NO_PARTS = _Parts()
_NO_METADATA = _Metadata()


@lru_cache(maxsize=4096)
def _known_metadata(written: str) -> _Metadata:
    """A turn reads mostly what the turn before has read."""
    return from_json(_Metadata, written)


@lru_cache(maxsize=1024)
def voice(written: str) -> Voice:
    """The same few voices speak again and again."""
    return from_json(Voice, written)


def page(
    tx: Tx, actor: Actor, conversation_id: str, *, before: int | None = None, limit: int = 5
) -> RoundPage:
    """The last rounds, or the last before one."""
    count: int = tx.one(_ROUND_COUNT, actor_id=actor.user_id, id=conversation_id).round_count
    end = count + 1 if before is None else max(1, min(before, count + 1))
    limit = max(1, min(limit, ROUNDS_LIMIT))
    rounds = history(tx, conversation_id, before_round=end, rounds=limit)
    first = end - limit
    return RoundPage(rounds, first if first > 1 else None)


_ROUND_COUNT = text(f"""
    SELECT c.round_count FROM conversations AS c {access.MEMBER_OF_CONVERSATION} WHERE c.id = :id
""")


def round(tx: Tx, conversation_id: str, number: int) -> Round:
    found = history(tx, conversation_id, before_round=number + 1, rounds=1)
    if not found:
        raise NotFound(GONE)
    return found[0]


def newest_version(tx: Tx, message: Message) -> str | None:
    """Of the reply that this one replaces, the version that its conversation shows now."""
    newest = message.replaces_id
    by_replaced = {m.replaces_id: m.id for m in of_round(tx, message.conversation_id, message.round_number)}
    while newest is not None and (newer := by_replaced.get(newest)) not in (None, message.id):
        newest = newer
    return newest


def history(tx: Tx, conversation_id: str, *, before_round: int, rounds: int) -> tuple[Round, ...]:
    """The last rounds before a round, oldest first, through the lineage of branches."""
    rows = tx.execute(
        _HISTORY, id=conversation_id, first_round=before_round - rounds, last_round=before_round - 1
    )
    found = map(_message, rows)
    return tuple(Round(number, tuple(said)) for number, said in groupby(found, lambda m: m.round_number))


def some(tx: Tx, conversation_id: str, numbers: Collection[int]) -> dict[int, Round]:
    """The rounds of these numbers that a conversation reads, in one look."""
    if not numbers:
        return {}
    rows = tx.execute(
        _some(tx.words.among),
        id=conversation_id,
        first_round=min(numbers),
        last_round=max(numbers),
        numbers=tx.words.many(sorted(numbers)),
    )
    found = groupby(map(_message, rows), lambda m: m.round_number)
    return {number: Round(number, tuple(said)) for number, said in found}


_LINEAGE = f"""
    {LINEAGE}
    SELECT {_COLUMNS}
    FROM lineage AS l JOIN conversation_messages AS m ON m.conversation_id = l.id
        AND m.round_number >= :first_round AND m.round_number <= l.last_round
        AND (m.round_number < l.last_round OR l.only_id IS NULL OR m.role = 'user' OR m.id = l.only_id)
"""
_IN_ORDER = "ORDER BY m.round_number, CASE m.role WHEN 'user' THEN 0 ELSE 1 END, m.id"
_HISTORY = text(f"{_LINEAGE} {_IN_ORDER}")


@cache
def _some(among: str) -> TextClause:
    return text(f"{_LINEAGE} AND {among.format(column='m.round_number', name='numbers')} {_IN_ORDER}")


def is_shown(tx: Tx, conversation_id: str, message: Message) -> bool:
    """Whether a conversation reads a message, as its own or through its lineage."""
    if message.conversation_id == conversation_id:
        return True
    here = history(tx, conversation_id, before_round=message.round_number + 1, rounds=1)
    return any(one.id == message.id for round_ in here for one in round_.messages)


def own(tx: Tx, conversation_id: str, *, limit: int) -> tuple[Round, ...]:
    """The last rounds that something was said in here and not before the branch, oldest first and whole."""
    numbers = [row.round_number for row in tx.execute(_OWN_ROUNDS, id=conversation_id, limit=limit)]
    if not numbers:
        return ()
    found = history(tx, conversation_id, before_round=numbers[0] + 1, rounds=numbers[0] - numbers[-1] + 1)
    return tuple(round_ for round_ in found if round_.number in numbers)


_OWN_ROUNDS = text("""
    SELECT DISTINCT round_number FROM conversation_messages WHERE conversation_id = :id
    ORDER BY round_number DESC LIMIT :limit
""")


def first_asked(tx: Tx, conversation_id: str) -> Message | None:
    """The first question of its own; of a branch that only answers again, the question it answers."""
    row = tx.maybe(_FIRST_ROUND, id=conversation_id)
    if row is None:
        return None
    here = history(tx, conversation_id, before_round=row.round_number + 1, rounds=1)
    return next((message for round_ in here for message in round_.messages if message.voice is None), None)


_FIRST_ROUND = text("""
    SELECT round_number FROM conversation_messages WHERE conversation_id = :id
    ORDER BY CASE role WHEN 'user' THEN 0 ELSE 1 END, round_number LIMIT 1
""")


# ── down the lineage


@dataclass(frozen=True, slots=True)
class Heir:
    """A branch that reads a message of another conversation."""

    id: str
    branch_round: int


def heirs(tx: Tx, message: Message) -> tuple[Heir, ...]:
    """Every branch, at any depth, that reads this message through its lineage."""
    rows = tx.execute(
        _HEIRS,
        id=message.conversation_id,
        round_number=message.round_number,
        role=message.role.value,
        message_id=message.id,
    )
    return tuple(Heir(row.id, row.branch_round) for row in rows)


_INHERITS = """
    (c.branch_round > :round_number OR c.branch_round = :round_number AND (
        :role = 'user' OR c.branch_message_id IS NULL OR c.branch_message_id = :message_id
    ))
"""

_HEIRS = text(f"""
    WITH RECURSIVE heirs (id, branch_round) AS (
        SELECT c.id, c.branch_round FROM conversations AS c WHERE c.parent_id = :id AND {_INHERITS}
        UNION ALL
        SELECT c.id, c.branch_round FROM conversations AS c JOIN heirs AS h ON c.parent_id = h.id
        WHERE {_INHERITS}
    )
    SELECT id, branch_round FROM heirs ORDER BY id
""")


def places(tx: Tx, message: Message) -> tuple[str, ...]:
    """Where a message is seen: whoever looks on from there is told what becomes of it."""
    seen = (message.conversation_id, *(heir.id for heir in heirs(tx, message)))
    return tuple(map(conversation_place, seen))


def of_round(tx: Tx, conversation_id: str, number: int) -> tuple[Message, ...]:
    """What was said in a conversation itself, in one round."""
    return tuple(_message(row) for row in tx.execute(_OF_ROUND, id=conversation_id, round_number=number))


_OF_ROUND = text(f"""
    SELECT {_COLUMNS} FROM conversation_messages AS m
    WHERE m.conversation_id = :id AND m.round_number = :round_number ORDER BY m.id
""")
