"""Persona routes: list, add, change, copy, remove, and read old versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from tertulia.core.events import project_topic
from tertulia.core.personas import Ownership, Persona, PersonaProfile
from tertulia.server.access import CurrentActor, InjectedApp
from tertulia.server.responses import json_response, no_content
from tertulia.store import events, personas
from tertulia.store.database import Tx

router = APIRouter(tags=["personas"])


@dataclass(frozen=True, slots=True)
class PersonaList:
    items: tuple[Persona, ...]
    cursor: int
    """The last event of the project's topic that this response includes; 0 without a project."""


@dataclass(frozen=True, slots=True)
class NewPersona:
    scope: Ownership
    character: PersonaProfile
    project_id: str | None = None


@dataclass(frozen=True, slots=True)
class PersonaChange:
    character: PersonaProfile


@dataclass(frozen=True, slots=True)
class NewCopy:
    scope: Ownership = Ownership.USER
    project_id: str | None = None


@router.get("/api/personas", response_model=PersonaList)
async def list_personas(
    tertulia: InjectedApp, actor: CurrentActor, project_id: str | None = None
) -> Response:
    """The personas of the server, of the project and of the user."""

    def read(tx: Tx) -> PersonaList:
        cursor = events.last_number(tx, project_topic(project_id)) if project_id else 0
        return PersonaList(personas.visible_to(tx, actor, project_id), cursor)

    return json_response(await tertulia.db.read(read))


@router.post("/api/personas", response_model=Persona, status_code=201)
async def add_persona(tertulia: InjectedApp, actor: CurrentActor, new: NewPersona) -> Response:
    persona = await tertulia.db.write(
        lambda tx: personas.add(tx, actor, new.scope, new.project_id, new.character)
    )
    return json_response(persona, 201)


@router.put("/api/personas/{persona_id}", response_model=Persona)
async def change_persona(
    tertulia: InjectedApp, actor: CurrentActor, persona_id: str, new: PersonaChange
) -> Response:
    """Saves a new version; earlier replies keep the version that wrote them."""
    return json_response(
        await tertulia.db.write(lambda tx: personas.change(tx, actor, persona_id, new.character))
    )


@router.delete("/api/personas/{persona_id}", status_code=204)
async def remove_persona(tertulia: InjectedApp, actor: CurrentActor, persona_id: str) -> Response:
    await tertulia.db.write(lambda tx: personas.remove(tx, actor, persona_id))
    return no_content()


@router.post("/api/personas/{persona_id}/duplicate", response_model=Persona, status_code=201)
async def duplicate_persona(
    tertulia: InjectedApp, actor: CurrentActor, persona_id: str, new: NewCopy
) -> Response:
    return json_response(
        await tertulia.db.write(
            lambda tx: personas.duplicate(tx, actor, persona_id, new.scope, new.project_id)
        ),
        201,
    )


@router.get("/api/personas/{persona_id}/versions/{number}", response_model=PersonaProfile)
async def get_persona_version(
    tertulia: InjectedApp,
    actor: CurrentActor,
    persona_id: str,
    number: Annotated[int, Path(ge=1, le=1 << 31)],
) -> Response:
    """A version of a persona, even when the persona was changed or removed since."""
    return json_response(await tertulia.db.read(lambda tx: personas.version(tx, actor, persona_id, number)))
