"""Project routes: projects, their members and their people."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter
from starlette.responses import Response

from tertulia import council
from tertulia.core.events import project_topic
from tertulia.core.projects import Member, Person, Project, ProjectRole, ProjectSettings
from tertulia.core.users import Actor
from tertulia.server.access import CurrentActor, InjectedApp
from tertulia.server.responses import json_response, no_content
from tertulia.store import events, people, projects
from tertulia.store.database import Tx

router = APIRouter(tags=["projects"])


@dataclass(frozen=True, slots=True)
class ProjectList:
    items: tuple[Project, ...]


@dataclass(frozen=True, slots=True)
class ProjectPage:
    project: Project
    members: tuple[Member, ...]
    cursor: int


@dataclass(frozen=True, slots=True)
class NewProject:
    name: str
    description: str = ""
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class ProjectChange:
    name: str | None = None
    description: str | None = None
    instructions: str | None = None
    settings: ProjectSettings | None = None


@dataclass(frozen=True, slots=True)
class NewMember:
    user_id: str
    role: ProjectRole


@dataclass(frozen=True, slots=True)
class MemberList:
    items: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class PersonList:
    items: tuple[Person, ...]
    cursor: int
    """The last event of the project's topic that this response includes."""


@router.get("/api/projects", response_model=ProjectList)
async def list_projects(tertulia: InjectedApp, actor: CurrentActor) -> Response:
    return json_response(ProjectList(await tertulia.db.read(lambda tx: projects.visible_to(tx, actor))))


@router.post("/api/projects", response_model=Project, status_code=201)
async def add_project(tertulia: InjectedApp, actor: CurrentActor, new: NewProject) -> Response:
    project = await tertulia.db.write(
        lambda tx: projects.add(tx, actor, new.name, new.description, new.instructions)
    )
    return json_response(project, 201)


@router.get("/api/projects/{project_id}", response_model=ProjectPage)
async def get_project(tertulia: InjectedApp, actor: CurrentActor, project_id: str) -> Response:
    return json_response(await tertulia.db.read(lambda tx: _page(tx, actor, project_id)))


@router.put("/api/projects/{project_id}", response_model=Project)
async def change_project(
    tertulia: InjectedApp, actor: CurrentActor, project_id: str, change: ProjectChange
) -> Response:
    if change.settings is not None:
        council.get(change.settings.default_mode)
    project = await tertulia.db.write(
        lambda tx: projects.save(
            tx,
            actor,
            project_id,
            name=change.name,
            description=change.description,
            instructions=change.instructions,
            settings=change.settings,
        )
    )
    return json_response(project)


@router.delete("/api/projects/{project_id}", status_code=204)
async def remove_project(tertulia: InjectedApp, actor: CurrentActor, project_id: str) -> Response:
    """Deletes a project with its conversations, and stops running replies."""
    removed_ids = await tertulia.db.write(lambda tx: projects.remove(tx, actor, project_id))
    tertulia.turns.cancel_in(removed_ids)
    return no_content()


@router.get("/api/projects/{project_id}/members", response_model=MemberList)
async def list_members(tertulia: InjectedApp, actor: CurrentActor, project_id: str) -> Response:
    return json_response(
        MemberList(await tertulia.db.read(lambda tx: projects.members(tx, actor, project_id)))
    )


@router.put("/api/projects/{project_id}/members", response_model=MemberList)
async def set_member(tertulia: InjectedApp, actor: CurrentActor, project_id: str, new: NewMember) -> Response:
    members = await tertulia.db.write(
        lambda tx: projects.set_member(tx, actor, project_id, new.user_id, new.role)
    )
    return json_response(MemberList(members))


@router.delete("/api/projects/{project_id}/members/{user_id}", status_code=204)
async def remove_member(
    tertulia: InjectedApp, actor: CurrentActor, project_id: str, user_id: str
) -> Response:
    await tertulia.db.write(lambda tx: projects.remove_member(tx, actor, project_id, user_id))
    return no_content()


@router.get("/api/projects/{project_id}/people", response_model=PersonList)
async def list_people(tertulia: InjectedApp, actor: CurrentActor, project_id: str) -> Response:
    """The names of all members and former members, to show as authors of their messages."""

    def read(tx: Tx) -> PersonList:
        items = people.of_project(tx, actor, project_id)
        return PersonList(items, events.last_number(tx, project_topic(project_id)))

    return json_response(await tertulia.db.read(read))


def _page(tx: Tx, actor: Actor, project_id: str) -> ProjectPage:
    return ProjectPage(
        projects.get(tx, actor, project_id),
        projects.members(tx, actor, project_id),
        events.last_number(tx, project_topic(project_id)),
    )
