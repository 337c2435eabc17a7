"""Conversations: listed by project, told to the project's place whenever they change."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import text

from tertulia.core.conversations import Conversation, Visibility, clean_title
from tertulia.core.errors import Conflict, Invalid
from tertulia.core.events import Kind, conversation_place, project_place
from tertulia.core.ids import is_ulid
from tertulia.core.passages import SearchScope
from tertulia.core.plain import from_json
from tertulia.core.users import Actor
from tertulia.core.voices import HeldSeat, Voice, holding
from tertulia.store import access, attachments, events, messages, receipts, sessions
from tertulia.store.transactions import Row, Tx, as_json

PAGE_LIMIT = 100


@dataclass(frozen=True, slots=True)
class ConversationPage:
    items: tuple[Conversation, ...]
    next: str | None
    """Where the next page begins; None on the last."""


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
    """A new conversation; its id may come from the client, who then knows it before we do."""
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


_ADD = text("""
    INSERT INTO conversations (
        id, project_id, owner_id, title, summary, round_count, mode, voices, visibility, pinned, archived,
        created_at, updated_at
    )
    VALUES (:id, :project_id, :owner_id, '', '', 0, :mode, :voices, :visibility, FALSE, FALSE, :now, :now)
    ON CONFLICT (id) DO NOTHING RETURNING id
""")


def changed(tx: Tx, conversation_id: str) -> Conversation:
    """Tells the project what the conversation is now, and returns it."""
    # Two turns of one conversation may end at once: the second to look must see what the first has written.
    tx.hold(conversation_place(conversation_id))
    conversation = read(tx, conversation_id)
    tx.emit(
        project_place(conversation.project_id), Kind.CHANGED, "conversation", conversation.id, conversation
    )
    return conversation


def read(tx: Tx, conversation_id: str) -> Conversation:
    """For who has looked already whether it may be seen."""
    return from_row(tx.one(_READ, id=conversation_id))


_READ = text(f"SELECT {COLUMNS} FROM conversations AS c WHERE c.id = :id")


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
def voices(written: str) -> tuple[Voice, ...]:
    """The same few tables are seated again and again."""
    return from_json(tuple[Voice, ...], written)


@lru_cache(maxsize=1024)
def held(written: str) -> tuple[HeldSeat, ...]:
    return from_json(tuple[HeldSeat, ...], written)


def get(tx: Tx, actor: Actor, conversation_id: str) -> Conversation:
    return from_row(tx.one(_GET, actor_id=actor.user_id, id=conversation_id))


_GET = text(f"""
    SELECT {COLUMNS} FROM conversations AS c {access.MEMBER_OF_CONVERSATION} WHERE c.id = :id
""")


def find(tx: Tx, actor: Actor, conversation_id: str) -> Conversation | None:
    row = tx.maybe(_GET, actor_id=actor.user_id, id=conversation_id)
    return from_row(row) if row else None


_IS_UNNAMED = "(c.title = '' OR c.title_is_provisional)"


def find_unnamed(tx: Tx, conversation_id: str) -> Conversation | None:
    """For the job that makes titles: the conversation, if it still is there and still needs one."""
    row = tx.maybe(_FIND_UNNAMED, id=conversation_id)
    return from_row(row) if row else None


_FIND_UNNAMED = text(f"SELECT {COLUMNS} FROM conversations AS c WHERE c.id = :id AND {_IS_UNNAMED}")


def needs_name(tx: Tx, conversation_id: str) -> bool:
    """Whether neither a person nor a model has named it yet."""
    return tx.maybe(_NEEDS_NAME, id=conversation_id) is not None


_NEEDS_NAME = text(f"SELECT 1 FROM conversations AS c WHERE c.id = :id AND {_IS_UNNAMED}")


def find_project(tx: Tx, conversation_id: str) -> str | None:
    """Where a conversation belongs, for jobs that nobody asked for; None when it is gone."""
    row = tx.maybe(_PROJECT, id=conversation_id)
    return row.project_id if row else None


_PROJECT = text("SELECT project_id FROM conversations WHERE id = :id")


# ── listing


def page(
    tx: Tx, actor: Actor, project_id: str, *, limit: int, cursor: str | None = None, archived: bool = False
) -> ConversationPage:
    """The newest first. All pinned ones stand before the first page."""
    access.to_project(tx, actor, project_id)
    updated_at, id = (_FAR_FUTURE, "") if cursor is None else _read_cursor(cursor)
    limit = max(1, min(limit, PAGE_LIMIT))
    found = tx.execute(
        _PAGE, project_id=project_id, archived=archived, updated_at=updated_at, id=id, limit=limit + 1
    )
    items = [from_row(row) for row in found[:limit]]
    more = _write_cursor(items[-1]) if len(found) > limit else None
    if cursor is None:
        items = [*_pinned(tx, project_id, archived), *items]
    return ConversationPage(tuple(items), more)


_PAGE = text(f"""
    SELECT {COLUMNS} FROM conversations AS c
    WHERE c.project_id = :project_id AND c.archived = :archived AND c.pinned = FALSE
        AND (c.updated_at, c.id) < (:updated_at, :id)
    ORDER BY c.updated_at DESC, c.id DESC LIMIT :limit
