"""Projects: settings, members and their roles, and deletion."""

from __future__ import annotations

import asyncio

import pytest

from tertulia.core.errors import Conflict, Forbidden, Invalid, NotFound
from tertulia.core.events import EventKind, project_topic
from tertulia.core.projects import TEXT_LIMIT, ContextStrategy, ProjectRole, ProjectSettings
from tertulia.core.users import Actor
from tertulia.store import conversations, events, projects, users
from tertulia.store.database import Database, Tx
from tests.store.samples import answered, conversation
from tests.store_fixtures import Clock, Watch


async def test_the_creator_of_a_project_owns_it(db: Database, ada: Actor, watch: Watch) -> None:
    async with watch(ada):
        project = await db.write(lambda tx: projects.add(tx, ada, "  Sky  watch ", "Why blue?", "Be brief."))
    assert (project.name, project.description, project.instructions) == (
        "Sky watch",
        "Why blue?",
        "Be brief.",
    )
    assert (project.role, project.settings) == (ProjectRole.OWNER, ProjectSettings())
    assert await db.read(lambda tx: projects.get(tx, ada, project.id)) == project


async def test_the_home_project_is_listed_first(db: Database, ada: Actor, bob: Actor, clock: Clock) -> None:
    clock.forward(1)
    await db.write(lambda tx: projects.add(tx, ada, "Atlas"))
    assert [p.name for p in await db.read(lambda tx: projects.visible_to(tx, ada))] == ["Home", "Atlas"]
    assert [p.name for p in await db.read(lambda tx: projects.visible_to(tx, bob))] == ["Home"]


async def test_a_change_is_emitted_to_each_member_with_their_own_role(
    db: Database, ada: Actor, bob: Actor, adas_home: str, clock: Clock, watch: Watch
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.EDITOR))
    clock.forward(5)
    settings = ProjectSettings(default_models=("openai:gpt-4o",), context_strategy=ContextStrategy.MINIMAL)
    async with watch(ada, bob):
        await db.write(lambda tx: projects.save(tx, bob, adas_home, name="Ours", settings=settings))
    project = await db.read(lambda tx: projects.get(tx, ada, adas_home))
    assert (project.name, project.settings, project.role) == ("Ours", settings, ProjectRole.OWNER)
    assert project.updated_at == clock.now


async def test_fields_that_are_not_given_stay_unchanged(db: Database, ada: Actor) -> None:
    project = await db.write(lambda tx: projects.add(tx, ada, "Atlas", "maps", "Be exact."))
    changed = await db.write(lambda tx: projects.save(tx, ada, project.id, description=""))
    assert (changed.name, changed.description, changed.instructions) == ("Atlas", "", "Be exact.")


async def test_invalid_settings_are_rejected(db: Database, ada: Actor, adas_home: str, watch: Watch) -> None:
    settings = ProjectSettings(max_context_tokens=0)
    async with watch.untouched():
        with pytest.raises(Invalid, match="max_context_tokens"):
            await db.write(lambda tx: projects.save(tx, ada, adas_home, settings=settings))


async def test_a_viewer_can_read_but_not_change_a_project(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.VIEWER))
    assert (await db.read(lambda tx: projects.get(tx, bob, adas_home))).role is ProjectRole.VIEWER
    async with watch.untouched():
        with pytest.raises(Forbidden):
            await db.write(lambda tx: projects.save(tx, bob, adas_home, name="Mine"))


async def test_an_editor_can_neither_delete_a_project_nor_change_its_members(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.EDITOR))
    async with watch.untouched():
        with pytest.raises(Forbidden):
            await db.write(lambda tx: projects.remove(tx, bob, adas_home))
        with pytest.raises(Forbidden):
            await db.write(lambda tx: projects.set_member(tx, bob, adas_home, bob.user_id, ProjectRole.OWNER))
        with pytest.raises(Forbidden):
            await db.write(lambda tx: projects.remove_member(tx, bob, adas_home, ada.user_id))


async def test_a_new_member_sees_all_conversations(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: answered(tx, ada, chat.id))
    async with watch(ada, bob):
        members = await db.write(
            lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.VIEWER)
        )
    assert [(member.name, member.role) for member in members] == [("Ada", "owner"), ("Bob", "viewer")]
    assert await db.read(lambda tx: conversations.get(tx, bob, chat.id))


