"""Trees: a conversation with its branches as one thing, to be drawn, compared and cut back.

What is deleted is gone wherever it was seen: every branch that inherited it is told and reads on without it.
The money it cost stays spent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import text

from tertulia.core.errors import Conflict
from tertulia.core.events import Kind, conversation_place
from tertulia.core.markdown import plain_text
from tertulia.core.messages import Message, Role, Round
from tertulia.core.plain import from_json
from tertulia.core.trees import (
    EXCERPT,
    TITLES_LIMIT,
    Comparison,
    MessageRemoval,
    Removal,
    Said,
    Tree,
    compare,
    tree,
)
from tertulia.core.users import Actor
from tertulia.store import (
    access,
    attachments,
    blind,
    branches,
    conversations,
    events,
    jobs,
    messages,
    receipts,
    turns,
)
from tertulia.store.branches import TREE
from tertulia.store.conversations import SUBTREE
from tertulia.store.messages import Heir, voice
from tertulia.store.transactions import Row, Tx, as_json


def get(tx: Tx, actor: Actor, conversation_id: str) -> Tree:
    family = branches.family(tx, actor, conversation_id)
    rows = tx.execute(_SAID, id=conversation_id)
    return tree(conversation_id, family, [_said(row) for row in rows])


_MARKUP = 5
"""How much of a question is read for each character that is shown: marks and addresses take room."""

_SAID = text(f"""
    {TREE}
    SELECT m.id, m.conversation_id, m.round_number, m.role, m.replaces_id, m.created_at, m.created_by,
        CASE WHEN t.is_blind THEN NULL ELSE m.voice END AS voice,
        CASE m.role WHEN 'user' THEN SUBSTR(m.content, 1, {EXCERPT * _MARKUP}) ELSE '' END AS excerpt,
        paid.cost_micros
    FROM conversation_messages AS m JOIN tree ON tree.id = m.conversation_id
    JOIN turns AS t ON t.id = m.turn_id
    LEFT JOIN (
        SELECT u.message_id, CAST(SUM(u.cost_micros) AS BIGINT) AS cost_micros
        FROM usage AS u JOIN tree ON tree.id = u.conversation_id GROUP BY u.message_id
    ) AS paid ON paid.message_id = m.id
""")


def _said(row: Row) -> Said:
    return Said(
        id=row.id,
        conversation_id=row.conversation_id,
        round_number=row.round_number,
        is_question=row.role == Role.USER,
        excerpt=plain_text(row.excerpt, EXCERPT),
        seat=voice(row.voice).seat if row.voice else None,
        replaces_id=row.replaces_id,
        cost_micros=row.cost_micros,
        created_at=row.created_at,
        created_by=row.created_by,
    )


def compared(tx: Tx, actor: Actor, left_id: str, right_id: str) -> Comparison:
    """Two conversations of one tree, side by side from where they differ."""
    left, right = conversations.get(tx, actor, left_id), conversations.get(tx, actor, right_id)
    if right.id not in branches.relatives(tx, left.id):
        raise Conflict("These two are not branches of one conversation, so there is nothing to compare.")
    return compare(_whole(tx, left.id, left.round_count), _whole(tx, right.id, right.round_count))


def _whole(tx: Tx, conversation_id: str, round_count: int) -> tuple[Round, ...]:
    rounds = messages.history(tx, conversation_id, before_round=round_count + 1, rounds=round_count + 1)
    return blind.as_told(tx, rounds)


# ── before something is deleted


def removal(tx: Tx, actor: Actor, conversation_id: str) -> Removal:
    """What would go with a conversation."""
    access.to_conversation(tx, actor, conversation_id)
    count = tx.one(_REMOVAL, id=conversation_id)
    titles = tuple(row.title for row in tx.execute(_TITLES, id=conversation_id))
    return Removal(count.conversations, count.rounds, count.replies, titles)


_REMOVAL = text(f"""
    {SUBTREE}
    SELECT COUNT(DISTINCT s.id) AS conversations,
        COUNT(CASE WHEN m.role = 'user' THEN 1 END) AS rounds,
        COUNT(CASE WHEN m.role <> 'user' THEN 1 END) AS replies
    FROM subtree AS s LEFT JOIN conversation_messages AS m ON m.conversation_id = s.id
""")

_TITLES = text(f"""
    {SUBTREE}
    SELECT c.title FROM subtree AS s JOIN conversations AS c ON c.id = s.id
    WHERE c.title <> '' ORDER BY s.depth, c.id LIMIT {TITLES_LIMIT}
