"""Sessions of signed-in clients, looked up by the token hash on every request."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tertulia.core.events import EventKind, user_topic
from tertulia.core.serialization import from_json
from tertulia.core.sessions import ABSOLUTE_DAYS, DAY_MS, IDLE_DAYS, ClientInfo, Session, is_over
from tertulia.core.users import Actor, ServerRole, User
from tertulia.store.column_values import as_json
from tertulia.store.sql import sql
from tertulia.store.transactions import Row, Tx

TOUCH_MS = 600_000
"""The least time between two writes of a session's last activity."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    actor: Actor
    user: User
    session: Session


def add(tx: Tx, user_id: str, token_hash: str, client_info: ClientInfo) -> Session:
    session = Session(
        id=tx.new_id(), user_id=user_id, client_info=client_info, created_at=tx.now, last_active_at=tx.now
    )
    tx.execute(
        _ADD,
        id=session.id,
        user_id=user_id,
        token_hash=token_hash,
        client_info=as_json(client_info),
        now=tx.now,
    )
    _emit_changed(tx, session)
    return replace(session, is_current=True)


_ADD = sql("""
    INSERT INTO sessions (id, user_id, token_hash, client_info, created_at, last_active_at)
    VALUES (:id, :user_id, :token_hash, :client_info, :now, :now)
""")

_COLUMNS = "id, user_id, client_info, created_at, last_active_at, project_id, conversation_id"


def _emit_changed(tx: Tx, session: Session) -> None:
    tx.emit(user_topic(session.user_id), EventKind.CHANGED, "session", session.id, session)


def find_signed_in(tx: Tx, token_hash: str) -> SignedIn | None:
    """The user and session of a token; None for an unknown, expired or suspended one."""
    row = tx.maybe(_FIND_SIGNED_IN, token_hash=token_hash)
    if row is None or is_over(row.created_at, row.last_active_at, tx.now):
        return None
    role = ServerRole(row.role)
    return SignedIn(
        actor=Actor(user_id=row.user_id, role=role, session_id=row.id),
        user=User(row.user_id, row.name, row.email, role, False, row.user_created_at),
        session=replace(_session(row), is_current=True),
    )


_FIND_SIGNED_IN = sql("""
    SELECT s.id, s.user_id, s.client_info, s.created_at, s.last_active_at, s.project_id, s.conversation_id,
        u.name, u.email, u.role, u.created_at AS user_created_at
    FROM sessions AS s JOIN users AS u ON u.id = s.user_id
    WHERE s.token_hash = :token_hash AND NOT u.suspended
""")


def _session(row: Row) -> Session:
    return Session(
        id=row.id,
        user_id=row.user_id,
        client_info=from_json(ClientInfo, row.client_info),
        created_at=row.created_at,
        last_active_at=row.last_active_at,
        project_id=row.project_id,
        conversation_id=row.conversation_id,
    )


def is_open(tx: Tx, session_id: str) -> bool:
    """Whether a session has not expired and its account is not suspended."""
    row = tx.maybe(_IS_OPEN, id=session_id)
    return row is not None and not is_over(row.created_at, row.last_active_at, tx.now)


_IS_OPEN = sql("""
    SELECT s.created_at, s.last_active_at FROM sessions AS s JOIN users AS u ON u.id = s.user_id
    WHERE s.id = :id AND NOT u.suspended
""")


def touch(tx: Tx, session_id: str) -> None:
    """Records activity of the client, at most once per TOUCH_MS."""
    if row := tx.maybe(_TOUCH, id=session_id, now=tx.now, before=tx.now - TOUCH_MS):
        _emit_changed(tx, _session(row))


_TOUCH = sql(f"""
    UPDATE sessions SET last_active_at = :now WHERE id = :id AND last_active_at <= :before
    RETURNING {_COLUMNS}
""")