async def test_a_removed_member_cannot_see_the_project(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.EDITOR))
    async with watch(ada, bob):
        await db.write(lambda tx: projects.remove_member(tx, ada, adas_home, bob.user_id))
    with pytest.raises(NotFound):
        await db.read(lambda tx: projects.get(tx, bob, adas_home))
    assert [m.name for m in await db.read(lambda tx: projects.members(tx, ada, adas_home))] == ["Ada"]


async def test_members_may_leave_except_the_last_owner(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.VIEWER))
    async with watch(ada, bob):
        await db.write(lambda tx: projects.remove_member(tx, bob, adas_home, bob.user_id))
    async with watch.untouched():
        with pytest.raises(Conflict):
            await db.write(lambda tx: projects.remove_member(tx, ada, adas_home, ada.user_id))
        with pytest.raises(Conflict):
            await db.write(
                lambda tx: projects.set_member(tx, ada, adas_home, ada.user_id, ProjectRole.EDITOR)
            )


async def test_of_two_owners_who_leave_at_once_one_stays(db: Database, ada: Actor, bob: Actor) -> None:
    def add_shared_project(tx: Tx) -> str:
        project = projects.add(tx, ada, "Ours")
        projects.set_member(tx, ada, project.id, bob.user_id, ProjectRole.OWNER)
        return project.id

    async def leave(actor: Actor, project_id: str) -> bool:
        try:
            await db.write(lambda tx: projects.remove_member(tx, actor, project_id, actor.user_id))
        except Conflict:
            return False
        return True

    for _ in range(10):
        shared_id = await db.write(add_shared_project)
        assert sorted(await asyncio.gather(leave(ada, shared_id), leave(bob, shared_id))) == [False, True]


async def test_a_deleted_project_is_deleted_with_its_conversations(
    db: Database, ada: Actor, bob: Actor, watch: Watch
) -> None:
    project = await db.write(lambda tx: projects.add(tx, ada, "Atlas"))
    await db.write(lambda tx: projects.set_member(tx, ada, project.id, bob.user_id, ProjectRole.EDITOR))
    chat = await db.write(lambda tx: conversation(tx, bob, project.id))
    await db.write(lambda tx: answered(tx, bob, chat.id))
    async with watch(ada, bob):
        await db.write(lambda tx: projects.remove(tx, ada, project.id))
    with pytest.raises(NotFound):
        await db.read(lambda tx: conversations.get(tx, bob, chat.id))
    log = await db.read(lambda tx: events.after(tx, project_topic(project.id), 0))
    assert [(event.kind, event.id) for event in log] == [(EventKind.REMOVED, chat.id)]


async def test_an_unknown_account_cannot_become_a_member(
    db: Database, ada: Actor, adas_home: str, watch: Watch
) -> None:
    async with watch.untouched():
        with pytest.raises(NotFound, match="There is no account with this id"):
            await db.write(lambda tx: projects.set_member(tx, ada, adas_home, "nobody", ProjectRole.VIEWER))


async def test_a_suspended_account_cannot_join_but_a_suspended_member_s_role_can_change(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    await db.write(lambda tx: users.save(tx, ada, bob.user_id, suspended=True))
    async with watch.untouched():
        with pytest.raises(Invalid, match="This account is suspended"):
            await db.write(
                lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.EDITOR)
            )
    await db.write(lambda tx: users.save(tx, ada, bob.user_id, suspended=False))
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.EDITOR))
    await db.write(lambda tx: users.save(tx, ada, bob.user_id, suspended=True))
    async with watch(ada, bob):
        members = await db.write(
            lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.VIEWER)
        )
    assert [member.role for member in members] == [ProjectRole.OWNER, ProjectRole.VIEWER]


@pytest.mark.parametrize("field", ["description", "instructions"])
async def test_description_and_instructions_have_a_length_limit(
    db: Database, ada: Actor, adas_home: str, watch: Watch, field: str
) -> None:
    async with watch.untouched():
        with pytest.raises(Invalid):
            await db.write(
                lambda tx: projects.save(tx, ada, adas_home, **{field: "x" * (TEXT_LIMIT + 1)})  # type: ignore[arg-type]
            )
