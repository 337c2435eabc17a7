"""Projects: what belongs together, and its members."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter
from starlette.responses import Response

from tertulia import council
from tertulia.core.errors import Invalid
from tertulia.core.events import project_place
from tertulia.core.projects import TEXT_LIMIT, Member, Membership, Project, ProjectSettings, clean_name
from tertulia.core.users import Actor
from tertulia.server.access import Someone, TheHouse
from tertulia.server.answers import answer, nothing
from tertulia.store import events, projects
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
    role: Membership


@dataclass(frozen=True, slots=True)
class MemberList:
    items: tuple[Member, ...]


@router.get("/api/projects", response_model=ProjectList)
async def list_projects(house: TheHouse, actor: Someone) -> Response:
    return answer(ProjectList(await house.db.read(lambda tx: projects.visible_to(tx, actor))))


@router.post("/api/projects", response_model=Project, status_code=201)
async def add_project(house: TheHouse, actor: Someone, new: NewProject) -> Response:
    name = clean_name(new.name)
    _must_be_short(new.description, new.instructions)
    return answer(
        await house.db.write(lambda tx: projects.add(tx, actor, name, new.description, new.instructions)), 201
    )


@router.get("/api/projects/{project_id}", response_model=ProjectPage)
async def get_project(house: TheHouse, actor: Someone, project_id: str) -> Response:
    return answer(await house.db.read(lambda tx: _page(tx, actor, project_id)))


@router.put("/api/projects/{project_id}", response_model=Project)
async def change_project(house: TheHouse, actor: Someone, project_id: str, change: ProjectChange) -> Response:
    name = None if change.name is None else clean_name(change.name)
    _must_be_short(change.description or "", change.instructions or "")
    _must_be_sane(change.settings)
    return answer(
        await house.db.write(
            lambda tx: projects.save(
                tx,
                actor,
                project_id,
                name=name,
                description=change.description,
                instructions=change.instructions,
                settings=change.settings,
            )
        )
    )


@router.delete("/api/projects/{project_id}", status_code=204)
async def remove_project(house: TheHouse, actor: Someone, project_id: str) -> Response:
    """Its conversations go with it; whatever was being answered there stops."""
    gone = await house.db.write(lambda tx: projects.remove(tx, actor, project_id))
    await house.turns.withdraw(gone)
    return nothing()


@router.get("/api/projects/{project_id}/members", response_model=MemberList)
async def list_members(house: TheHouse, actor: Someone, project_id: str) -> Response:
    return answer(MemberList(await house.db.read(lambda tx: projects.members(tx, actor, project_id))))


@router.put("/api/projects/{project_id}/members", response_model=MemberList)
async def set_member(house: TheHouse, actor: Someone, project_id: str, new: NewMember) -> Response:
    members = await house.db.write(
        lambda tx: projects.set_member(tx, actor, project_id, new.user_id, new.role)
    )
    return answer(MemberList(members))


@router.delete("/api/projects/{project_id}/members/{user_id}", status_code=204)
async def remove_member(house: TheHouse, actor: Someone, project_id: str, user_id: str) -> Response:
    await house.db.write(lambda tx: projects.remove_member(tx, actor, project_id, user_id))
    return nothing()


def _page(tx: Tx, actor: Actor, project_id: str) -> ProjectPage:
    return ProjectPage(
        projects.get(tx, actor, project_id),
        projects.members(tx, actor, project_id),
        events.last_number(tx, project_place(project_id)),
    )


def _must_be_short(*texts: str) -> None:
    if any(len(text) > TEXT_LIMIT for text in texts):
        raise Invalid(f"Description and instructions hold at most {TEXT_LIMIT:,} characters each.")


def _must_be_sane(settings: ProjectSettings | None) -> None:
    if settings is None:
        return
    if not 1_000 <= settings.max_context_tokens <= 10_000_000:
        raise Invalid("max_context_tokens must be between 1,000 and 10,000,000.")
    if (
        not 5 <= settings.retrieval_config.chunk_size <= 1_000
        or not 0 <= settings.retrieval_config.max_results <= 100
    ):
        raise Invalid("chunk_size must be 5 to 1,000 lines and max_results 0 to 100.")
    council.get(settings.default_mode)
    if len(settings.default_models) > 8:
        raise Invalid("At most 8 models can be seated by default.")
