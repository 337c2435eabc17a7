"""Saved tables, and each user's defaults for new conversations."""

from __future__ import annotations

from collections.abc import Iterable

from tertulia.core.conversations import Visibility
from tertulia.core.errors import Invalid
from tertulia.core.events import EventKind, project_topic, user_topic
from tertulia.core.personas import Ownership
from tertulia.core.serialization import from_json
from tertulia.core.tables import Defaults, SavedTable, TableSpec, VoiceRef, check_voices, cleaned
from tertulia.core.users import Actor
from tertulia.store import access, events, personas
from tertulia.store.column_values import as_json
from tertulia.store.sql import sql
from tertulia.store.transactions import Row, Tx

LIMIT = 100
"""The most saved tables that a user or a project can have."""

_COLUMNS = """
    t.id, t.scope, t.owner_id, t.project_id, t.name, t.mode, t.visibility, t.voices, t.chair, t.brief,
    t.created_at, t.updated_at
"""


def add(tx: Tx, actor: Actor, scope: Ownership, project_id: str | None, setting: TableSpec) -> SavedTable:
    setting = cleaned(setting)
    owner_id, project_id = _owner_and_project(scope, actor, project_id)
    _must_be_allowed(tx, actor, project_id)
    _must_be_visible(tx, actor, project_id, setting.guests)
    if tx.one(_COUNT, owner_id=owner_id or "", project_id=project_id or "").number >= LIMIT:
        raise Invalid(f"There are {LIMIT} saved groups here already. Remove one first.")
    table_id = tx.new_id()
    tx.execute(
        _ADD,
        id=table_id,
        scope=scope.value,
        owner_id=owner_id,
        project_id=project_id,
        now=tx.now,
        **_params(setting),
    )
    return _changed(tx, table_id)


_ADD = sql("""
    INSERT INTO saved_tables (
        id, scope, owner_id, project_id, name, mode, visibility, voices, chair, brief, created_at, updated_at
    )
    VALUES (
        :id, :scope, :owner_id, :project_id, :name, :mode, :visibility, :voices, :chair, :brief, :now, :now
    )
""")

_COUNT = sql("""
    SELECT COUNT(*) AS number FROM saved_tables
    WHERE COALESCE(owner_id, '') = :owner_id AND COALESCE(project_id, '') = :project_id
""")


def _owner_and_project(
    scope: Ownership, actor: Actor, project_id: str | None
) -> tuple[str | None, str | None]:
    """The table's owner id and project id; exactly one of them is set."""
    if scope is Ownership.USER:
        return actor.user_id, None
    if scope is Ownership.PROJECT and project_id is not None:
        return None, project_id
    raise Invalid("A group is saved for yourself or for a project: say which one.")


def _must_be_allowed(tx: Tx, actor: Actor, project_id: str | None) -> None:
    if project_id is not None:
        access.to_project(tx, actor, project_id).must_write()


def _must_be_visible(tx: Tx, actor: Actor, project_id: str | None, guests: Iterable[VoiceRef]) -> None:
    """Every persona must be visible to the actor, and at a project's table to all members of the project."""
    for guest in guests:
        if guest.persona_id is None:
            continue
        persona = personas.get(tx, actor, guest.persona_id)
        if project_id is not None and persona.scope is not Ownership.ALL and persona.project_id != project_id:
            raise Invalid(f"{persona.character.name} is not visible to everyone in this project.")


def _params(setting: TableSpec) -> dict[str, object]:
    return {
        "name": setting.name,
        "mode": setting.mode,
        "visibility": setting.visibility.value,
        "voices": as_json(setting.voices),
        "chair": as_json(setting.chair) if setting.chair else None,
        "brief": setting.brief,
    }


def _changed(tx: Tx, table_id: str) -> SavedTable:
    table = _table(tx.one(_READ, id=table_id))
    tx.emit(_topic(table), EventKind.CHANGED, "table", table.id, table)
    return table


_READ = sql(f"SELECT {_COLUMNS} FROM saved_tables AS t WHERE t.id = :id")


def _topic(table: SavedTable) -> str:
    return project_topic(table.project_id) if table.project_id else user_topic(table.owner_id or "")


