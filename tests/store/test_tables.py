"""Saved tables: one's own or a project's, and what each person begins with."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from tertulia.core.conversations import Visibility
from tertulia.core.errors import Forbidden, Invalid, NotFound
from tertulia.core.events import project_place, user_place
from tertulia.core.personas import SEEDED, Scope
from tertulia.core.projects import Membership, ProjectSettings
from tertulia.core.tables import Defaults, TableSetting, WantedVoice
from tertulia.core.users import Actor
from tertulia.store import personas, projects, tables
from tertulia.store.database import Database
from tests.store.samples import BAKER, TABLE
from tests.store_fixtures import Watch

SAGE = WantedVoice(persona_id="0000000000000000000000SAGE")
COUNCIL = TableSetting(
    "The three",
    "brain_trust",
    Visibility.OWN_LANE,
    tuple(WantedVoice(persona_id=id) for id in SEEDED),
    WantedVoice("openai:gpt-4o"),
    "Say who is right.",
)


@pytest.fixture
async def shared(db: Database, ada: Actor, bob: Actor, adas_home: str) -> str:
    """Ada's project, in which Bob may look around."""
    await db.write(personas.seed)
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, Membership.VIEWER))
    return adas_home


async def test_a_table_comes_back_as_it_was_saved(
    db: Database, ada: Actor, shared: str, watch: Watch
) -> None:
    async with watch(ada):
        saved = await db.write(lambda tx: tables.add(tx, ada, Scope.USER, None, COUNCIL))
    [seen] = await db.read(lambda tx: tables.visible_to(tx, ada))
    assert seen == saved == await db.read(lambda tx: tables.get(tx, ada, saved.id))
    kept = TableSetting(seen.name, seen.mode, seen.visibility, seen.voices, seen.chair, seen.brief)
    assert kept == COUNCIL


@pytest.mark.parametrize("scope", [Scope.USER, Scope.PROJECT])
async def test_everyone_who_has_a_table_hears_of_it(
    db: Database, ada: Actor, bob: Actor, shared: str, watch: Watch, scope: Scope
) -> None:
    async with watch(ada, bob) as news:
        saved = await db.write(lambda tx: tables.add(tx, ada, scope, shared, TABLE))
        await db.write(lambda tx: tables.change(tx, ada, saved.id, replace(TABLE, name="Supper")))
    assert {event.place for event in news} == {
        user_place(ada.user_id) if scope is Scope.USER else project_place(shared)
    }
    seen = await db.read(lambda tx: tables.visible_to(tx, bob, shared))
    assert [one.name for one in seen] == ([] if scope is Scope.USER else ["Supper"])
    async with watch(ada, bob):
        await db.write(lambda tx: tables.remove(tx, ada, saved.id))
    assert await db.read(lambda tx: tables.visible_to(tx, ada, shared)) == ()


async def test_a_viewer_changes_no_table_of_the_project(
    db: Database, ada: Actor, bob: Actor, shared: str, watch: Watch
) -> None:
    saved = await db.write(lambda tx: tables.add(tx, ada, Scope.PROJECT, shared, TABLE))
    async with watch.untouched():
        with pytest.raises(Forbidden):
            await db.write(lambda tx: tables.add(tx, bob, Scope.PROJECT, shared, TABLE))
        with pytest.raises(Forbidden):
            await db.write(lambda tx: tables.change(tx, bob, saved.id, TABLE))
        with pytest.raises(Forbidden):
            await db.write(lambda tx: tables.remove(tx, bob, saved.id))


async def test_a_table_is_saved_for_oneself_or_for_a_project(db: Database, ada: Actor) -> None:
    for scope in (Scope.ALL, Scope.PROJECT):
        with pytest.raises(Invalid):
            await db.write(partial(tables.add, actor=ada, scope=scope, project_id=None, setting=TABLE))


