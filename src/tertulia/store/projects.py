"""Projects and their members. Each change is emitted in every member's topic, with that member's own role."""

from __future__ import annotations

from functools import lru_cache

from tertulia.core.errors import Conflict, Invalid, NotFound
from tertulia.core.events import EventKind, project_topic, user_topic
from tertulia.core.projects import (
    Member,
    Project,
    ProjectRole,
    ProjectSettings,
    checked,
    clean_name,
    clean_text,
)
from tertulia.core.serialization import from_json
from tertulia.core.users import Actor
from tertulia.store import access, attachments, conversations, events, files, people, sessions, tables
from tertulia.store.column_values import as_json
from tertulia.store.sql import sql
from tertulia.store.transactions import Row, Tx

_COLUMNS = "p.id, p.name, p.description, p.instructions, p.settings, p.created_at, p.updated_at"


def add(tx: Tx, actor: Actor, name: str, description: str = "", instructions: str = "") -> Project:
    """Creates a project that the actor owns."""
    project_id = tx.new_id()
    tx.execute(
        _ADD,
        id=project_id,
        name=clean_name(name),
        description=clean_text(description),
        instructions=clean_text(instructions),
        settings=as_json(ProjectSettings()),
        now=tx.now,
    )
    tx.execute(
        _SET_MEMBER, project_id=project_id, user_id=actor.user_id, role=ProjectRole.OWNER.value, now=tx.now
    )
    people.add(tx, project_id, actor.user_id)
    _changed(tx, project_id)
    return get(tx, actor, project_id)


_ADD = sql("""
    INSERT INTO projects (id, name, description, instructions, settings, created_at, updated_at)
    VALUES (:id, :name, :description, :instructions, :settings, :now, :now)
""")

_SET_MEMBER = sql("""
    INSERT INTO project_members (project_id, user_id, role, created_at)
    VALUES (:project_id, :user_id, :role, :now)
    ON CONFLICT (project_id, user_id) DO UPDATE SET role = excluded.role
""")


def _changed(tx: Tx, project_id: str) -> None:
    for row in tx.execute(_FOR_EACH_MEMBER, project_id=project_id):
        tx.emit(user_topic(row.user_id), EventKind.CHANGED, "project", project_id, _project(row))


_FOR_EACH_MEMBER = sql(f"""
    SELECT {_COLUMNS}, seen.role, seen.user_id
    FROM projects AS p JOIN project_members AS seen ON seen.project_id = p.id
    WHERE p.id = :project_id
""")


