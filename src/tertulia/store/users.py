"""User accounts with their passwords, server roles and suspensions."""

from __future__ import annotations

from dataclasses import dataclass

from tertulia.core.errors import AlreadySetUp, Conflict, EmailTaken, Forbidden, NotFound
from tertulia.core.events import EventKind, user_topic
from tertulia.core.users import Actor, ServerRole, User, clean_email, clean_name
from tertulia.store import people, projects, sessions
from tertulia.store.sql import sql
from tertulia.store.transactions import GONE, Row, Tx

HOME = "Home"
"""The name of each user's first project."""

_ADMINS = "administrators"
"""The lock for changes to the number of administrators."""


@dataclass(frozen=True, slots=True)
class StoredCredentials:
    user: User
    password_hash: str


def add(tx: Tx, name: str, email: str, password_hash: str, role: ServerRole) -> User:
    """Creates an account and its first project."""
    user = User(tx.new_id(), clean_name(name), clean_email(email), role, False, tx.now)
    row = tx.maybe(
        _ADD,
        id=user.id,
        name=user.name,
        email=user.email,
        password_hash=password_hash,
        role=role.value,
        now=tx.now,
    )
    if row is None:
        raise EmailTaken("There is already an account with this e-mail address.")
    tx.emit(user_topic(user.id), EventKind.CHANGED, "user", user.id, user)
    projects.add(tx, Actor(user.id, role), HOME)
    return user


_ADD = sql("""
    INSERT INTO users (id, name, email, password_hash, role, suspended, created_at)
    VALUES (:id, :name, :email, :password_hash, :role, FALSE, :now)
    ON CONFLICT (email) DO NOTHING RETURNING id
""")

_COLUMNS = "id, name, email, role, suspended, created_at"


def add_first(tx: Tx, name: str, email: str, password_hash: str) -> User:
    """Creates the administrator of a new server. Of simultaneous attempts, one succeeds."""
    tx.lock(_ADMINS)
    if count(tx):
        raise AlreadySetUp("This server already has an administrator. Sign in, or ask them for an account.")
    return add(tx, name, email, password_hash, ServerRole.ADMIN)


def count(tx: Tx) -> int:
    number: int = tx.one(_COUNT).number
    return number


_COUNT = sql("SELECT COUNT(*) AS number FROM users")


def find_credentials(tx: Tx, email: str) -> StoredCredentials | None:
    row = tx.maybe(_FIND_LOGIN, email=email.strip().lower())
    return StoredCredentials(_user(row), row.password_hash) if row else None


_FIND_LOGIN = sql(f"SELECT {_COLUMNS}, password_hash FROM users WHERE email = :email")


def _user(row: Row) -> User:
    return User(row.id, row.name, row.email, ServerRole(row.role), bool(row.suspended), row.created_at)


def get(tx: Tx, user_id: str) -> User:
    return _user(tx.one(_GET, id=user_id))


_GET = sql(f"SELECT {_COLUMNS} FROM users WHERE id = :id")


def visible_to(tx: Tx, actor: Actor) -> tuple[User, ...]:
    """All accounts; only administrators may list them."""
    actor.must_be_admin()
    return tuple(_user(row) for row in tx.execute(_ALL))


_ALL = sql(f"SELECT {_COLUMNS} FROM users ORDER BY created_at, id")


def save(
    tx: Tx,
    actor: Actor,
    user_id: str,
    *,
    name: str | None = None,
    role: ServerRole | None = None,
    suspended: bool | None = None,
) -> User:
    """Changes an account. Administrators change any account, others only their own name.

    Suspending an account signs it out, and so does making it an administrator: a session never gains rights
    after it began.
    """
    _must_be_allowed(actor, user_id, changes_rights=role is not None or suspended is not None)
    tx.lock(_ADMINS)
    before = get(tx, user_id)
    row = tx.one(
        _SAVE,
        id=user_id,
        name=None if name is None else clean_name(name),
        role=None if role is None else role.value,
        suspended=suspended,
    )
    if not tx.one(_ACTIVE_ADMINS).number:
        raise Conflict("This is the last administrator. Make someone else an administrator first.")
    user = _user(row)
    tx.emit(user_topic(user_id), EventKind.CHANGED, "user", user_id, user)
    if user.name != before.name:
        people.renamed(tx, user)
    if user.suspended or (user.role is ServerRole.ADMIN and before.role is not ServerRole.ADMIN):
        sessions.remove_of_user(tx, user_id)
    return user


def _must_be_allowed(actor: Actor, user_id: str, changes_rights: bool) -> None:
    if actor.is_admin:
        return
    if actor.user_id != user_id:
        raise NotFound(GONE)
    if changes_rights:
        raise Forbidden("Only an administrator can do this.")


_SAVE = sql(f"""
    UPDATE users SET name = COALESCE(:name, name), role = COALESCE(:role, role),
        suspended = COALESCE(:suspended, suspended)
    WHERE id = :id RETURNING {_COLUMNS}
""")

_ACTIVE_ADMINS = sql("SELECT COUNT(*) AS number FROM users WHERE role = 'admin' AND NOT suspended")


def set_password(tx: Tx, user_id: str, password_hash: str, keep_session: str | None = None) -> None:
    """Sets a password and ends all sessions except `keep_session`."""
    tx.one(_SET_PASSWORD, id=user_id, password_hash=password_hash)
    sessions.remove_of_user(tx, user_id, keep=keep_session)


_SET_PASSWORD = sql("UPDATE users SET password_hash = :password_hash WHERE id = :id RETURNING id")


def password_hash(tx: Tx, user_id: str) -> str:
    stored: str = tx.one(_PASSWORD_HASH, id=user_id).password_hash
    return stored


_PASSWORD_HASH = sql("SELECT password_hash FROM users WHERE id = :id")
