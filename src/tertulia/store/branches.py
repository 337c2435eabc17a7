"""Branches: conversations that continue a round of another one and copy nothing; and the tree they form."""

from __future__ import annotations

from dataclasses import dataclass

from tertulia.core.conversations import Conversation, clean_title
from tertulia.core.errors import Conflict, Invalid, NotFound
from tertulia.core.events import conversation_topic
from tertulia.core.messages import Round
from tertulia.core.users import Actor
from tertulia.core.voices import HeldSeat, held_in, holding
from tertulia.store import access, conversations, messages
from tertulia.store.sql import sql
from tertulia.store.transactions import GONE, Tx


def add(
    tx: Tx,
    actor: Actor,
    parent_id: str,
    *,
    at_round: int,
    message_id: str | None = None,
    id: str | None = None,
    title: str = "",
) -> Conversation:
    """Adds a conversation that continues a round of another one, with all its replies or only one message.

    Its parent becomes the conversation that wrote this round. So a branch that only inherits the round can be
    deleted without deleting the new one.
    """
    access.to_conversation(tx, actor, parent_id).must_write()
    tx.lock(conversation_topic(parent_id))  # so that nothing in it is deleted meanwhile
    parent = conversations.get(tx, actor, parent_id)
    if not 0 <= at_round <= parent.round_count:
        raise Invalid("Choose a round of this conversation to branch from.")
    if message_id is not None:
        _must_be_in_round(messages.round(tx, parent_id, at_round), message_id)
    point = _origin(tx, parent, at_round, message_id)
    branch_id = id or tx.new_id()
    added = tx.maybe(
        _ADD,
        id=branch_id,
        parent_id=point.parent_id,
        table_of=parent_id,
        owner_id=actor.user_id,
        branch_round=at_round,
        branch_message_id=point.message_id,
        title=clean_title(title) if title else "",
        now=tx.now,
    )
    if added is None:
        return _find_duplicate(tx, actor, branch_id, point, at_round)
    return conversations.changed(tx, branch_id)


_ADD = sql("""
    INSERT INTO conversations (
        id, project_id, owner_id, title, summary, round_count, mode, voices, visibility, pinned, archived,
        parent_id, branch_round, branch_message_id, chair, seats, search_scope, created_at, updated_at
    )
    SELECT :id, project_id, :owner_id, :title, '', CAST(:branch_round AS BIGINT), mode, voices, visibility,
        FALSE, FALSE, :parent_id, CAST(:branch_round AS BIGINT), :branch_message_id, chair, seats,
        search_scope,
        CAST(:now AS BIGINT), CAST(:now AS BIGINT)
    FROM conversations WHERE id = :table_of
    ON CONFLICT (id) DO NOTHING RETURNING id
""")


def _must_be_in_round(round_: Round, message_id: str) -> None:
    if all(message.id != message_id for message in round_.messages):
        raise NotFound(GONE)


@dataclass(frozen=True, slots=True)
class _BranchPoint:
    parent_id: str
    message_id: str | None


def _origin(tx: Tx, parent: Conversation, at_round: int, message_id: str | None) -> _BranchPoint:
    """The branch point in the nearest ancestor that wrote this round itself. Round 0 belongs to the root."""
    while parent.parent_id is not None and parent.branch_round is not None:
        if at_round > parent.branch_round or tx.maybe(_HAS_MESSAGE_BY_THEN, id=parent.id, at_round=at_round):
            break
        if at_round == parent.branch_round and message_id is None:
            message_id = parent.branch_message_id
        parent = conversations.read(tx, parent.parent_id)
    return _BranchPoint(parent.id, message_id)


# A reply that is still being written counts as a message.
_HAS_MESSAGE_BY_THEN = sql("""
    SELECT 1 FROM conversation_messages WHERE conversation_id = :id AND round_number <= :at_round
    UNION ALL
    SELECT 1 FROM turns
    WHERE conversation_id = :id AND round_number <= :at_round AND state IN ('queued', 'running')
    LIMIT 1
""")


def _find_duplicate(tx: Tx, actor: Actor, branch_id: str, point: _BranchPoint, at_round: int) -> Conversation:
    """The branch that an equal request made earlier; raises Conflict if the id belongs to anything else."""
    existing = conversations.find(tx, actor, branch_id)
    expected = (point.parent_id, at_round, point.message_id, actor.user_id)
    if existing and expected == (
        existing.parent_id,
        existing.branch_round,
        existing.branch_message_id,
        existing.owner_id,
    ):
        return existing
    raise Conflict("There is already a conversation with this id. Make a new id and try again.")


# ── reading the tree


def relatives(tx: Tx, conversation_id: str) -> frozenset[str]:
    """The ids of all conversations in the tree of this conversation."""
    return frozenset(row.id for row in tx.execute(_TREE_IDS, id=conversation_id))


TREE = """
    WITH RECURSIVE ancestors (id, parent_id) AS (
        SELECT c.id, c.parent_id FROM conversations AS c WHERE c.id = :id
        UNION ALL
        SELECT p.id, p.parent_id FROM conversations AS p JOIN ancestors AS a ON p.id = a.parent_id
    ), tree (id) AS (
        SELECT a.id FROM ancestors AS a WHERE a.parent_id IS NULL
        UNION ALL
        SELECT c.id FROM conversations AS c JOIN tree AS t ON c.parent_id = t.id
    )
"""
"""All conversations in the tree of one: its root and every branch below, however deep."""

_TREE_IDS = sql(f"{TREE} SELECT id FROM tree")


def seats(tx: Tx, conversation: Conversation) -> tuple[HeldSeat, ...]:
    """The seat of each lane in a conversation; lanes that never sat in it have the seat of another branch."""
    rows = tx.execute(_SEATS, id=conversation.id)
    own = holding(conversation.seats, conversation.table)
    return held_in(own, (seat for row in rows for seat in conversations.held(row.seats)))


_SEATS = sql(f"{TREE} SELECT c.seats FROM conversations AS c JOIN tree ON tree.id = c.id ORDER BY c.id")


@dataclass(frozen=True, slots=True)
class TreeMembership:
    """The conversations of one tree, seen from one of them; together they are the whole tree."""

    lineage: frozenset[str] = frozenset()
    """The conversation itself and those it may inherit rounds from."""
    beside: frozenset[str] = frozenset()
    """The rest of the tree, from which it inherits nothing."""


def tree_membership(tx: Tx, conversation_id: str) -> TreeMembership:
    rows = tx.execute(_TREE_MEMBERSHIP, id=conversation_id)
    return TreeMembership(
        frozenset(row.id for row in rows if row.is_above),
        frozenset(row.id for row in rows if not row.is_above),
    )


_TREE_MEMBERSHIP = sql(
    f"{TREE} SELECT t.id, t.id IN (SELECT a.id FROM ancestors AS a) AS is_above FROM tree AS t"
)


def family(tx: Tx, actor: Actor, conversation_id: str) -> tuple[Conversation, ...]:
    """All conversations in the tree of this conversation."""
    access.to_conversation(tx, actor, conversation_id)
    return tuple(conversations.from_row(row) for row in tx.execute(_TREE_CONVERSATIONS, id=conversation_id))


_TREE_CONVERSATIONS = sql(
    f"{TREE} SELECT {conversations.COLUMNS} FROM conversations AS c JOIN tree ON tree.id = c.id ORDER BY c.id"
)
