"""The names of all present and former members of a project."""

from __future__ import annotations

from tertulia.core.events import project_topic
from tertulia.core.projects import Person, ProjectRole
from tertulia.core.serialization import from_json
from tertulia.core.users import Actor
from tertulia.store import events, people, projects, users
from tertulia.store.database import Database


async def names(db: Database, actor: Actor, project_id: str) -> list[str]:
    return [person.name for person in await db.read(lambda tx: people.of_project(tx, actor, project_id))]


async def test_a_project_lists_present_and_former_members(
    db: Database, ada: Actor, bob: Actor, adas_home: str
) -> None:
    assert await names(db, ada, adas_home) == ["Ada"]
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.EDITOR))
    assert await names(db, bob, adas_home) == ["Ada", "Bob"]
    await db.write(lambda tx: projects.remove_member(tx, ada, adas_home, bob.user_id))
    assert await names(db, ada, adas_home) == ["Ada", "Bob"]


async def test_a_new_member_s_name_is_emitted_once_in_the_project_topic(
    db: Database, ada: Actor, bob: Actor, adas_home: str
) -> None:
    for role in (ProjectRole.VIEWER, ProjectRole.EDITOR):
        await db.write(lambda tx, role=role: projects.set_member(tx, ada, adas_home, bob.user_id, role))
    assert await emitted_people(db, adas_home) == [Person(ada.user_id, "Ada"), Person(bob.user_id, "Bob")]


async def test_a_new_name_is_emitted_in_the_projects_that_a_user_has_left(
    db: Database, ada: Actor, bob: Actor, adas_home: str
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.EDITOR))
    await db.write(lambda tx: projects.remove_member(tx, ada, adas_home, bob.user_id))
    await db.write(lambda tx: users.save(tx, bob, bob.user_id, name="Robert"))
    assert (await emitted_people(db, adas_home))[1:] == [
        Person(bob.user_id, "Bob"),
        Person(bob.user_id, "Robert"),
    ]
    assert await names(db, ada, adas_home) == ["Ada", "Robert"]


async def emitted_people(db: Database, project_id: str) -> list[Person]:
    log = await db.read(lambda tx: events.after(tx, project_topic(project_id), 0))
    return [from_json(Person, event.value or "") for event in log if event.noun == "person"]
