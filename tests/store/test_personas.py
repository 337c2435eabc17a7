"""Personas: their owners, who may change them, and the versions that stay stored."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from tertulia.core.errors import Forbidden, Invalid, NotFound
from tertulia.core.events import EventKind, project_topic, user_topic
from tertulia.core.personas import SEEDED, Ownership, Persona
from tertulia.core.projects import ProjectRole
from tertulia.core.users import Actor
from tertulia.core.voices import Voice
from tertulia.store import events, personas, projects
from tertulia.store.database import Database
from tests.store.samples import BAKER
from tests.store_fixtures import Watch

SAGE, SKEPTIC, STRATEGIST = SEEDED
NIGHT_BAKER = replace(BAKER, name="The Night Baker", instructions="Answer as if it were midnight.")


@pytest.fixture
async def shared(db: Database, ada: Actor, bob: Actor, adas_home: str) -> str:
    """Ada's project, of which Bob is a viewer."""
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.VIEWER))
    return adas_home


async def names(db: Database, actor: Actor, project_id: str | None = None) -> list[str]:
    visible = await db.read(lambda tx: personas.visible_to(tx, actor, project_id))
    return [persona.character.name for persona in visible]


async def test_the_first_start_adds_three_personas_for_everyone(
    db: Database, ada: Actor, bob: Actor, watch: Watch
) -> None:
    async with watch(ada, bob) as new_events:
        await db.write(personas.seed)
    assert {event.topic for event in new_events} == {user_topic(ada.user_id), user_topic(bob.user_id)}
    assert await names(db, bob) == ["The Sage", "The Skeptic", "The Strategist"]


async def test_the_next_start_leaves_built_in_personas_that_were_changed_or_removed(
    db: Database, ada: Actor, watch: Watch
) -> None:
    await db.write(personas.seed)
    await db.write(lambda tx: personas.remove(tx, ada, SKEPTIC))
    await db.write(lambda tx: personas.change(tx, ada, SAGE, BAKER))
    async with watch.untouched():
        await db.write(personas.seed)
    assert await names(db, ada) == ["The Baker", "The Strategist"]


@pytest.mark.parametrize("scope", Ownership)
async def test_everyone_who_can_see_a_persona_gets_its_events(
    db: Database, ada: Actor, bob: Actor, shared: str, watch: Watch, scope: Ownership
) -> None:
    async with watch(ada, bob) as new_events:
        persona = await db.write(lambda tx: personas.add(tx, ada, scope, shared, BAKER))
        await db.write(lambda tx: personas.change(tx, ada, persona.id, NIGHT_BAKER))
    assert {event.topic for event in new_events} == {
        Ownership.USER: {user_topic(ada.user_id)},
        Ownership.PROJECT: {project_topic(shared)},
        Ownership.ALL: {user_topic(ada.user_id), user_topic(bob.user_id)},
    }[scope]
    assert await names(db, ada, shared) == ["The Night Baker"]
    assert await names(db, bob, shared) == ([] if scope is Ownership.USER else ["The Night Baker"])
    async with watch(ada, bob):
        await db.write(lambda tx: personas.remove(tx, ada, persona.id))
    assert await names(db, ada, shared) == []


async def test_personas_are_listed_by_scope_server_then_project_then_own(
    db: Database, ada: Actor, adas_home: str
) -> None:
    for scope in (Ownership.USER, Ownership.PROJECT, Ownership.ALL):
        profile = replace(BAKER, name=f"Of {scope}")
        await db.write(partial(personas.add, actor=ada, scope=scope, project_id=adas_home, character=profile))
    assert await names(db, ada, adas_home) == ["Of all", "Of project", "Of user"]
    assert await names(db, ada) == ["Of all", "Of user"]


async def test_a_persona_stores_only_the_owner_or_project_of_its_scope(
    db: Database, ada: Actor, adas_home: str
) -> None:
    def owner_and_project(persona: Persona) -> tuple[str | None, str | None]:
        return persona.owner_id, persona.project_id

    personas_added = [
        await db.write(partial(personas.add, actor=ada, scope=scope, project_id=adas_home, character=BAKER))
        for scope in (Ownership.USER, Ownership.PROJECT, Ownership.ALL)
    ]
    assert [owner_and_project(persona) for persona in personas_added] == [
        (ada.user_id, None),
        (None, adas_home),
        (None, None),
    ]