""")

_FAR_FUTURE = 1 << 62


def _pinned(tx: Tx, project_id: str, archived: bool) -> list[Conversation]:
    return [from_row(row) for row in tx.execute(_PINNED, project_id=project_id, archived=archived)]


_PINNED = text(f"""
    SELECT {COLUMNS} FROM conversations AS c
    WHERE c.project_id = :project_id AND c.archived = :archived AND c.pinned = TRUE
    ORDER BY c.updated_at DESC, c.id DESC
""")


def _write_cursor(last: Conversation) -> str:
    return base64.urlsafe_b64encode(f"{last.updated_at} {last.id}".encode()).decode()


def _read_cursor(cursor: str) -> tuple[int, str]:
    """What _write_cursor wrote. A forged one moves the reader within the same list, and that is all."""
    try:
        at, _, id = base64.b64decode(cursor.encode(), altchars=b"-_", validate=True).decode().partition(" ")
    except (binascii.Error, UnicodeError):
        at, id = "", ""
    if not (at.isascii() and at.isdigit() and len(at) <= 16 and is_ulid(id)):
        raise Invalid("This page does not exist. Begin again with the first one.")
    return int(at), id


# ── changing


def rename(tx: Tx, actor: Actor, conversation_id: str, title: str) -> Conversation:
    access.to_conversation(tx, actor, conversation_id).must_write()
    tx.execute(_RENAME, id=conversation_id, title=clean_title(title))
    return changed(tx, conversation_id)


_RENAME = text("UPDATE conversations SET title = :title, title_is_provisional = FALSE WHERE id = :id")


def set_title_if_unnamed(tx: Tx, conversation_id: str, title: str, *, provisional: bool = False) -> None:
    """For a title nobody chose: a person's stays, and a conversation that is gone stays gone. A provisional
    one is shown until there is a better one, and told to no model."""
    before = find_unnamed(tx, conversation_id)
    statement = _SET_PROVISIONAL_TITLE if provisional else _SET_TITLE_IF_UNNAMED
    is_set = tx.maybe(statement, id=conversation_id, title=clean_title(title)) is not None
    if is_set and before is not None and before.title != clean_title(title):
        changed(tx, conversation_id)


_SET_PROVISIONAL_TITLE = text("""
    UPDATE conversations SET title = :title, title_is_provisional = TRUE
    WHERE id = :id AND title = '' RETURNING id
""")

_SET_TITLE_IF_UNNAMED = text(f"""
    UPDATE conversations AS c SET title = :title, title_is_provisional = FALSE
    WHERE c.id = :id AND {_IS_UNNAMED} RETURNING id
