"""Conversations: stores and lists them; every change emits an event in the project's topic."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tertulia.core.conversations import Conversation, Visibility, clean_title
from tertulia.core.errors import Conflict, Invalid
from tertulia.core.events import EventKind, conversation_topic, project_topic
from tertulia.core.ids import is_ulid
from tertulia.core.passages import SearchScope
from tertulia.core.serialization import from_json
from tertulia.core.users import Actor
from tertulia.core.voices import HeldSeat, Voice, holding
from tertulia.store import access, attachments, events, messages, receipts, sessions
from tertulia.store.column_values import as_json
from tertulia.store.sql import sql
from tertulia.store.transactions import Row, Tx

PAGE_LIMIT = 100


@dataclass(frozen=True, slots=True)
class ConversationSlice:
    items: tuple[Conversation, ...]
    next: str | None
    """The cursor of the next page; None on the last page."""


COLUMNS = """
    c.id, c.project_id, c.owner_id, c.title, c.summary, c.round_count, c.mode, c.voices, c.visibility,
    c.pinned, c.archived, c.created_at, c.updated_at, c.parent_id, c.branch_round, c.branch_message_id,
    c.chair, c.seats, c.search_scope, EXISTS (
        SELECT 1 FROM turns AS t WHERE t.conversation_id = c.id AND t.state IN ('queued', 'running')
    ) AS is_answering
"""


def add(
    tx: Tx,
    actor: Actor,
    project_id: str,
    *,
    id: str | None = None,
    mode: str,
    table: Sequence[Voice],
    visibility: Visibility,
) -> Conversation:
    """Adds a conversation. The client may choose its id, and so knows it before the server answers."""
    access.to_project(tx, actor, project_id).must_write()
    conversation_id = id or tx.new_id()
    added = tx.maybe(
        _ADD,
        id=conversation_id,
        project_id=project_id,
        owner_id=actor.user_id,
        mode=mode,
        voices=as_json(tuple(table)),
        visibility=visibility.value,
        now=tx.now,
    )
    if added is None:
        raise Conflict("There is already a conversation with this id. Make a new id and try again.")
    return changed(tx, conversation_id)


_ADD = sql("""
    INSERT INTO conversations (
        id, project_id, owner_id, title, summary, round_count, mode, voices, visibility, pinned, archived,
        created_at, updated_at
    )
    VALUES (:id, :project_id, :owner_id, '', '', 0, :mode, :voices, :visibility, FALSE, FALSE, :now, :now)
    ON CONFLICT (id) DO NOTHING RETURNING id
""")


def changed(tx: Tx, conversation_id: str) -> Conversation:
    """Emits an event with the conversation's current value in the project's topic, and returns the value."""
    # Two turns of one conversation may end at once: the second to read must see what the first has written.
    tx.lock(conversation_topic(conversation_id))
    conversation = read(tx, conversation_id)
    tx.emit(
        project_topic(conversation.project_id),
        EventKind.CHANGED,
        "conversation",
        conversation.id,
        conversation,
    )
    return conversation


def read(tx: Tx, conversation_id: str) -> Conversation:
    """Reads a conversation without a permission check; the caller has checked it."""
    return from_row(tx.one(_READ, id=conversation_id))


_READ = sql(f"SELECT {COLUMNS} FROM conversations AS c WHERE c.id = :id")


def from_row(row: Row) -> Conversation:
    return Conversation(
        id=row.id,
        project_id=row.project_id,
        owner_id=row.owner_id,
        title=row.title,
        summary=row.summary,
        round_count=row.round_count,
        mode=row.mode,
        table=voices(row.voices),
        visibility=Visibility(row.visibility),
        pinned=bool(row.pinned),
        archived=bool(row.archived),
        is_answering=bool(row.is_answering),
        created_at=row.created_at,
        updated_at=row.updated_at,
        parent_id=row.parent_id,
        branch_round=row.branch_round,
        branch_message_id=row.branch_message_id,
        chair=messages.voice(row.chair) if row.chair else None,
        seats=held(row.seats),
        scope=None if row.search_scope is None else from_json(SearchScope, row.search_scope),
    )


@lru_cache(maxsize=1024)
def voices(json_text: str) -> tuple[Voice, ...]:
    """Cached: the same few tables are parsed again and again."""
    return from_json(tuple[Voice, ...], json_text)


@lru_cache(maxsize=1024)
def held(json_text: str) -> tuple[HeldSeat, ...]:
    return from_json(tuple[HeldSeat, ...], json_text)


def get(tx: Tx, actor: Actor, conversation_id: str) -> Conversation:
    return from_row(tx.one(_GET, actor_id=actor.user_id, id=conversation_id))


_GET = sql(f"""
    SELECT {COLUMNS} FROM conversations AS c {access.MEMBER_OF_CONVERSATION} WHERE c.id = :id