def set_location(tx: Tx, session_id: str, project_id: str | None, conversation_id: str | None) -> None:
    """Records which project and conversation the client shows; None for those that its user cannot see."""
    row = tx.maybe(_SET_LOCATION, id=session_id, project_id=project_id, conversation_id=conversation_id)
    if row:
        _emit_changed(tx, _session(row))


_SET_LOCATION = sql(f"""
    UPDATE sessions SET
        project_id = (
            SELECT m.project_id FROM project_members AS m
            WHERE m.project_id = :project_id AND m.user_id = sessions.user_id
        ),
        conversation_id = (
            SELECT c.id FROM conversations AS c JOIN project_members AS m ON m.project_id = c.project_id
            WHERE c.id = :conversation_id AND m.user_id = sessions.user_id
        )
    WHERE id = :id AND (
        COALESCE(project_id, '') <> COALESCE(:project_id, '')
        OR COALESCE(conversation_id, '') <> COALESCE(:conversation_id, '')
    )
    RETURNING {_COLUMNS}
""")


def leave_project(tx: Tx, project_id: str, user_id: str) -> None:
    """Clears the location of a user's sessions in a project that the user may no longer see."""
    for row in tx.execute(_LEAVE_PROJECT, project_id=project_id, user_id=user_id):
        _emit_changed(tx, _session(row))


_LEAVE_PROJECT = sql(f"""
    UPDATE sessions SET project_id = NULL, conversation_id = NULL
    WHERE project_id = :project_id AND user_id = :user_id RETURNING {_COLUMNS}
""")


def leave_conversation(tx: Tx, conversation_id: str) -> None:
    for row in tx.execute(_LEAVE_CONVERSATION, conversation_id=conversation_id):
        _emit_changed(tx, _session(row))


_LEAVE_CONVERSATION = sql(f"""
    UPDATE sessions SET conversation_id = NULL WHERE conversation_id = :conversation_id RETURNING {_COLUMNS}
""")


def visible_to(tx: Tx, actor: Actor) -> tuple[Session, ...]:
    """The actor's sessions that have not expired, the most recently used first."""
    sessions = (_session(row) for row in tx.execute(_VISIBLE, actor_id=actor.user_id))
    return tuple(
        replace(session, is_current=session.id == actor.session_id)
        for session in sessions
        if not is_over(session.created_at, session.last_active_at, tx.now)
    )


_VISIBLE = sql(f"""
    SELECT {_COLUMNS} FROM sessions WHERE user_id = :actor_id ORDER BY last_active_at DESC, id DESC
""")


def remove(tx: Tx, actor: Actor, session_id: str) -> None:
    """Signs out one of the actor's clients."""
    row = tx.one(_REMOVE, id=session_id, actor_id=actor.user_id)
    _emit_removed(tx, row.user_id, row.id)


_REMOVE = sql("DELETE FROM sessions WHERE id = :id AND user_id = :actor_id RETURNING id, user_id")


def _emit_removed(tx: Tx, user_id: str, session_id: str) -> None:
    tx.emit(user_topic(user_id), EventKind.REMOVED, "session", session_id)


def remove_of_user(tx: Tx, user_id: str, keep: str | None = None) -> None:
    """Signs an account out everywhere, except in the session `keep`."""
    for row in tx.execute(_REMOVE_OF_USER, user_id=user_id, keep=keep or ""):
        _emit_removed(tx, user_id, row.id)


_REMOVE_OF_USER = sql("DELETE FROM sessions WHERE user_id = :user_id AND id <> :keep RETURNING id")


def remove_over(tx: Tx) -> int:
    """Deletes sessions that were idle or have lasted too long. Returns their number."""
    rows = tx.execute(
        _REMOVE_OVER, idle_since=tx.now - IDLE_DAYS * DAY_MS, begun_before=tx.now - ABSOLUTE_DAYS * DAY_MS
    )
    for row in rows:
        _emit_removed(tx, row.user_id, row.id)
    return len(rows)


_REMOVE_OVER = sql("""
    DELETE FROM sessions WHERE last_active_at < :idle_since OR created_at < :begun_before
    RETURNING id, user_id
""")