""")


def set_pinned(tx: Tx, actor: Actor, conversation_id: str, pinned: bool) -> Conversation:
    access.to_conversation(tx, actor, conversation_id).must_write()
    tx.execute(_SET_PINNED, id=conversation_id, pinned=pinned)
    return changed(tx, conversation_id)


_SET_PINNED = text("UPDATE conversations SET pinned = :pinned WHERE id = :id")


def set_archived(tx: Tx, actor: Actor, conversation_id: str, archived: bool) -> Conversation:
    access.to_conversation(tx, actor, conversation_id).must_write()
    tx.execute(_SET_ARCHIVED, id=conversation_id, archived=archived)
    return changed(tx, conversation_id)


_SET_ARCHIVED = text("UPDATE conversations SET archived = :archived WHERE id = :id")


def set_table(
    tx: Tx,
    conversation_id: str,
    mode: str,
    table: Sequence[Voice],
    visibility: Visibility,
    chair: Voice | None = None,
    scope: SearchScope | None = None,
) -> None:
    """What the next round goes on with; says something only when that is new."""
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


_SET_TABLE = text("""
    UPDATE conversations SET mode = :mode, voices = :voices, visibility = :visibility,
        chair = CAST(:chair AS TEXT), search_scope = CAST(:search_scope AS TEXT)
    WHERE id = :id AND (
        mode <> :mode OR voices <> :voices OR visibility <> :visibility
        OR COALESCE(chair, '') <> COALESCE(CAST(:chair AS TEXT), '')
        OR COALESCE(search_scope, '') <> COALESCE(CAST(:search_scope AS TEXT), '')
    ) RETURNING id
""")


def hold_seats(tx: Tx, conversation: Conversation, voices: Sequence[Voice]) -> None:
    """Whoever sits down for the first time keeps that seat; says something only when that is new."""
    seats = holding(conversation.seats, (*conversation.table, *voices))
    if seats != conversation.seats:
        tx.execute(_HOLD_SEATS, id=conversation.id, seats=as_json(seats))
        changed(tx, conversation.id)


_HOLD_SEATS = text("UPDATE conversations SET seats = :seats WHERE id = :id")


# ── removing


def remove(tx: Tx, actor: Actor, conversation_id: str) -> tuple[str, ...]:
    """The conversation and every branch that hangs on it; returns their ids."""
    access.to_conversation(tx, actor, conversation_id).must_write()
    conversation = get(tx, actor, conversation_id)
    _forget_brought(tx, conversation)
    ids = [row.id for row in tx.execute(_SUBTREE, id=conversation_id)]
    said = [first for id in ids if (first := tx.one(_FIRST_SAID, id=id).id)]
    if said:
        receipts.forget_found(tx, conversation.project_id, min(said))
    return _remove_all(tx, ids)


_FIRST_SAID = text("SELECT MIN(id) AS id FROM conversation_messages WHERE conversation_id = :id")


def _forget_brought(tx: Tx, branch: Conversation) -> None:
    """What came of it and was told where it left is kept; its own words are not."""
    if branch.parent_id is not None:
        said = frozenset(row.id for row in tx.execute(_SAID_IN, id=branch.id))
        receipts.forget_brought(tx, branch.parent_id, said)


_SAID_IN = text("SELECT id FROM conversation_messages WHERE conversation_id = :id")


SUBTREE = """
    WITH RECURSIVE subtree (id, depth) AS (
        SELECT CAST(:id AS TEXT), 0
        UNION ALL
        SELECT c.id, s.depth + 1 FROM conversations AS c JOIN subtree AS s ON c.parent_id = s.id
    )
"""
"""A conversation and every branch that hangs on it."""

_SUBTREE = text(f"{SUBTREE} SELECT id FROM subtree ORDER BY depth DESC, id")


def remove_of_project(tx: Tx, project_id: str) -> tuple[str, ...]:
    return _remove_all(tx, [row.id for row in tx.execute(_FOREST, project_id=project_id)])


_FOREST = text("""
    WITH RECURSIVE forest (id, depth) AS (
        SELECT id, 0 FROM conversations WHERE project_id = :project_id AND parent_id IS NULL
        UNION ALL
        SELECT c.id, f.depth + 1 FROM conversations AS c JOIN forest AS f ON c.parent_id = f.id
    )
    SELECT id FROM forest ORDER BY depth DESC, id
""")


def _remove_all(tx: Tx, ids: Sequence[str]) -> tuple[str, ...]:
    """Leaves first: SQLite follows cascades no deeper than a thousand levels, and branches may go deeper."""
    for id in ids:
        sessions.leave_conversation(tx, id)
        attachments.release_conversation(tx, id)
        project_id = tx.one(_REMOVE, id=id).project_id
        events.forget(tx, conversation_place(id))
        events.redact(tx, project_place(project_id), "conversation", id)
        tx.emit(project_place(project_id), Kind.REMOVED, "conversation", id)
    return tuple(ids)


_REMOVE = text("DELETE FROM conversations WHERE id = :id RETURNING project_id")
