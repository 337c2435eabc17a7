"""Messages: each is stored once, and branches read it through their lineage.

A branch copies nothing. It reads its parent's rounds before the branch point and, of the round at that point,
the question with all replies or with the one reply it branched from. `history` follows the lineage towards
the root and `inheriting_branches` finds the branches below; other functions need not know about branches.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import groupby

from tertulia.core.attachments import Attachment
from tertulia.core.blind import anonymised_message
from tertulia.core.errors import NotFound
from tertulia.core.events import EventKind, conversation_topic
from tertulia.core.findings import ParsedReply
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
from tertulia.core.serialization import from_json
from tertulia.core.users import Actor
from tertulia.core.voices import Voice
from tertulia.store import access
from tertulia.store.column_values import as_json
from tertulia.store.lineage import LINEAGE
from tertulia.store.sql import Statement, sql
from tertulia.store.transactions import GONE, Row, Tx

ROUNDS_LIMIT = 100


@dataclass(frozen=True, slots=True)
class RoundPage:
    rounds: tuple[Round, ...]
    """Oldest first."""
    next_before: int | None
    """Pass this as `before` to read the page of earlier rounds; None when there are none."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """The message's content apart from its text, stored as JSON in the column `parts`."""

    thinking: Thinking | None = None
    attachments: tuple[Attachment, ...] = ()
    quotes: tuple[Quote, ...] = ()
    findings: ParsedReply | None = None


@dataclass(frozen=True, slots=True)
class _Metadata:
    """How the message was produced, stored as JSON in the column `metadata`."""

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
    emit_changed(tx, message)


def emit_changed(tx: Tx, message: Message) -> None:
    """Emits the message as a `changed` event in every conversation that shows it."""
    visible_message = anonymised_message(message) if _is_hidden(tx, message) else message
    for topic in topics_showing(tx, message):
        tx.emit(topic, EventKind.CHANGED, "message", message.id, visible_message)


def _is_hidden(tx: Tx, message: Message) -> bool:
    if message.voice is None or not message.voice.letter:
        return False
    return bool(tx.one(_IS_BLIND, id=message.turn_id).is_blind)


_IS_BLIND = sql("SELECT is_blind FROM turns WHERE id = :id")