""")


def find(tx: Tx, actor: Actor, conversation_id: str) -> Conversation | None:
    row = tx.maybe(_GET, actor_id=actor.user_id, id=conversation_id)
    return from_row(row) if row else None


_IS_UNNAMED = "(c.title = '' OR c.title_is_provisional)"


def find_unnamed(tx: Tx, conversation_id: str) -> Conversation | None:
    """The conversation if it still exists and nobody has named it yet; for the job that generates titles."""
    row = tx.maybe(_FIND_UNNAMED, id=conversation_id)
    return from_row(row) if row else None


_FIND_UNNAMED = sql(f"SELECT {COLUMNS} FROM conversations AS c WHERE c.id = :id AND {_IS_UNNAMED}")


def needs_name(tx: Tx, conversation_id: str) -> bool:
    """True while neither a person nor a model has named the conversation."""
    return tx.maybe(_NEEDS_NAME, id=conversation_id) is not None


_NEEDS_NAME = sql(f"SELECT 1 FROM conversations AS c WHERE c.id = :id AND {_IS_UNNAMED}")


def find_project(tx: Tx, conversation_id: str) -> str | None:
    """The id of the conversation's project, None if it is deleted; for jobs, which act for no user."""
    row = tx.maybe(_PROJECT, id=conversation_id)
    return row.project_id if row else None


_PROJECT = sql("SELECT project_id FROM conversations WHERE id = :id")


# ── listing


def page(
    tx: Tx, actor: Actor, project_id: str, *, limit: int, cursor: str | None = None, archived: bool = False
) -> ConversationSlice:
    """A page of conversations, newest first. The first page begins with all pinned ones, beyond its limit."""
    access.to_project(tx, actor, project_id)
    updated_at, id = (_FAR_FUTURE, "") if cursor is None else _read_cursor(cursor)
    limit = max(1, min(limit, PAGE_LIMIT))
    rows = tx.execute(
        _PAGE, project_id=project_id, archived=archived, updated_at=updated_at, id=id, limit=limit + 1
    )
    items = [from_row(row) for row in rows[:limit]]
    next_cursor = _write_cursor(items[-1]) if len(rows) > limit else None
    if cursor is None:
        items = [*_pinned(tx, project_id, archived), *items]
    return ConversationSlice(tuple(items), next_cursor)


_PAGE = sql(f"""
    SELECT {COLUMNS} FROM conversations AS c
    WHERE c.project_id = :project_id AND c.archived = :archived AND c.pinned = FALSE
        AND (c.updated_at, c.id) < (:updated_at, :id)
    ORDER BY c.updated_at DESC, c.id DESC LIMIT :limit
""")

_FAR_FUTURE = 1 << 62


def _pinned(tx: Tx, project_id: str, archived: bool) -> list[Conversation]:
    return [from_row(row) for row in tx.execute(_PINNED, project_id=project_id, archived=archived)]


_PINNED = sql(f"""
    SELECT {COLUMNS} FROM conversations AS c
    WHERE c.project_id = :project_id AND c.archived = :archived AND c.pinned = TRUE
    ORDER BY c.updated_at DESC, c.id DESC
""")


