"""Projects and their members."""

from __future__ import annotations

import asyncio

import pytest

from tertulia.core.errors import Conflict, Forbidden, Invalid, NotFound
from tertulia.core.events import Kind, project_place
from tertulia.core.projects import TEXT_LIMIT, ContextStrategy, Membership, ProjectSettings
from tertulia.core.users import Actor
from tertulia.store import conversations, events, projects, users
from tertulia.store.database import Database, Tx
from tests.store.samples import answered, conversation
from tests.store_fixtures import Clock, Watch


async def test_whoever_makes_a_project_owns_it(db: Database, ada: Actor, watch: Watch) -> None:
    async with watch(ada):
        made = await db.write(lambda tx: projects.add(tx, ada, "  Sky  watch ", "Why blue?", "Be brief."))
    assert (made.name, made.description, made.instructions) == ("Sky watch", "Why blue?", "Be brief.")
    assert (made.role, made.settings) == (Membership.OWNER, ProjectSettings())
    assert await db.read(lambda tx: projects.get(tx, ada, made.id)) == made


async def test_the_project_one_began_with_comes_first(
    db: Database, ada: Actor, bob: Actor, clock: Clock
) -> None:
    clock.forward(1)
    await db.write(lambda tx: projects.add(tx, ada, "Atlas"))
    assert [p.name for p in await db.read(lambda tx: projects.visible_to(tx, ada))] == ["Home", "Atlas"]
    assert [p.name for p in await db.read(lambda tx: projects.visible_to(tx, bob))] == ["Home"]


async def test_a_change_is_told_to_each_member_with_their_own_role(
    db: Database, ada: Actor, bob: Actor, adas_home: str, clock: Clock, watch: Watch
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, Membership.EDITOR))
    clock.forward(5)
    settings = ProjectSettings(default_models=("openai:gpt-4o",), context_strategy=ContextStrategy.MINIMAL)
    async with watch(ada, bob):
        await db.write(lambda tx: projects.save(tx, bob, adas_home, name="Ours", settings=settings))
    seen = await db.read(lambda tx: projects.get(tx, ada, adas_home))
    assert (seen.name, seen.settings, seen.role) == ("Ours", settings, Membership.OWNER)
    assert seen.updated_at == clock.now


async def test_what_is_not_named_in_a_change_stays(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: projects.add(tx, ada, "Atlas", "maps", "Be exact."))
    saved = await db.write(lambda tx: projects.save(tx, ada, made.id, description=""))
    assert (saved.name, saved.description, saved.instructions) == ("Atlas", "", "Be exact.")


async def test_settings_that_cannot_work_are_not_kept(
    db: Database, ada: Actor, adas_home: str, watch: Watch
) -> None:
    endless = ProjectSettings(max_context_tokens=0)
    async with watch.untouched():
        with pytest.raises(Invalid, match="max_context_tokens"):
            await db.write(lambda tx: projects.save(tx, ada, adas_home, settings=endless))


async def test_a_viewer_reads_and_does_not_write(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, Membership.VIEWER))
    assert (await db.read(lambda tx: projects.get(tx, bob, adas_home))).role is Membership.VIEWER
    async with watch.untouched():
        with pytest.raises(Forbidden):
            await db.write(lambda tx: projects.save(tx, bob, adas_home, name="Mine"))


async def test_an_editor_neither_removes_a_project_nor_changes_its_members(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, Membership.EDITOR))
    async with watch.untouched():
        with pytest.raises(Forbidden):
            await db.write(lambda tx: projects.remove(tx, bob, adas_home))
        with pytest.raises(Forbidden):
            await db.write(lambda tx: projects.set_member(tx, bob, adas_home, bob.user_id, Membership.OWNER))
        with pytest.raises(Forbidden):
            await db.write(lambda tx: projects.remove_member(tx, bob, adas_home, ada.user_id))


async def test_a_new_member_sees_all_that_was_said(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: answered(tx, ada, made.id))
    async with watch(ada, bob):
        members = await db.write(
            lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, Membership.VIEWER)
        )
    assert [(member.name, member.role) for member in members] == [("Ada", "owner"), ("Bob", "viewer")]
    assert await db.read(lambda tx: conversations.get(tx, bob, made.id))