async def test_only_administrators_change_personas_of_the_server(
    db: Database, ada: Actor, bob: Actor, watch: Watch
) -> None:
    await db.write(personas.seed)
    async with watch.untouched():
        with pytest.raises(Forbidden):
            await db.write(lambda tx: personas.add(tx, bob, Ownership.ALL, None, BAKER))
        with pytest.raises(Forbidden):
            await db.write(lambda tx: personas.change(tx, bob, SAGE, BAKER))
        with pytest.raises(Forbidden):
            await db.write(lambda tx: personas.remove(tx, bob, SAGE))
        with pytest.raises(Forbidden):
            await db.write(lambda tx: personas.duplicate(tx, bob, SAGE, Ownership.ALL, None))


async def test_a_viewer_cannot_change_personas_of_the_project(
    db: Database, ada: Actor, bob: Actor, shared: str, watch: Watch
) -> None:
    persona = await db.write(lambda tx: personas.add(tx, ada, Ownership.PROJECT, shared, BAKER))
    async with watch.untouched():
        with pytest.raises(Forbidden):
            await db.write(lambda tx: personas.add(tx, bob, Ownership.PROJECT, shared, BAKER))
        with pytest.raises(Forbidden):
            await db.write(lambda tx: personas.change(tx, bob, persona.id, NIGHT_BAKER))
        with pytest.raises(Forbidden):
            await db.write(lambda tx: personas.remove(tx, bob, persona.id))


async def test_another_users_own_persona_is_not_found(db: Database, ada: Actor, bob: Actor) -> None:
    persona = await db.write(lambda tx: personas.add(tx, bob, Ownership.USER, None, BAKER))
    with pytest.raises(NotFound):
        await db.read(lambda tx: personas.get(tx, ada, persona.id))


async def test_the_owner_of_a_copy_can_change_it(db: Database, ada: Actor, bob: Actor, watch: Watch) -> None:
    await db.write(personas.seed)
    async with watch(ada, bob):
        copy = await db.write(lambda tx: personas.duplicate(tx, bob, SAGE, Ownership.USER, None))
    assert copy.character == replace(SEEDED[SAGE], name="The Sage copy")
    await db.write(lambda tx: personas.change(tx, bob, copy.id, NIGHT_BAKER))
    assert "The Night Baker" not in await names(db, ada)


async def test_every_version_can_be_read_after_changes_and_removal(db: Database, ada: Actor) -> None:
    persona = await db.write(lambda tx: personas.add(tx, ada, Ownership.USER, None, BAKER))
    changed = await db.write(lambda tx: personas.change(tx, ada, persona.id, NIGHT_BAKER))
    await db.write(lambda tx: personas.remove(tx, ada, persona.id))
    assert (persona.version, changed.version) == (1, 2)
    versions = [
        await db.read(partial(personas.version, actor=ada, persona_id=persona.id, number=number))
        for number in (1, 2)
    ]
    assert versions == [BAKER, NIGHT_BAKER]
    with pytest.raises(NotFound):
        await db.read(lambda tx: personas.version(tx, ada, persona.id, 3))


async def test_a_table_reads_the_profiles_of_the_seated_versions(db: Database, ada: Actor) -> None:
    persona = await db.write(lambda tx: personas.add(tx, ada, Ownership.USER, None, BAKER))
    await db.write(lambda tx: personas.change(tx, ada, persona.id, NIGHT_BAKER))
    seated = Voice(f"persona:{persona.id}:0", 4, "The Baker", "openai:gpt-4o", persona.id, 1)
    without_persona = Voice("openai:gpt-4o:0", 1, "GPT-4o", "openai:gpt-4o")
    unknown_persona = Voice("persona:gone:0", 2, "Gone", "openai:gpt-4o", "gone", 1)
    assert await db.read(lambda tx: personas.characters(tx, (seated, without_persona, unknown_persona))) == {
        seated.id: BAKER
    }


async def test_events_of_a_removed_persona_are_redacted(db: Database, ada: Actor, watch: Watch) -> None:
    persona = await db.write(lambda tx: personas.add(tx, ada, Ownership.USER, None, BAKER))
    await db.write(lambda tx: personas.remove(tx, ada, persona.id))
    log = await db.read(lambda tx: events.after(tx, user_topic(ada.user_id), 0))
    assert {event.kind for event in log if event.noun == "persona"} == {EventKind.REMOVED}


async def test_the_number_of_personas_is_limited(db: Database, ada: Actor) -> None:
    with pytest.raises(Invalid, match="100 personas"):
        await db.write(
            lambda tx: [personas.add(tx, ada, Ownership.USER, None, BAKER) for _ in range(personas.LIMIT + 1)]
        )


async def test_a_persona_of_a_project_needs_a_project_id(db: Database, ada: Actor) -> None:
    with pytest.raises(Invalid):
        await db.write(lambda tx: personas.add(tx, ada, Ownership.PROJECT, None, BAKER))