def _write_cursor(last: Conversation) -> str:
    return base64.urlsafe_b64encode(f"{last.updated_at} {last.id}".encode()).decode()


def _read_cursor(cursor: str) -> tuple[int, str]:
    """Parses a cursor of _write_cursor. A forged cursor can only move the reader within the same list."""
    try:
        updated_at, _, id = (
            base64.b64decode(cursor.encode(), altchars=b"-_", validate=True).decode().partition(" ")
        )
    except (binascii.Error, UnicodeError):
        updated_at, id = "", ""
    if not (updated_at.isascii() and updated_at.isdigit() and len(updated_at) <= 16 and is_ulid(id)):
        raise Invalid("This page does not exist. Begin again with the first one.")
    return int(updated_at), id


# ── changing


def rename(tx: Tx, actor: Actor, conversation_id: str, title: str) -> Conversation:
    access.to_conversation(tx, actor, conversation_id).must_write()
    tx.execute(_RENAME, id=conversation_id, title=clean_title(title))
    return changed(tx, conversation_id)


_RENAME = sql("UPDATE conversations SET title = :title, title_is_provisional = FALSE WHERE id = :id")


def set_title_if_unnamed(tx: Tx, conversation_id: str, title: str, *, provisional: bool = False) -> None:
    """Sets a generated title; does nothing if a person has named the conversation, or if it is gone.

    A provisional title is shown to people until a better one is generated, and is never sent to a model.
    """
    unnamed = find_unnamed(tx, conversation_id)
    statement = _SET_PROVISIONAL_TITLE if provisional else _SET_TITLE_IF_UNNAMED
    is_set = tx.maybe(statement, id=conversation_id, title=clean_title(title)) is not None
    if is_set and unnamed is not None and unnamed.title != clean_title(title):
        changed(tx, conversation_id)


_SET_PROVISIONAL_TITLE = sql("""
    UPDATE conversations SET title = :title, title_is_provisional = TRUE
    WHERE id = :id AND title = '' RETURNING id
""")

_SET_TITLE_IF_UNNAMED = sql(f"""
    UPDATE conversations AS c SET title = :title, title_is_provisional = FALSE
    WHERE c.id = :id AND {_IS_UNNAMED} RETURNING id
""")


def set_pinned(tx: Tx, actor: Actor, conversation_id: str, pinned: bool) -> Conversation:
    access.to_conversation(tx, actor, conversation_id).must_write()
    tx.execute(_SET_PINNED, id=conversation_id, pinned=pinned)
    return changed(tx, conversation_id)


_SET_PINNED = sql("UPDATE conversations SET pinned = :pinned WHERE id = :id")


def set_archived(tx: Tx, actor: Actor, conversation_id: str, archived: bool) -> Conversation:
    access.to_conversation(tx, actor, conversation_id).must_write()
    tx.execute(_SET_ARCHIVED, id=conversation_id, archived=archived)
    return changed(tx, conversation_id)


_SET_ARCHIVED = sql("UPDATE conversations SET archived = :archived WHERE id = :id")


def set_table(
    tx: Tx,
    conversation_id: str,
    mode: str,
    table: Sequence[Voice],
    visibility: Visibility,
    chair: Voice | None = None,
    scope: SearchScope | None = None,
) -> None:
    """Stores the settings of the next round; emits an event only if they changed."""
    if tx.maybe(
        _SET_TABLE,
        id=conversation_id,
        mode=mode,
        voices=as_json(tuple(table)),
        visibility=visibility.value,
        chair=None if chair is None else as_json(chair),
        search_scope=None if scope is None else as_json(scope),
    ):
        changed(tx, conversation_id)


