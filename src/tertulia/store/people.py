"""People of a project: the names of all present and former members, so that messages keep their authors."""

from __future__ import annotations

from tertulia.core.events import EventKind, project_topic
from tertulia.core.projects import Person
from tertulia.core.users import Actor, User
from tertulia.store import access
from tertulia.store.sql import sql
from tertulia.store.transactions import Tx


def add(tx: Tx, project_id: str, user_id: str) -> None:
    """Records that a user became a member; emits their name in the project's topic the first time."""
    is_new = tx.maybe(_ADD, project_id=project_id, user_id=user_id, now=tx.now) is not None
    if is_new:
        person = Person(user_id, tx.one(_NAME, id=user_id).name)
        tx.emit(project_topic(project_id), EventKind.CHANGED, "person", user_id, person)


_ADD = sql("""
    INSERT INTO project_people (project_id, user_id, created_at) VALUES (:project_id, :user_id, :now)
    ON CONFLICT (project_id, user_id) DO NOTHING RETURNING user_id
""")

_NAME = sql("SELECT name FROM users WHERE id = :id")


def of_project(tx: Tx, actor: Actor, project_id: str) -> tuple[Person, ...]:
    """Members and former members in the order in which they joined, with id and name only."""
    access.to_project(tx, actor, project_id)
    return tuple(Person(row.id, row.name) for row in tx.execute(_OF_PROJECT, project_id=project_id))


_OF_PROJECT = sql("""
    SELECT u.id, u.name FROM project_people AS seen JOIN users AS u ON u.id = seen.user_id
    WHERE seen.project_id = :project_id ORDER BY seen.created_at, u.id
""")


def renamed(tx: Tx, user: User) -> None:
    """Emits a user's new name in every project that they are or were a member of."""
    for row in tx.execute(_PROJECTS_OF, user_id=user.id):
        tx.emit(
            project_topic(row.project_id), EventKind.CHANGED, "person", user.id, Person(user.id, user.name)
        )


_PROJECTS_OF = sql("SELECT project_id FROM project_people WHERE user_id = :user_id ORDER BY project_id")
