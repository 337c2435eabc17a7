"""Personas: whose they are, who may change them, and that what they were stays known."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from tertulia.core.errors import Forbidden, Invalid, NotFound
from tertulia.core.events import Kind, project_place, user_place
from tertulia.core.personas import SEEDED, Persona, Scope
from tertulia.core.projects import Membership
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
    """Ada's project, in which Bob may look around."""
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, Membership.VIEWER))
    return adas_home


async def names(db: Database, actor: Actor, project_id: str | None = None) -> list[str]:
    seen = await db.read(lambda tx: personas.visible_to(tx, actor, project_id))
    return [persona.character.name for persona in seen]


async def test_three_are_at_hand_for_everyone_from_the_first_day(
    db: Database, ada: Actor, bob: Actor, watch: Watch
) -> None:
    async with watch(ada, bob) as news:
        await db.write(personas.seed)
    assert {event.place for event in news} == {user_place(ada.user_id), user_place(bob.user_id)}
    assert await names(db, bob) == ["The Sage", "The Skeptic", "The Strategist"]


async def test_a_seeded_one_that_was_removed_or_changed_is_left_alone_by_the_next_start(
    db: Database, ada: Actor, watch: Watch
) -> None:
    await db.write(personas.seed)
    await db.write(lambda tx: personas.remove(tx, ada, SKEPTIC))
    await db.write(lambda tx: personas.change(tx, ada, SAGE, BAKER))
    async with watch.untouched():
        await db.write(personas.seed)
    assert await names(db, ada) == ["The Baker", "The Strategist"]


@pytest.mark.parametrize("scope", Scope)
async def test_everyone_who_has_a_persona_at_hand_hears_of_it(
    db: Database, ada: Actor, bob: Actor, shared: str, watch: Watch, scope: Scope
) -> None:
    async with watch(ada, bob) as news:
        made = await db.write(lambda tx: personas.add(tx, ada, scope, shared, BAKER))
        await db.write(lambda tx: personas.change(tx, ada, made.id, NIGHT_BAKER))
    assert {event.place for event in news} == {
        Scope.USER: {user_place(ada.user_id)},
        Scope.PROJECT: {project_place(shared)},
        Scope.ALL: {user_place(ada.user_id), user_place(bob.user_id)},
    }[scope]
    assert await names(db, ada, shared) == ["The Night Baker"]
    assert await names(db, bob, shared) == ([] if scope is Scope.USER else ["The Night Baker"])
    async with watch(ada, bob):
        await db.write(lambda tx: personas.remove(tx, ada, made.id))
    assert await names(db, ada, shared) == []


async def test_everyones_come_first_then_the_projects_then_ones_own(
    db: Database, ada: Actor, adas_home: str
) -> None:
    for scope in (Scope.USER, Scope.PROJECT, Scope.ALL):
        named = replace(BAKER, name=f"Of {scope}")
        await db.write(partial(personas.add, actor=ada, scope=scope, project_id=adas_home, character=named))
    assert await names(db, ada, adas_home) == ["Of all", "Of project", "Of user"]
    assert await names(db, ada) == ["Of all", "Of user"]


async def test_a_persona_knows_only_what_its_scope_needs(db: Database, ada: Actor, adas_home: str) -> None:
    def whose(made: Persona) -> tuple[str | None, str | None]:
        return made.owner_id, made.project_id

    made = [
        await db.write(partial(personas.add, actor=ada, scope=scope, project_id=adas_home, character=BAKER))
        for scope in (Scope.USER, Scope.PROJECT, Scope.ALL)
    ]
    assert [whose(one) for one in made] == [(ada.user_id, None), (None, adas_home), (None, None)]


async def test_only_administrators_change_everyones(
    db: Database, ada: Actor, bob: Actor, watch: Watch
) -> None:
    await db.write(personas.seed)
    async with watch.untouched():
        with pytest.raises(Forbidden):
            await db.write(lambda tx: personas.add(tx, bob, Scope.ALL, None, BAKER))
        with pytest.raises(Forbidden):
            await db.write(lambda tx: personas.change(tx, bob, SAGE, BAKER))
        with pytest.raises(Forbidden):
            await db.write(lambda tx: personas.remove(tx, bob, SAGE))
        with pytest.raises(Forbidden):
            await db.write(lambda tx: personas.duplicate(tx, bob, SAGE, Scope.ALL, None))