async def test_whoever_is_removed_sees_it_no_more(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, Membership.EDITOR))
    async with watch(ada, bob):
        await db.write(lambda tx: projects.remove_member(tx, ada, adas_home, bob.user_id))
    with pytest.raises(NotFound):
        await db.read(lambda tx: projects.get(tx, bob, adas_home))
    assert [m.name for m in await db.read(lambda tx: projects.members(tx, ada, adas_home))] == ["Ada"]


async def test_everyone_may_leave_but_the_last_owner(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, Membership.VIEWER))
    async with watch(ada, bob):
        await db.write(lambda tx: projects.remove_member(tx, bob, adas_home, bob.user_id))
    async with watch.untouched():
        with pytest.raises(Conflict):
            await db.write(lambda tx: projects.remove_member(tx, ada, adas_home, ada.user_id))
        with pytest.raises(Conflict):
            await db.write(lambda tx: projects.set_member(tx, ada, adas_home, ada.user_id, Membership.EDITOR))


async def test_two_owners_who_leave_at_once_leave_one_behind(db: Database, ada: Actor, bob: Actor) -> None:
    def shared(tx: Tx) -> str:
        made = projects.add(tx, ada, "Ours")
        projects.set_member(tx, ada, made.id, bob.user_id, Membership.OWNER)
        return made.id

    async def leave(actor: Actor, project_id: str) -> bool:
        try:
            await db.write(lambda tx: projects.remove_member(tx, actor, project_id, actor.user_id))
        except Conflict:
            return False
        return True

    for _ in range(10):
        ours = await db.write(shared)
        assert sorted(await asyncio.gather(leave(ada, ours), leave(bob, ours))) == [False, True]


async def test_a_removed_project_takes_everything_with_it(
    db: Database, ada: Actor, bob: Actor, watch: Watch
) -> None:
    project = await db.write(lambda tx: projects.add(tx, ada, "Atlas"))
    await db.write(lambda tx: projects.set_member(tx, ada, project.id, bob.user_id, Membership.EDITOR))
    made = await db.write(lambda tx: conversation(tx, bob, project.id))
    await db.write(lambda tx: answered(tx, bob, made.id))
    async with watch(ada, bob):
        await db.write(lambda tx: projects.remove(tx, ada, project.id))
    with pytest.raises(NotFound):
        await db.read(lambda tx: conversations.get(tx, bob, made.id))
    log = await db.read(lambda tx: events.after(tx, project_place(project.id), 0))
    assert [(event.kind, event.id) for event in log] == [(Kind.REMOVED, made.id)]


async def test_nobody_unknown_becomes_a_member(
    db: Database, ada: Actor, adas_home: str, watch: Watch
) -> None:
    async with watch.untouched():
        with pytest.raises(NotFound, match="There is no account with this id"):
            await db.write(lambda tx: projects.set_member(tx, ada, adas_home, "nobody", Membership.VIEWER))


async def test_nobody_suspended_becomes_a_member_but_a_member_s_role_can_still_change(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    await db.write(lambda tx: users.save(tx, ada, bob.user_id, suspended=True))
    async with watch.untouched():
        with pytest.raises(Invalid, match="This account is suspended"):
            await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, Membership.EDITOR))
    await db.write(lambda tx: users.save(tx, ada, bob.user_id, suspended=False))
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, Membership.EDITOR))
    await db.write(lambda tx: users.save(tx, ada, bob.user_id, suspended=True))
    async with watch(ada, bob):
        members = await db.write(
            lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, Membership.VIEWER)
        )
    assert [member.role for member in members] == [Membership.OWNER, Membership.VIEWER]


@pytest.mark.parametrize("field", ["description", "instructions"])
async def test_a_project_s_words_have_a_limit(
    db: Database, ada: Actor, adas_home: str, watch: Watch, field: str
) -> None:
    async with watch.untouched():
        with pytest.raises(Invalid):
            await db.write(
                lambda tx: projects.save(tx, ada, adas_home, **{field: "x" * (TEXT_LIMIT + 1)})  # type: ignore[arg-type]
            )