def _project(row: Row) -> Project:
    return Project(
        id=row.id,
        name=row.name,
        description=row.description,
        instructions=row.instructions,
        settings=_settings(row.settings),
        role=ProjectRole(row.role),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


@lru_cache(maxsize=1024)
def _settings(json_text: str) -> ProjectSettings:
    """Parses settings, with a cache: every turn reads them, and they seldom change."""
    return from_json(ProjectSettings, json_text)


def get(tx: Tx, actor: Actor, project_id: str) -> Project:
    return _project(tx.one(_GET, actor_id=actor.user_id, id=project_id))


_GET = sql(f"SELECT {_COLUMNS}, seen.role FROM projects AS p {access.MEMBER_OF_PROJECT} WHERE p.id = :id")


def visible_to(tx: Tx, actor: Actor) -> tuple[Project, ...]:
    """The actor's projects, oldest first, so that the home project comes first."""
    return tuple(_project(row) for row in tx.execute(_VISIBLE, actor_id=actor.user_id))


_VISIBLE = sql(f"""
    SELECT {_COLUMNS}, seen.role FROM projects AS p {access.MEMBER_OF_PROJECT} ORDER BY p.created_at, p.id
""")


def find_settings(tx: Tx, project_id: str) -> ProjectSettings:
    """A project's settings, for background jobs without an actor; the defaults if the project was deleted."""
    row = tx.maybe(_SETTINGS, id=project_id)
    return _settings(row.settings) if row else ProjectSettings()


def exists(tx: Tx, project_id: str) -> bool:
    """Whether a project exists, for command-line tools that work on the database without an actor."""
    return tx.maybe(_SETTINGS, id=project_id) is not None


_SETTINGS = sql("SELECT settings FROM projects WHERE id = :id")


def save(
    tx: Tx,
    actor: Actor,
    project_id: str,
    *,
    name: str | None = None,
    description: str | None = None,
    instructions: str | None = None,
    settings: ProjectSettings | None = None,
) -> Project:
    tx.lock(project_topic(project_id))
    access.to_project(tx, actor, project_id).must_write()
    if settings is not None:
        _must_have_table(tx, actor, project_id, settings.default_table_id)
    tx.execute(
        _SAVE,
        id=project_id,
        name=None if name is None else clean_name(name),
        description=None if description is None else clean_text(description),
        instructions=None if instructions is None else clean_text(instructions),
        settings=None if settings is None else as_json(checked(settings)),
        now=tx.now,
    )
    _changed(tx, project_id)
    return get(tx, actor, project_id)


def _must_have_table(tx: Tx, actor: Actor, project_id: str, table_id: str | None) -> None:
    """The default table must belong to the project.

    A table that was set before and deleted since may stay in the settings; it is ignored.
    """
    if table_id is None or table_id == find_settings(tx, project_id).default_table_id:
        return
    if tables.get(tx, actor, table_id).project_id != project_id:
        raise Invalid("Choose one of the project's saved groups as its default.")


_SAVE = sql("""
    UPDATE projects SET name = COALESCE(:name, name), description = COALESCE(:description, description),
        instructions = COALESCE(:instructions, instructions), settings = COALESCE(:settings, settings),
        updated_at = :now
    WHERE id = :id
""")


def remove(tx: Tx, actor: Actor, project_id: str) -> tuple[str, ...]:
    """Deletes a project with everything in it. Returns the ids of its conversations."""
    tx.lock(project_topic(project_id))
    access.to_project(tx, actor, project_id).must_own()
    for row in tx.execute(_MEMBER_IDS, project_id=project_id):
        _emit_removed(tx, project_id, row.user_id)
    conversation_ids = conversations.remove_of_project(tx, project_id)
    files.release_project(tx, project_id)
    attachments.release_project(tx, project_id)
    tx.execute(_REMOVE, id=project_id)
    events.forget(tx, project_topic(project_id))
    return conversation_ids


_MEMBER_IDS = sql("SELECT user_id FROM project_members WHERE project_id = :project_id")

_REMOVE = sql("DELETE FROM projects WHERE id = :id")


def _emit_removed(tx: Tx, project_id: str, user_id: str) -> None:
    sessions.leave_project(tx, project_id, user_id)
    events.redact(tx, user_topic(user_id), "project", project_id)
    tx.emit(user_topic(user_id), EventKind.REMOVED, "project", project_id)


def members(tx: Tx, actor: Actor, project_id: str) -> tuple[Member, ...]:
    access.to_project(tx, actor, project_id)
    return tuple(
        Member(row.user_id, row.name, ProjectRole(row.role))
        for row in tx.execute(_MEMBERS, project_id=project_id)
    )


_MEMBERS = sql("""
    SELECT m.user_id, u.name, m.role FROM project_members AS m JOIN users AS u ON u.id = m.user_id
    WHERE m.project_id = :project_id ORDER BY m.created_at, m.user_id
""")


def set_member(tx: Tx, actor: Actor, project_id: str, user_id: str, role: ProjectRole) -> tuple[Member, ...]:
    """Adds a member, or changes a member's role."""
    tx.lock(project_topic(project_id))
    access.to_project(tx, actor, project_id).must_own()
    _must_be_able_to_join(tx, project_id, user_id)
    tx.execute(_SET_MEMBER, project_id=project_id, user_id=user_id, role=role.value, now=tx.now)
    _must_have_an_owner(tx, project_id)
    people.add(tx, project_id, user_id)
    _changed(tx, project_id)
    return members(tx, actor, project_id)


def _must_be_able_to_join(tx: Tx, project_id: str, user_id: str) -> None:
    """A suspended account cannot be added, but a member who was suspended later can get another role."""
    row = tx.maybe(_CANDIDATE, id=user_id, project_id=project_id)
    if row is None:
        raise NotFound("There is no account with this id. Ask an administrator to add one first.")
    if row.suspended and row.member_id is None:
        raise Invalid("This account is suspended. An administrator can lift that; then it can join.")


_CANDIDATE = sql("""
    SELECT u.suspended, m.user_id AS member_id
    FROM users AS u LEFT JOIN project_members AS m ON m.user_id = u.id AND m.project_id = :project_id
    WHERE u.id = :id
""")


def _must_have_an_owner(tx: Tx, project_id: str) -> None:
    if tx.maybe(_OWNER, project_id=project_id) is None:
        raise Conflict("A project needs an owner. Make someone else an owner first.")


_OWNER = sql("SELECT 1 FROM project_members WHERE project_id = :project_id AND role = 'owner'")


def remove_member(tx: Tx, actor: Actor, project_id: str, user_id: str) -> None:
    """Removes a member. Owners may remove anyone, and all members may leave."""
    tx.lock(project_topic(project_id))
    role = access.to_project(tx, actor, project_id)
    if user_id != actor.user_id:
        role.must_own()
    tx.one(_REMOVE_MEMBER, project_id=project_id, user_id=user_id)
    _must_have_an_owner(tx, project_id)
    _emit_removed(tx, project_id, user_id)


_REMOVE_MEMBER = sql("""
    DELETE FROM project_members WHERE project_id = :project_id AND user_id = :user_id RETURNING user_id
""")