async def test_a_table_seats_only_whom_its_people_can_invite(
    db: Database, ada: Actor, bob: Actor, shared: str, watch: Watch
) -> None:
    adas = await db.write(lambda tx: personas.add(tx, ada, Scope.USER, None, BAKER))
    seating = replace(TABLE, voices=(WantedVoice(persona_id=adas.id),))
    async with watch.untouched():
        with pytest.raises(Invalid, match="The Baker"):
            await db.write(lambda tx: tables.add(tx, ada, Scope.PROJECT, shared, seating))
        with pytest.raises(NotFound):
            await db.write(lambda tx: tables.add(tx, bob, Scope.USER, None, seating))
    await db.write(lambda tx: tables.add(tx, ada, Scope.USER, None, seating))


async def test_a_table_can_be_changed_although_one_of_its_personas_is_gone(
    db: Database, ada: Actor, shared: str
) -> None:
    saved = await db.write(lambda tx: tables.add(tx, ada, Scope.USER, None, COUNCIL))
    await db.write(lambda tx: personas.remove(tx, ada, SAGE.persona_id or ""))
    await db.write(lambda tx: tables.change(tx, ada, saved.id, replace(COUNCIL, name="Renamed")))
    with pytest.raises(NotFound):
        await db.write(lambda tx: tables.add(tx, ada, Scope.USER, None, COUNCIL))


async def test_there_is_an_end_to_tables(db: Database, ada: Actor) -> None:
    with pytest.raises(Invalid, match="100 saved groups"):
        await db.write(lambda tx: [tables.add(tx, ada, Scope.USER, None, TABLE) for _ in range(101)])


# ── what one begins with


async def test_what_a_person_begins_with_is_told_to_their_devices(
    db: Database, ada: Actor, bob: Actor, shared: str, watch: Watch
) -> None:
    saved = await db.write(lambda tx: tables.add(tx, ada, Scope.USER, None, TABLE))
    chosen = Defaults(saved.id, "parallel", Visibility.CHOSEN, (SAGE, WantedVoice("openai:gpt-4o")))
    assert await db.read(lambda tx: tables.defaults(tx, ada)) == Defaults()
    async with watch(ada, bob):
        await db.write(lambda tx: tables.set_defaults(tx, ada, chosen))
    assert await db.read(lambda tx: tables.defaults(tx, ada)) == chosen
    assert await db.read(lambda tx: tables.defaults(tx, bob)) == Defaults()


async def test_what_is_gone_since_may_stay_among_the_defaults(db: Database, ada: Actor, shared: str) -> None:
    saved = await db.write(lambda tx: tables.add(tx, ada, Scope.USER, None, TABLE))
    chosen = Defaults(saved.id, voices=(SAGE,))
    await db.write(lambda tx: tables.set_defaults(tx, ada, chosen))
    await db.write(lambda tx: tables.remove(tx, ada, saved.id))
    await db.write(lambda tx: personas.remove(tx, ada, SAGE.persona_id or ""))
    changed = replace(chosen, mode="quick")
    await db.write(lambda tx: tables.set_defaults(tx, ada, changed))
    assert await db.read(lambda tx: tables.defaults(tx, ada)) == changed


async def test_a_project_begins_with_one_of_its_own_tables(db: Database, ada: Actor, shared: str) -> None:
    ours = await db.write(lambda tx: tables.add(tx, ada, Scope.PROJECT, shared, TABLE))
    mine = await db.write(lambda tx: tables.add(tx, ada, Scope.USER, None, TABLE))
    foreign = ProjectSettings(default_table_id=mine.id)
    with pytest.raises(Invalid):
        await db.write(lambda tx: projects.save(tx, ada, shared, settings=foreign))
    settings = ProjectSettings(default_table_id=ours.id)
    saved = await db.write(lambda tx: projects.save(tx, ada, shared, settings=settings))
    assert saved.settings.default_table_id == ours.id
    await db.write(lambda tx: tables.remove(tx, ada, ours.id))
    await db.write(lambda tx: projects.save(tx, ada, shared, settings=settings))