_SET_TABLE = sql("""
    UPDATE conversations SET mode = :mode, voices = :voices, visibility = :visibility,
        chair = CAST(:chair AS TEXT), search_scope = CAST(:search_scope AS TEXT)
    WHERE id = :id AND (
        mode <> :mode OR voices <> :voices OR visibility <> :visibility
        OR COALESCE(chair, '') <> COALESCE(CAST(:chair AS TEXT), '')
        OR COALESCE(search_scope, '') <> COALESCE(CAST(:search_scope AS TEXT), '')
    ) RETURNING id
""")


def hold_seats(tx: Tx, conversation: Conversation, voices: Sequence[Voice]) -> None:
    """Stores the seat of each voice that sits down for the first time; emits an event only if any did."""
    seats = holding(conversation.seats, (*conversation.table, *voices))
    if seats != conversation.seats:
        tx.execute(_HOLD_SEATS, id=conversation.id, seats=as_json(seats))
        changed(tx, conversation.id)


_HOLD_SEATS = sql("UPDATE conversations SET seats = :seats WHERE id = :id")


# ── removing


def remove(tx: Tx, actor: Actor, conversation_id: str) -> tuple[str, ...]:
    """Deletes the conversation and every branch below it; returns their ids."""
    access.to_conversation(tx, actor, conversation_id).must_write()
    conversation = get(tx, actor, conversation_id)
    _redact_summaries(tx, conversation)
    ids = [row.id for row in tx.execute(_SUBTREE, id=conversation_id)]
    first_message_ids = [first_id for id in ids if (first_id := tx.one(_FIRST_MESSAGE, id=id).id)]
    if first_message_ids:
        receipts.redact_retrieved(tx, conversation.project_id, min(first_message_ids))
    return _remove_all(tx, ids)


_FIRST_MESSAGE = sql("SELECT MIN(id) AS id FROM conversation_messages WHERE conversation_id = :id")


def _redact_summaries(tx: Tx, branch: Conversation) -> None:
    """Redacts the branch's messages in its parent's receipts. Replies that used its summary are kept."""
    if branch.parent_id is not None:
        message_ids = frozenset(row.id for row in tx.execute(_MESSAGE_IDS, id=branch.id))
        receipts.redact_branch(tx, branch.parent_id, message_ids)


_MESSAGE_IDS = sql("SELECT id FROM conversation_messages WHERE conversation_id = :id")


SUBTREE = """
    WITH RECURSIVE subtree (id, depth) AS (
        SELECT CAST(:id AS TEXT), 0
        UNION ALL
        SELECT c.id, s.depth + 1 FROM conversations AS c JOIN subtree AS s ON c.parent_id = s.id
    )
"""
"""A conversation and every branch below it, with the depth of each."""

_SUBTREE = sql(f"{SUBTREE} SELECT id FROM subtree ORDER BY depth DESC, id")


def remove_of_project(tx: Tx, project_id: str) -> tuple[str, ...]:
    return _remove_all(tx, [row.id for row in tx.execute(_FOREST, project_id=project_id)])


_FOREST = sql("""
    WITH RECURSIVE forest (id, depth) AS (
        SELECT id, 0 FROM conversations WHERE project_id = :project_id AND parent_id IS NULL
        UNION ALL
        SELECT c.id, f.depth + 1 FROM conversations AS c JOIN forest AS f ON c.parent_id = f.id
    )
    SELECT id FROM forest ORDER BY depth DESC, id
""")


def _remove_all(tx: Tx, ids: Sequence[str]) -> tuple[str, ...]:
    """Deletes leaves first: SQLite follows cascades a thousand levels deep, and branches may go deeper."""
    for id in ids:
        sessions.leave_conversation(tx, id)
        attachments.release_conversation(tx, id)
        project_id = tx.one(_REMOVE, id=id).project_id
        events.forget(tx, conversation_topic(id))
        events.redact(tx, project_topic(project_id), "conversation", id)
        tx.emit(project_topic(project_id), EventKind.REMOVED, "conversation", id)
    return tuple(ids)


_REMOVE = sql("DELETE FROM conversations WHERE id = :id RETURNING project_id")