def _table(row: Row) -> SavedTable:
    return SavedTable(
        id=row.id,
        scope=Ownership(row.scope),
        owner_id=row.owner_id,
        project_id=row.project_id,
        name=row.name,
        mode=row.mode,
        visibility=Visibility(row.visibility),
        voices=from_json(tuple[VoiceRef, ...], row.voices),
        chair=from_json(VoiceRef, row.chair) if row.chair else None,
        brief=row.brief,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def get(tx: Tx, actor: Actor, table_id: str) -> SavedTable:
    return _table(tx.one(_GET, actor_id=actor.user_id, id=table_id))


_GET = sql(f"""
    SELECT {_COLUMNS} FROM saved_tables AS t
    WHERE t.id = :id AND (t.owner_id = :actor_id OR t.project_id IN (
        SELECT seen.project_id FROM project_members AS seen WHERE seen.user_id = :actor_id
    ))
""")


def visible_to(tx: Tx, actor: Actor, project_id: str | None = None) -> tuple[SavedTable, ...]:
    """The project's tables, then the actor's own."""
    if project_id is not None:
        access.to_project(tx, actor, project_id)
    rows = tx.execute(_VISIBLE, actor_id=actor.user_id, project_id=project_id or "")
    return tuple(map(_table, rows))


_VISIBLE = sql(f"""
    SELECT {_COLUMNS} FROM saved_tables AS t
    WHERE t.owner_id = :actor_id OR t.project_id = :project_id
    ORDER BY CASE t.scope WHEN 'project' THEN 0 ELSE 1 END, t.created_at, t.id
""")


def change(tx: Tx, actor: Actor, table_id: str, setting: TableSpec) -> SavedTable:
    setting = cleaned(setting)
    table = get(tx, actor, table_id)
    _must_be_allowed(tx, actor, table.project_id)
    known_ids = {guest.persona_id for guest in (*table.voices, *filter(None, [table.chair]))}
    _must_be_visible(
        tx, actor, table.project_id, (guest for guest in setting.guests if guest.persona_id not in known_ids)
    )
    tx.one(_CHANGE, id=table_id, now=tx.now, **_params(setting))
    return _changed(tx, table_id)


_CHANGE = sql("""
    UPDATE saved_tables SET name = :name, mode = :mode, visibility = :visibility, voices = :voices,
        chair = :chair, brief = :brief, updated_at = :now
    WHERE id = :id RETURNING id
""")


def remove(tx: Tx, actor: Actor, table_id: str) -> None:
    table = get(tx, actor, table_id)
    _must_be_allowed(tx, actor, table.project_id)
    tx.one(_REMOVE, id=table_id)
    events.redact(tx, _topic(table), "table", table_id)
    tx.emit(_topic(table), EventKind.REMOVED, "table", table_id)


_REMOVE = sql("DELETE FROM saved_tables WHERE id = :id RETURNING id")


# ── defaults for new conversations


def defaults(tx: Tx, actor: Actor) -> Defaults:
    stored = tx.one(_DEFAULTS, id=actor.user_id).defaults
    return from_json(Defaults, stored) if stored else Defaults()


_DEFAULTS = sql("SELECT defaults FROM users WHERE id = :id")


def set_defaults(tx: Tx, actor: Actor, new: Defaults) -> Defaults:
    """Saves the actor's defaults.

    A table or persona that was deleted since it was chosen may stay; it is ignored until it is changed.
    """
    check_voices(new.voices, len(new.voices))
    before = defaults(tx, actor)
    if new.table_id is not None and new.table_id != before.table_id:
        get(tx, actor, new.table_id)
    known_ids = {voice.persona_id for voice in before.voices}
    _must_be_visible(tx, actor, None, (voice for voice in new.voices if voice.persona_id not in known_ids))
    tx.execute(_SET_DEFAULTS, id=actor.user_id, defaults=as_json(new))
    tx.emit(user_topic(actor.user_id), EventKind.CHANGED, "defaults", actor.user_id, new)
    return new


_SET_DEFAULTS = sql("UPDATE users SET defaults = :defaults WHERE id = :id")