_ADD = sql("""
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


_FROM_VISIBLE = f"""
    SELECT {_COLUMNS} FROM conversation_messages AS m
    JOIN conversations AS c ON c.id = m.conversation_id {access.MEMBER_OF_CONVERSATION}
"""
_GET = sql(f"{_FROM_VISIBLE} WHERE m.id = :id")


def find_many(tx: Tx, actor: Actor, ids: Collection[str]) -> tuple[Message, ...]:
    """The messages with these ids that still exist and that the actor may see, ordered by id."""
    if not ids:
        return ()
    rows = tx.execute(
        _select_some(tx.text_index.in_list), actor_id=actor.user_id, ids=tx.text_index.list_param(sorted(ids))
    )
    return tuple(map(_message, rows))


@cache
def _select_some(in_list: str) -> Statement:
    return sql(f"{_FROM_VISIBLE} WHERE {in_list.format(column='m.id', name='ids')} ORDER BY m.id")


def _message(row: Row) -> Message:
    parts = from_json(_Parts, row.parts) if row.parts else _NO_PARTS
    metadata = _parse_metadata(row.metadata) if row.metadata else _NO_METADATA
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
def _parse_metadata(json_text: str) -> _Metadata:
    """Parses metadata, with a cache: a turn reads mostly the messages that the turn before has read."""
    return from_json(_Metadata, json_text)


@lru_cache(maxsize=1024)
def voice(json_text: str) -> Voice:
    """Parses a voice from JSON, with a cache: the same few voices recur in all messages."""
    return from_json(Voice, json_text)


def page(
    tx: Tx, actor: Actor, conversation_id: str, *, before: int | None = None, limit: int = 5
) -> RoundPage:
    """A page of rounds: the newest ones, or the newest before the round `before`."""
    count: int = tx.one(_ROUND_COUNT, actor_id=actor.user_id, id=conversation_id).round_count
    end = count + 1 if before is None else max(1, min(before, count + 1))
    limit = max(1, min(limit, ROUNDS_LIMIT))
    rounds = history(tx, conversation_id, before_round=end, rounds=limit)
    first = end - limit
    return RoundPage(rounds, first if first > 1 else None)


_ROUND_COUNT = sql(f"""
    SELECT c.round_count FROM conversations AS c {access.MEMBER_OF_CONVERSATION} WHERE c.id = :id
""")


def round(tx: Tx, conversation_id: str, number: int) -> Round:
    rounds = history(tx, conversation_id, before_round=number + 1, rounds=1)
    if not rounds:
        raise NotFound(GONE)
    return rounds[0]


def newest_version(tx: Tx, message: Message) -> str | None:
    """The id of the version that the conversation shows now of the reply which this message replaces."""
    version_id = message.replaces_id
    by_replaced = {
        reply.replaces_id: reply.id for reply in of_round(tx, message.conversation_id, message.round_number)
    }
    while version_id is not None and (next_id := by_replaced.get(version_id)) not in (None, message.id):
        version_id = next_id
    return version_id


def history(tx: Tx, conversation_id: str, *, before_round: int, rounds: int) -> tuple[Round, ...]:
    """The newest rounds before a round, oldest first, including those inherited through the lineage."""
    rows = tx.execute(
        _HISTORY, id=conversation_id, first_round=before_round - rounds, last_round=before_round - 1
    )
    messages = map(_message, rows)
    return tuple(
        Round(number, tuple(round_messages))
        for number, round_messages in groupby(messages, lambda message: message.round_number)
    )


def some(tx: Tx, conversation_id: str, numbers: Collection[int]) -> dict[int, Round]:
    """The rounds with these numbers that a conversation reads, in one query."""
    if not numbers:
        return {}
    rows = tx.execute(
        _select_rounds(tx.text_index.in_list),
        id=conversation_id,
        first_round=min(numbers),
        last_round=max(numbers),
        numbers=tx.text_index.list_param(sorted(numbers)),
    )
    by_round = groupby(map(_message, rows), lambda message: message.round_number)
    return {number: Round(number, tuple(round_messages)) for number, round_messages in by_round}


_LINEAGE = f"""
    {LINEAGE}
    SELECT {_COLUMNS}
    FROM lineage AS l JOIN conversation_messages AS m ON m.conversation_id = l.id
        AND m.round_number >= :first_round AND m.round_number <= l.last_round
        AND (m.round_number < l.last_round OR l.only_id IS NULL OR m.role = 'user' OR m.id = l.only_id)
"""
_IN_ORDER = "ORDER BY m.round_number, CASE m.role WHEN 'user' THEN 0 ELSE 1 END, m.id"
_HISTORY = sql(f"{_LINEAGE} {_IN_ORDER}")


@cache
def _select_rounds(in_list: str) -> Statement:
    return sql(f"{_LINEAGE} AND {in_list.format(column='m.round_number', name='numbers')} {_IN_ORDER}")


def is_shown(tx: Tx, conversation_id: str, message: Message) -> bool:
    """Whether a conversation shows a message, as its own or through its lineage."""
    if message.conversation_id == conversation_id:
        return True
    rounds = history(tx, conversation_id, before_round=message.round_number + 1, rounds=1)
    return any(other.id == message.id for round_ in rounds for other in round_.messages)


def own(tx: Tx, conversation_id: str, *, limit: int) -> tuple[Round, ...]:
    """The newest rounds that hold messages of this conversation itself, oldest first.

    Each round is complete: it includes the messages that a branch inherits from its parent.
    """
    numbers = [row.round_number for row in tx.execute(_OWN_ROUNDS, id=conversation_id, limit=limit)]
    if not numbers:
        return ()
    rounds = history(tx, conversation_id, before_round=numbers[0] + 1, rounds=numbers[0] - numbers[-1] + 1)
    return tuple(round_ for round_ in rounds if round_.number in numbers)


_OWN_ROUNDS = sql("""
    SELECT DISTINCT round_number FROM conversation_messages WHERE conversation_id = :id
    ORDER BY round_number DESC LIMIT :limit
""")


def first_asked(tx: Tx, conversation_id: str) -> Message | None:
    """The first question of this conversation itself.

    If a branch only holds new replies to an inherited question, this is the inherited question.
    """
    row = tx.maybe(_FIRST_ROUND, id=conversation_id)
    if row is None:
        return None
    rounds = history(tx, conversation_id, before_round=row.round_number + 1, rounds=1)
    return next((message for round_ in rounds for message in round_.messages if message.voice is None), None)


_FIRST_ROUND = sql("""
    SELECT round_number FROM conversation_messages WHERE conversation_id = :id
    ORDER BY CASE role WHEN 'user' THEN 0 ELSE 1 END, round_number LIMIT 1
""")


# ── branches that inherit a message


@dataclass(frozen=True, slots=True)
class InheritingBranch:
    """A branch that inherits a message of another conversation."""

    id: str
    branch_round: int


def inheriting_branches(tx: Tx, message: Message) -> tuple[InheritingBranch, ...]:
    """Every branch, at any depth, that reads this message through its lineage."""
    rows = tx.execute(
        _HEIRS,
        id=message.conversation_id,
        round_number=message.round_number,
        role=message.role.value,
        message_id=message.id,
    )
    return tuple(InheritingBranch(row.id, row.branch_round) for row in rows)


_INHERITS = """
    (c.branch_round > :round_number OR c.branch_round = :round_number AND (
        :role = 'user' OR c.branch_message_id IS NULL OR c.branch_message_id = :message_id
    ))
"""

_HEIRS = sql(f"""
    WITH RECURSIVE heirs (id, branch_round) AS (
        SELECT c.id, c.branch_round FROM conversations AS c WHERE c.parent_id = :id AND {_INHERITS}
        UNION ALL
        SELECT c.id, c.branch_round FROM conversations AS c JOIN heirs AS h ON c.parent_id = h.id
        WHERE {_INHERITS}
    )
    SELECT id, branch_round FROM heirs ORDER BY id
""")


def topics_showing(tx: Tx, message: Message) -> tuple[str, ...]:
    """The topics of all conversations that show a message; its events are emitted in each of them."""
    conversation_ids = (message.conversation_id, *(branch.id for branch in inheriting_branches(tx, message)))
    return tuple(map(conversation_topic, conversation_ids))


def of_round(tx: Tx, conversation_id: str, number: int) -> tuple[Message, ...]:
    """The messages of one round that belong to the conversation itself, without inherited ones."""
    return tuple(_message(row) for row in tx.execute(_OF_ROUND, id=conversation_id, round_number=number))


_OF_ROUND = sql(f"""
    SELECT {_COLUMNS} FROM conversation_messages AS m
    WHERE m.conversation_id = :id AND m.round_number = :round_number ORDER BY m.id
""")
