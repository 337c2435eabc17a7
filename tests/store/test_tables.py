"""Saved tables of users and projects, and each user's defaults for new conversations."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from tertulia.core.conversations import Visibility
from tertulia.core.errors import Forbidden, Invalid, NotFound
from tertulia.core.events import project_topic, user_topic
from tertulia.core.personas import SEEDED, Ownership
from tertulia.core.projects import ProjectRole, ProjectSettings
from tertulia.core.tables import Defaults, TableSpec, VoiceRef
from tertulia.core.users import Actor
from tertulia.store import personas, projects, tables
from tertulia.store.database import Database
from tests.store.samples import BAKER, TABLE
from tests.store_fixtures import Watch

SAGE = VoiceRef(persona_id="0000000000000000000000SAGE")
COUNCIL = TableSpec(
    "The three",
    "brain_trust",
    Visibility.OWN_LANE,
    tuple(VoiceRef(persona_id=id) for id in SEEDED),
    VoiceRef("openai:gpt-4o"),
    "Say who is right.",
)


@pytest.fixture
async def shared(db: Database, ada: Actor, bob: Actor, adas_home: str) -> str:
    """Ada's project, of which Bob is a viewer."""
    await db.write(personas.seed)
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.VIEWER))
    return adas_home


async def test_a_table_reads_back_as_it_was_saved(
    db: Database, ada: Actor, shared: str, watch: Watch
) -> None:
    async with watch(ada):
        saved = await db.write(lambda tx: tables.add(tx, ada, Ownership.USER, None, COUNCIL))
    [table] = await db.read(lambda tx: tables.visible_to(tx, ada))
    assert table == saved == await db.read(lambda tx: tables.get(tx, ada, saved.id))
    spec = TableSpec(table.name, table.mode, table.visibility, table.voices, table.chair, table.brief)
    assert spec == COUNCIL


@pytest.mark.parametrize("scope", [Ownership.USER, Ownership.PROJECT])
async def test_everyone_who_can_see_a_table_gets_its_events(
    db: Database, ada: Actor, bob: Actor, shared: str, watch: Watch, scope: Ownership
) -> None:
    async with watch(ada, bob) as new_events:
        saved = await db.write(lambda tx: tables.add(tx, ada, scope, shared, TABLE))
        await db.write(lambda tx: tables.change(tx, ada, saved.id, replace(TABLE, name="Supper")))
    assert {event.topic for event in new_events} == {
        user_topic(ada.user_id) if scope is Ownership.USER else project_topic(shared)
    }
    visible = await db.read(lambda tx: tables.visible_to(tx, bob, shared))
    assert [table.name for table in visible] == ([] if scope is Ownership.USER else ["Supper"])
    async with watch(ada, bob):
        await db.write(lambda tx: tables.remove(tx, ada, saved.id))
    assert await db.read(lambda tx: tables.visible_to(tx, ada, shared)) == ()


async def test_a_viewer_cannot_change_tables_of_the_project(
    db: Database, ada: Actor, bob: Actor, shared: str, watch: Watch
) -> None:
    saved = await db.write(lambda tx: tables.add(tx, ada, Ownership.PROJECT, shared, TABLE))
    async with watch.untouched():
        with pytest.raises(Forbidden):
            await db.write(lambda tx: tables.add(tx, bob, Ownership.PROJECT, shared, TABLE))
        with pytest.raises(Forbidden):
            await db.write(lambda tx: tables.change(tx, bob, saved.id, TABLE))
        with pytest.raises(Forbidden):
            await db.write(lambda tx: tables.remove(tx, bob, saved.id))


async def test_a_table_must_belong_to_a_user_or_a_project(db: Database, ada: Actor) -> None:
    for scope in (Ownership.ALL, Ownership.PROJECT):
        with pytest.raises(Invalid):
            await db.write(partial(tables.add, actor=ada, scope=scope, project_id=None, setting=TABLE))


