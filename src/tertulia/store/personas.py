"""Personas of a user, a project or the whole server; every change is stored as a new version.

A removed persona can no longer be invited, but its row and versions stay: its replies still show its name,
and a removed built-in persona does not come back at the next start.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tertulia.core.errors import Invalid
from tertulia.core.events import EventKind, project_topic, user_topic
from tertulia.core.personas import NAME_LIMIT, SEEDED, Ownership, Persona, PersonaProfile, cleaned
from tertulia.core.thinking import Effort
from tertulia.core.users import Actor
from tertulia.core.voices import Voice
from tertulia.store import access, events
from tertulia.store.sql import sql
from tertulia.store.transactions import Row, Tx

LIMIT = 100
"""The most personas that a user, a project or the server as a whole can have."""

_COLUMNS = """
    p.id, p.scope, p.owner_id, p.project_id, p.version, p.created_at, p.updated_at,
    v.name, v.glyph, v.hue, v.instructions, v.model, v.tools, v.effort
"""
_CURRENT_VERSION = "personas AS p JOIN persona_versions AS v ON v.persona_id = p.id AND v.version = p.version"
_IS_VISIBLE = """
    (p.scope = 'all' OR p.owner_id = :actor_id OR p.project_id IN (
        SELECT seen.project_id FROM project_members AS seen WHERE seen.user_id = :actor_id
    ))
"""


def seed(tx: Tx) -> None:
    """Adds the built-in personas at the first start.

    A persona that was ever added is skipped, even when people have changed or removed it since.
    """
    for persona_id, character in SEEDED.items():
        if tx.maybe(_ADD, id=persona_id, scope="all", owner_id=None, project_id=None, now=tx.now):
            _add_version(tx, persona_id, 1, character)
            _changed(tx, persona_id)


def add(tx: Tx, actor: Actor, scope: Ownership, project_id: str | None, character: PersonaProfile) -> Persona:
    character = cleaned(character)
    owner_id, project_id = _owner_and_project(scope, actor, project_id)
    _must_be_allowed(tx, actor, scope, project_id)
    _must_have_room(tx, scope, owner_id, project_id)
    persona_id = tx.new_id()
    tx.one(_ADD, id=persona_id, scope=scope.value, owner_id=owner_id, project_id=project_id, now=tx.now)
    _add_version(tx, persona_id, 1, character)
    return _changed(tx, persona_id)


_ADD = sql("""
    INSERT INTO personas (id, scope, owner_id, project_id, version, removed_at, created_at, updated_at)
    VALUES (:id, :scope, :owner_id, :project_id, 1, NULL, :now, :now)
    ON CONFLICT (id) DO NOTHING RETURNING id
""")


def _owner_and_project(
    scope: Ownership, actor: Actor, project_id: str | None
) -> tuple[str | None, str | None]:
    """The persona's owner id and project id; at most one of them is set."""
    if scope is Ownership.PROJECT and project_id is None:
        raise Invalid("Say which project the persona is for.")
    return (
        actor.user_id if scope is Ownership.USER else None,
        project_id if scope is Ownership.PROJECT else None,
    )


def _must_be_allowed(tx: Tx, actor: Actor, scope: Ownership, project_id: str | None) -> None:
    """Administrators change the server's personas, editors those of their project, users their own."""
    if scope is Ownership.ALL:
        actor.must_be_admin()
    if project_id is not None:
        access.to_project(tx, actor, project_id).must_write()


def _must_have_room(tx: Tx, scope: Ownership, owner_id: str | None, project_id: str | None) -> None:
    count = tx.one(_COUNT, scope=scope.value, owner_id=owner_id or "", project_id=project_id or "")
    if count.number >= LIMIT:
        raise Invalid(f"There are {LIMIT} personas here already. Remove one first.")


_COUNT = sql("""
    SELECT COUNT(*) AS number FROM personas
    WHERE scope = :scope AND COALESCE(owner_id, '') = :owner_id AND COALESCE(project_id, '') = :project_id
        AND removed_at IS NULL
""")


def _add_version(tx: Tx, persona_id: str, version: int, character: PersonaProfile) -> None:
    tx.execute(
        _ADD_VERSION,
        persona_id=persona_id,
        version=version,
        name=character.name,
        glyph=character.glyph,
        hue=character.hue,
        instructions=character.instructions,
        model=character.model,
        tools=character.tools,
        effort=character.effort.value if character.effort else None,
        now=tx.now,
    )


_ADD_VERSION = sql("""
    INSERT INTO persona_versions (
        persona_id, version, name, glyph, hue, instructions, model, tools, effort, created_at
    )
    VALUES (
        :persona_id, :version, :name, :glyph, :hue, :instructions, :model, :tools, :effort, :now
    )
""")


def _changed(tx: Tx, persona_id: str) -> Persona:
    persona = _persona(tx.one(_READ, id=persona_id))
    for topic in _topics(tx, persona):
        tx.emit(topic, EventKind.CHANGED, "persona", persona.id, persona)
    return persona


_READ = sql(f"SELECT {_COLUMNS} FROM {_CURRENT_VERSION} WHERE p.id = :id")


def _topics(tx: Tx, persona: Persona) -> Iterable[str]:
    """The topics of a persona's events: its project's, or that of each user who can see it."""
    if persona.project_id is not None:
        return [project_topic(persona.project_id)]
    if persona.owner_id is not None:
        return [user_topic(persona.owner_id)]
    return [user_topic(row.id) for row in tx.execute(_EVERYONE)]