""")


def message_removal(tx: Tx, actor: Actor, message_id: str) -> MessageRemoval:
    """What would go with a message."""
    going = _going(tx, messages.get(tx, actor, message_id))
    replies = sum(message.role is not Role.USER for message in going.messages)
    return MessageRemoval(len(going.messages) - replies, replies, len(going.heirs))


@dataclass(frozen=True, slots=True)
class _Going:
    messages: tuple[Message, ...]
    heirs: tuple[Heir, ...]

    @property
    def conversation_ids(self) -> tuple[str, ...]:
        """Where any of it was said or read."""
        said = (message.conversation_id for message in self.messages)
        return tuple(dict.fromkeys((*said, *(heir.id for heir in self.heirs))))


def _going(tx: Tx, message: Message) -> _Going:
    """A reply goes with its versions; a question with its round, and with what branches answered to it."""
    heirs = messages.heirs(tx, message)
    here = messages.of_round(tx, message.conversation_id, message.round_number)
    if message.role is not Role.USER:
        return _Going(_versions(message, here), heirs)
    theirs = (one for heir in heirs for one in messages.of_round(tx, heir.id, message.round_number))
    return _Going((*here, *theirs), heirs)


def _versions(message: Message, here: Iterable[Message]) -> tuple[Message, ...]:
    """In the order of their age a version stands after the one it replaces."""
    family = {message.id}
    ordered = sorted(here, key=lambda one: one.id)
    for one in reversed(ordered):
        if one.id in family and one.replaces_id:
            family.add(one.replaces_id)
    for one in ordered:
        if one.replaces_id in family:
            family.add(one.id)
    return tuple(one for one in ordered if one.id in family)


# ── deleting


def remove_message(tx: Tx, actor: Actor, message_id: str) -> None:
    """Takes a message out of its conversation and out of every branch that reads it. Numbers stay."""
    message = messages.get(tx, actor, message_id)
    access.to_conversation(tx, actor, message.conversation_id).must_write()
    for conversation_id in sorted(_going(tx, message).conversation_ids):
        tx.hold(conversation_place(conversation_id))  # whoever answers there is seen below
    going = _going(tx, message)
    _must_be_quiet(tx, going, message.round_number)
    ids = frozenset(id for one in going.messages for id in (one.id, *(file.id for file in one.attachments)))
    for conversation_id in going.conversation_ids:
        _forget_shown(tx, _Shown(conversation_id, message.round_number, tuple(sorted(ids))))
    for conversation_id in _left(tx, going):
        _forget_shown(tx, _Shown(conversation_id, None, tuple(sorted(ids))))
    for one in going.messages:
        _remove(tx, one)
    project_id = conversations.get(tx, actor, message.conversation_id).project_id
    receipts.forget_found(tx, project_id, min(one.id for one in going.messages))
    _index_again(tx, message, going)


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the receipts of a conversation are not to show any more."""

    conversation_id: str
    number: int | None
    ids: tuple[str, ...]


def _forget_shown(tx: Tx, shown: _Shown) -> None:
    """Now, and once more when all is written that is being answered now: it may have been shown this."""
    _forget_in(tx, shown)
    if turns.waiting_or_running(tx, shown.conversation_id):
        jobs.add(tx, FORGET_JOB, as_json(shown), run_at=tx.now + receipts.FORGET_AFTER_MS)


def forget_again(tx: Tx, payload: str) -> None:
    """What was left to be done by a deletion."""
    _forget_in(tx, from_json(_Shown, payload))


def _forget_in(tx: Tx, shown: _Shown) -> None:
    receipts.forget(tx, shown.conversation_id, shown.number, shown.ids)
    turns.forget_found(tx, turns.naming(tx, shown.conversation_id, shown.ids), shown.ids)


FORGET_JOB = "forget_shown"


def _left(tx: Tx, going: _Going) -> set[str]:
    """The conversations that these branches left, and may have been brought back to."""
    owners = {one.conversation_id for one in going.messages}
    parents = {row.parent_id for id in owners for row in tx.execute(_PARENT, id=id)}
    return parents - set(going.conversation_ids)


_PARENT = text("SELECT parent_id FROM conversations WHERE id = :id AND parent_id IS NOT NULL")


def _must_be_quiet(tx: Tx, going: _Going, number: int) -> None:
    """A reply that came later would stand in a round without its question."""
    for conversation_id in going.conversation_ids:
        for turn in turns.waiting_or_running(tx, conversation_id):
            if turn.round_number == number:
                raise Conflict("This round is being answered. Stop it or wait for it, then delete.")


def _remove(tx: Tx, message: Message) -> None:
    """With the votes on it, wherever they were told."""
    places = messages.places(tx, message)
    votes = [row.id for row in tx.execute(_FORGET_VOTES, message_id=message.id)]
    for place in places:
        for noun, id in (("message", message.id), *(("vote", id) for id in votes)):
            events.redact(tx, place, noun, id)
            tx.emit(place, Kind.REMOVED, noun, id)
    attachments.release_message(tx, message.id)
    tx.execute(_REMOVE, id=message.id)


_FORGET_VOTES = text("DELETE FROM votes WHERE message_id = :message_id RETURNING id")

_REMOVE = text("DELETE FROM conversation_messages WHERE id = :id")


def _index_again(tx: Tx, message: Message, going: _Going) -> None:
    """What stood beside it is found by its words too, until the index looks again."""
    number = message.round_number
    beside = {one.conversation_id for one in going.messages}
    beside |= {heir.id for heir in going.heirs if heir.branch_round == number}
    for conversation_id in sorted(beside):
        jobs.add_once(tx, "index_round", f"{conversation_id}:{number}")