async def test_a_viewer_changes_no_persona_of_the_project(
    db: Database, ada: Actor, bob: Actor, shared: str, watch: Watch
) -> None:
    made = await db.write(lambda tx: personas.add(tx, ada, Scope.PROJECT, shared, BAKER))
    async with watch.untouched():
        with pytest.raises(Forbidden):
            await db.write(lambda tx: personas.add(tx, bob, Scope.PROJECT, shared, BAKER))
        with pytest.raises(Forbidden):
            await db.write(lambda tx: personas.change(tx, bob, made.id, NIGHT_BAKER))
        with pytest.raises(Forbidden):
            await db.write(lambda tx: personas.remove(tx, bob, made.id))


async def test_someone_elses_own_persona_is_not_there(db: Database, ada: Actor, bob: Actor) -> None:
    made = await db.write(lambda tx: personas.add(tx, bob, Scope.USER, None, BAKER))
    with pytest.raises(NotFound):
        await db.read(lambda tx: personas.get(tx, ada, made.id))


async def test_a_copy_is_ones_own_to_change(db: Database, ada: Actor, bob: Actor, watch: Watch) -> None:
    await db.write(personas.seed)
    async with watch(ada, bob):
        copy = await db.write(lambda tx: personas.duplicate(tx, bob, SAGE, Scope.USER, None))
    assert copy.character == replace(SEEDED[SAGE], name="The Sage copy")
    await db.write(lambda tx: personas.change(tx, bob, copy.id, NIGHT_BAKER))
    assert "The Night Baker" not in await names(db, ada)


async def test_every_version_stays_known_after_changes_and_after_the_end(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: personas.add(tx, ada, Scope.USER, None, BAKER))
    changed = await db.write(lambda tx: personas.change(tx, ada, made.id, NIGHT_BAKER))
    await db.write(lambda tx: personas.remove(tx, ada, made.id))
    assert (made.version, changed.version) == (1, 2)
    versions = [
        await db.read(partial(personas.version, actor=ada, persona_id=made.id, number=number))
        for number in (1, 2)
    ]
    assert versions == [BAKER, NIGHT_BAKER]
    with pytest.raises(NotFound):
        await db.read(lambda tx: personas.version(tx, ada, made.id, 3))


async def test_a_table_finds_the_characters_its_personas_had_when_they_sat_down(
    db: Database, ada: Actor
) -> None:
    made = await db.write(lambda tx: personas.add(tx, ada, Scope.USER, None, BAKER))
    await db.write(lambda tx: personas.change(tx, ada, made.id, NIGHT_BAKER))
    then = Voice(f"persona:{made.id}:0", 4, "The Baker", "openai:gpt-4o", made.id, 1)
    bare = Voice("openai:gpt-4o:0", 1, "GPT-4o", "openai:gpt-4o")
    gone = Voice("persona:gone:0", 2, "Gone", "openai:gpt-4o", "gone", 1)
    assert await db.read(lambda tx: personas.characters(tx, (then, bare, gone))) == {then.id: BAKER}


async def test_what_was_said_of_a_removed_persona_is_no_longer_in_the_log(
    db: Database, ada: Actor, watch: Watch
) -> None:
    made = await db.write(lambda tx: personas.add(tx, ada, Scope.USER, None, BAKER))
    await db.write(lambda tx: personas.remove(tx, ada, made.id))
    log = await db.read(lambda tx: events.after(tx, user_place(ada.user_id), 0))
    assert {event.kind for event in log if event.noun == "persona"} == {Kind.REMOVED}


async def test_a_house_is_full_at_some_point(db: Database, ada: Actor) -> None:
    with pytest.raises(Invalid, match="100 personas"):
        await db.write(
            lambda tx: [personas.add(tx, ada, Scope.USER, None, BAKER) for _ in range(personas.LIMIT + 1)]
        )


async def test_a_projects_persona_needs_a_project(db: Database, ada: Actor) -> None:
    with pytest.raises(Invalid):
        await db.write(lambda tx: personas.add(tx, ada, Scope.PROJECT, None, BAKER))