_EVERYONE = sql("SELECT id FROM users")


def _persona(row: Row) -> Persona:
    return Persona(
        id=row.id,
        scope=Ownership(row.scope),
        owner_id=row.owner_id,
        project_id=row.project_id,
        character=_character(row),
        version=row.version,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _character(row: Row) -> PersonaProfile:
    effort = Effort(row.effort) if row.effort else None
    return PersonaProfile(row.name, row.glyph, row.hue, row.instructions, row.model, bool(row.tools), effort)


# ── reading


def get(tx: Tx, actor: Actor, persona_id: str) -> Persona:
    return _persona(tx.one(_GET, actor_id=actor.user_id, id=persona_id))


_GET = sql(
    f"SELECT {_COLUMNS} FROM {_CURRENT_VERSION} WHERE p.id = :id AND p.removed_at IS NULL AND {_IS_VISIBLE}"
)


def visible_to(tx: Tx, actor: Actor, project_id: str | None = None) -> tuple[Persona, ...]:
    """The personas that can be invited to a table: the server's, then the project's, then the actor's."""
    if project_id is not None:
        access.to_project(tx, actor, project_id)
    rows = tx.execute(_VISIBLE, actor_id=actor.user_id, project_id=project_id or "")
    return tuple(map(_persona, rows))


_VISIBLE = sql(f"""
    SELECT {_COLUMNS} FROM {_CURRENT_VERSION}
    WHERE p.removed_at IS NULL
        AND (p.scope = 'all' OR p.owner_id = :actor_id OR p.project_id = :project_id)
    ORDER BY CASE p.scope WHEN 'all' THEN 0 WHEN 'project' THEN 1 ELSE 2 END, p.created_at, p.id
""")


def version(tx: Tx, actor: Actor, persona_id: str, number: int) -> PersonaProfile:
    """The profile that a persona had in one version, even when the persona was removed since."""
    return _character(tx.one(_VERSION, actor_id=actor.user_id, id=persona_id, number=number))


_VERSION = sql(f"""
    SELECT v.name, v.glyph, v.hue, v.instructions, v.model, v.tools, v.effort
    FROM personas AS p JOIN persona_versions AS v ON v.persona_id = p.id AND v.version = :number
    WHERE p.id = :id AND {_IS_VISIBLE}
""")


def was_seen(tx: Tx, actor: Actor, persona_id: str) -> bool:
    """Whether the actor may read a persona's instructions, even when the persona was removed since."""
    return tx.maybe(_WAS_VISIBLE, actor_id=actor.user_id, id=persona_id) is not None


_WAS_VISIBLE = sql(f"SELECT 1 FROM personas AS p WHERE p.id = :id AND {_IS_VISIBLE}")


def characters(tx: Tx, table: Iterable[Voice]) -> dict[str, PersonaProfile]:
    """The profile of each persona at a table, in the version that was seated, by the id of its voice.

    There is no actor to check: the person who seated a persona could see it, and the others at the table read
    its replies.
    """
    by_voice: dict[str, PersonaProfile] = {}
    for voice in table:
        if voice.persona_id is not None:
            row = tx.maybe(_CHARACTER, id=voice.persona_id, number=voice.persona_version)
            if row is not None:
                by_voice[voice.id] = _character(row)
    return by_voice


_CHARACTER = sql("""
    SELECT v.name, v.glyph, v.hue, v.instructions, v.model, v.tools, v.effort
    FROM persona_versions AS v WHERE v.persona_id = :id AND v.version = :number
""")


def names(tx: Tx, persona_ids: Iterable[str]) -> dict[str, str]:
    """The current names of personas by id, even of removed ones."""
    rows = [tx.maybe(_READ, id=persona_id) for persona_id in persona_ids]
    return {row.id: row.name for row in rows if row is not None}


# ── changing


def change(tx: Tx, actor: Actor, persona_id: str, character: PersonaProfile) -> Persona:
    """Saves a new version. Earlier replies keep the version that wrote them."""
    character = cleaned(character)
    persona = get(tx, actor, persona_id)
    _must_be_allowed(tx, actor, persona.scope, persona.project_id)
    number = tx.one(_NEXT_VERSION, id=persona_id, now=tx.now).version
    _add_version(tx, persona_id, number, character)
    return _changed(tx, persona_id)


_NEXT_VERSION = sql("""
    UPDATE personas SET version = version + 1, updated_at = :now WHERE id = :id AND removed_at IS NULL
    RETURNING version
""")


def duplicate(tx: Tx, actor: Actor, persona_id: str, scope: Ownership, project_id: str | None) -> Persona:
    character = get(tx, actor, persona_id).character
    name = f"{character.name[: NAME_LIMIT - len(_COPY)]}{_COPY}"
    return add(tx, actor, scope, project_id, replace(character, name=name))


_COPY = " copy"


def remove(tx: Tx, actor: Actor, persona_id: str) -> None:
    persona = get(tx, actor, persona_id)
    _must_be_allowed(tx, actor, persona.scope, persona.project_id)
    tx.one(_REMOVE, id=persona_id, now=tx.now)
    for topic in _topics(tx, persona):
        events.redact(tx, topic, "persona", persona_id)
        tx.emit(topic, EventKind.REMOVED, "persona", persona_id)


_REMOVE = sql("UPDATE personas SET removed_at = :now WHERE id = :id AND removed_at IS NULL RETURNING id")
