"""Branch trees: a conversation with all its branches; comparison of branches, and deletion of messages.

A deleted message disappears from every conversation that showed it, and each of them gets the events. Its
costs stay in the usage table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import text

from tertulia.core.errors import Conflict
from tertulia.core.events import EventKind, conversation_topic
from tertulia.core.markdown import plain_text
from tertulia.core.messages import Message, Role, Round
from tertulia.core.serialization import from_json
from tertulia.core.trees import (
    EXCERPT,
    TITLES_LIMIT,
    Comparison,
    DeletionPreview,
    MessageDeletionPreview,
    MessageSummary,
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
from tertulia.store.messages import InheritingBranch, voice
from tertulia.store.transactions import Row, Tx, as_json


def get(tx: Tx, actor: Actor, conversation_id: str) -> Tree:
    family = branches.family(tx, actor, conversation_id)
    rows = tx.execute(_MESSAGES, id=conversation_id)
    return tree(conversation_id, family, [_summary(row) for row in rows])


_MARKUP = 5
"""Characters of a question read per character shown, because Markdown signs and links are removed."""

_MESSAGES = text(f"""
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


def _summary(row: Row) -> MessageSummary:
    return MessageSummary(
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
    """Compares two conversations of one tree from the round where they part."""
    left, right = conversations.get(tx, actor, left_id), conversations.get(tx, actor, right_id)
    if right.id not in branches.relatives(tx, left.id):
        raise Conflict("These two are not branches of one conversation, so there is nothing to compare.")
    return compare(_all_rounds(tx, left.id, left.round_count), _all_rounds(tx, right.id, right.round_count))


def _all_rounds(tx: Tx, conversation_id: str, round_count: int) -> tuple[Round, ...]:
    rounds = messages.history(tx, conversation_id, before_round=round_count + 1, rounds=round_count + 1)
    return blind.as_told(tx, rounds)


# ── previews of a deletion


def removal(tx: Tx, actor: Actor, conversation_id: str) -> DeletionPreview:
    """Counts what would be deleted with a conversation."""
    access.to_conversation(tx, actor, conversation_id)
    count = tx.one(_REMOVAL, id=conversation_id)
    titles = tuple(row.title for row in tx.execute(_TITLES, id=conversation_id))
    return DeletionPreview(count.conversations, count.rounds, count.replies, titles)


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


def message_removal(tx: Tx, actor: Actor, message_id: str) -> MessageDeletionPreview:
    """Counts what would be deleted with a message."""
    deletion = _find_deletion(tx, messages.get(tx, actor, message_id))
    replies = sum(message.role is not Role.USER for message in deletion.messages)
    return MessageDeletionPreview(len(deletion.messages) - replies, replies, len(deletion.heirs))


@dataclass(frozen=True, slots=True)
class _Deletion:
    messages: tuple[Message, ...]
    heirs: tuple[InheritingBranch, ...]

    @property
    def conversation_ids(self) -> tuple[str, ...]:
        """The conversations that hold or show any of the messages."""
        own = (message.conversation_id for message in self.messages)
        return tuple(dict.fromkeys((*own, *(branch.id for branch in self.heirs))))


def _find_deletion(tx: Tx, message: Message) -> _Deletion:
    """The messages that are deleted with a message, and the branches that inherit it.

    A reply is deleted with all its versions; a question with its round, including the replies to it in
    branches.
    """
    heirs = messages.inheriting_branches(tx, message)
    round_messages = messages.of_round(tx, message.conversation_id, message.round_number)
    if message.role is not Role.USER:
        return _Deletion(_versions(message, round_messages), heirs)
    in_branches = (
        other for branch in heirs for other in messages.of_round(tx, branch.id, message.round_number)
    )
    return _Deletion((*round_messages, *in_branches), heirs)


def _versions(message: Message, round_messages: Iterable[Message]) -> tuple[Message, ...]:
    """All versions of a reply: those it replaces and those that replace it.

    Ids grow with time, so in their order a version comes after the one it replaces.
    """
    version_ids = {message.id}
    ordered = sorted(round_messages, key=lambda other: other.id)
    for other in reversed(ordered):
        if other.id in version_ids and other.replaces_id:
            version_ids.add(other.replaces_id)
    for other in ordered:
        if other.replaces_id in version_ids:
            version_ids.add(other.id)
    return tuple(other for other in ordered if other.id in version_ids)


# ── deleting


def remove_message(tx: Tx, actor: Actor, message_id: str) -> None:
    """Deletes a message from its conversation and every branch that shows it. Round numbers stay."""
    message = messages.get(tx, actor, message_id)
    access.to_conversation(tx, actor, message.conversation_id).must_write()
    for conversation_id in sorted(_find_deletion(tx, message).conversation_ids):
        tx.hold(conversation_topic(conversation_id))  # so that _must_not_be_answering sees every turn
    deletion = _find_deletion(tx, message)
    _must_not_be_answering(tx, deletion, message.round_number)
    ids = frozenset(
        id for target in deletion.messages for id in (target.id, *(file.id for file in target.attachments))
    )
    for conversation_id in deletion.conversation_ids:
        _redact(tx, _RedactionScope(conversation_id, message.round_number, tuple(sorted(ids))))
    for conversation_id in _parents(tx, deletion):
        _redact(tx, _RedactionScope(conversation_id, None, tuple(sorted(ids))))
    for target in deletion.messages:
        _remove(tx, target)
    project_id = conversations.get(tx, actor, message.conversation_id).project_id
    receipts.redact_retrieved(tx, project_id, min(target.id for target in deletion.messages))
    _reindex(tx, message, deletion)


@dataclass(frozen=True, slots=True)
class _RedactionScope:
    """The messages to redact from a conversation's receipts; the payload of a redaction job."""

    conversation_id: str
    number: int | None
    ids: tuple[str, ...]


def _redact(tx: Tx, scope: _RedactionScope) -> None:
    """Redacts receipts now, and again later if turns are running, whose prompts may hold the deleted text."""
    _redact_now(tx, scope)
    if turns.waiting_or_running(tx, scope.conversation_id):
        jobs.add(tx, FORGET_JOB, as_json(scope), run_at=tx.now + receipts.REDACT_AGAIN_AFTER_MS)


def redact_again(tx: Tx, payload: str) -> None:
    """Runs a redaction job that a deletion enqueued."""
    _redact_now(tx, from_json(_RedactionScope, payload))


def _redact_now(tx: Tx, scope: _RedactionScope) -> None:
    receipts.redact_source(tx, scope.conversation_id, scope.number, scope.ids)
    turns.forget_found(tx, turns.naming(tx, scope.conversation_id, scope.ids), scope.ids)


FORGET_JOB = "forget_shown"


def _parents(tx: Tx, deletion: _Deletion) -> set[str]:
    """The parents of the conversations with deleted messages: a summary of the branch may be stored there."""
    owners = {message.conversation_id for message in deletion.messages}
    parents = {row.parent_id for id in owners for row in tx.execute(_PARENT, id=id)}
    return parents - set(deletion.conversation_ids)


_PARENT = text("SELECT parent_id FROM conversations WHERE id = :id AND parent_id IS NOT NULL")


def _must_not_be_answering(tx: Tx, deletion: _Deletion, number: int) -> None:
    """Raises Conflict while the round is being answered: a later reply would be left without its question."""
    for conversation_id in deletion.conversation_ids:
        for turn in turns.waiting_or_running(tx, conversation_id):
            if turn.round_number == number:
                raise Conflict("This round is being answered. Stop it or wait for it, then delete.")


def _remove(tx: Tx, message: Message) -> None:
    """Deletes a message with its votes, and emits that in every conversation that shows it."""
    topics = messages.topics_showing(tx, message)
    vote_ids = [row.id for row in tx.execute(_REMOVE_VOTES, message_id=message.id)]
    for topic in topics:
        for noun, id in (("message", message.id), *(("vote", id) for id in vote_ids)):
            events.redact(tx, topic, noun, id)
            tx.emit(topic, EventKind.REMOVED, noun, id)
    attachments.release_message(tx, message.id)
    tx.execute(_REMOVE, id=message.id)


_REMOVE_VOTES = text("DELETE FROM votes WHERE message_id = :message_id RETURNING id")

_REMOVE = text("DELETE FROM conversation_messages WHERE id = :id")


def _reindex(tx: Tx, message: Message, deletion: _Deletion) -> None:
    """Re-indexes the round: until then, a search for the deleted words still finds its neighbours."""
    number = message.round_number
    conversation_ids = {other.conversation_id for other in deletion.messages}
    conversation_ids |= {branch.id for branch in deletion.heirs if branch.branch_round == number}
    for conversation_id in sorted(conversation_ids):
        jobs.add_once(tx, "index_round", f"{conversation_id}:{number}")