async def test_a_table_seats_only_personas_that_its_people_can_see(
    db: Database, ada: Actor, bob: Actor, shared: str, watch: Watch
) -> None:
    persona = await db.write(lambda tx: personas.add(tx, ada, Ownership.USER, None, BAKER))
    spec = replace(TABLE, voices=(VoiceRef(persona_id=persona.id),))
    async with watch.untouched():
        with pytest.raises(Invalid, match="The Baker"):
            await db.write(lambda tx: tables.add(tx, ada, Ownership.PROJECT, shared, spec))
        with pytest.raises(NotFound):
            await db.write(lambda tx: tables.add(tx, bob, Ownership.USER, None, spec))
    await db.write(lambda tx: tables.add(tx, ada, Ownership.USER, None, spec))


async def test_a_table_with_a_removed_persona_can_be_changed(db: Database, ada: Actor, shared: str) -> None:
    saved = await db.write(lambda tx: tables.add(tx, ada, Ownership.USER, None, COUNCIL))
    await db.write(lambda tx: personas.remove(tx, ada, SAGE.persona_id or ""))
    await db.write(lambda tx: tables.change(tx, ada, saved.id, replace(COUNCIL, name="Renamed")))
    with pytest.raises(NotFound):
        await db.write(lambda tx: tables.add(tx, ada, Ownership.USER, None, COUNCIL))


async def test_the_number_of_tables_is_limited(db: Database, ada: Actor) -> None:
    with pytest.raises(Invalid, match="100 saved groups"):
        await db.write(lambda tx: [tables.add(tx, ada, Ownership.USER, None, TABLE) for _ in range(101)])


# ── defaults for new conversations


async def test_a_user_s_defaults_are_emitted_to_their_devices(
    db: Database, ada: Actor, bob: Actor, shared: str, watch: Watch
) -> None:
    saved = await db.write(lambda tx: tables.add(tx, ada, Ownership.USER, None, TABLE))
    defaults = Defaults(saved.id, "parallel", Visibility.CHOSEN, (SAGE, VoiceRef("openai:gpt-4o")))
    assert await db.read(lambda tx: tables.defaults(tx, ada)) == Defaults()
    async with watch(ada, bob):
        await db.write(lambda tx: tables.set_defaults(tx, ada, defaults))
    assert await db.read(lambda tx: tables.defaults(tx, ada)) == defaults
    assert await db.read(lambda tx: tables.defaults(tx, bob)) == Defaults()


async def test_defaults_may_keep_a_deleted_table_and_persona(db: Database, ada: Actor, shared: str) -> None:
    saved = await db.write(lambda tx: tables.add(tx, ada, Ownership.USER, None, TABLE))
    defaults = Defaults(saved.id, voices=(SAGE,))
    await db.write(lambda tx: tables.set_defaults(tx, ada, defaults))
    await db.write(lambda tx: tables.remove(tx, ada, saved.id))
    await db.write(lambda tx: personas.remove(tx, ada, SAGE.persona_id or ""))
    changed = replace(defaults, mode="quick")
    await db.write(lambda tx: tables.set_defaults(tx, ada, changed))
    assert await db.read(lambda tx: tables.defaults(tx, ada)) == changed


async def test_a_project_s_default_table_must_be_its_own(db: Database, ada: Actor, shared: str) -> None:
    project_table = await db.write(lambda tx: tables.add(tx, ada, Ownership.PROJECT, shared, TABLE))
    own_table = await db.write(lambda tx: tables.add(tx, ada, Ownership.USER, None, TABLE))
    other_settings = ProjectSettings(default_table_id=own_table.id)
    with pytest.raises(Invalid):
        await db.write(lambda tx: projects.save(tx, ada, shared, settings=other_settings))
    settings = ProjectSettings(default_table_id=project_table.id)
    saved = await db.write(lambda tx: projects.save(tx, ada, shared, settings=settings))
    assert saved.settings.default_table_id == project_table.id
    await db.write(lambda tx: tables.remove(tx, ada, project_table.id))
    await db.write(lambda tx: projects.save(tx, ada, shared, settings=settings))
