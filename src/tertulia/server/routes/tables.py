"""Table routes: saved tables, and the user's defaults."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter
from starlette.responses import Response

from tertulia import council
from tertulia.core.conversations import Visibility
from tertulia.core.events import project_topic
from tertulia.core.personas import Ownership
from tertulia.core.tables import Defaults, SavedTable, TableSpec, VoiceRef, cleaned
from tertulia.server.access import CurrentActor, InjectedApp
from tertulia.server.responses import json_response, no_content
from tertulia.store import events, tables
from tertulia.store.database import Tx

router = APIRouter(tags=["personas"])


@dataclass(frozen=True, slots=True)
class TableList:
    items: tuple[SavedTable, ...]
    cursor: int
    """The last event of the project's topic that this response includes; 0 without a project."""


@dataclass(frozen=True, slots=True)
class NewTable:
    name: str
    mode: str
    voices: tuple[VoiceRef, ...]
    scope: Ownership = Ownership.USER
    """The owner: the user or a project."""
    project_id: str | None = None
    visibility: Visibility = Visibility.OPEN
    chair: VoiceRef | None = None
    brief: str = ""

    @property
    def spec(self) -> TableSpec:
        return TableSpec(self.name, self.mode, self.visibility, self.voices, self.chair, self.brief)


@router.get("/api/tables", response_model=TableList)
async def list_tables(tertulia: InjectedApp, actor: CurrentActor, project_id: str | None = None) -> Response:
    """The tables of the project, then those of the user."""

    def read(tx: Tx) -> TableList:
        cursor = events.last_number(tx, project_topic(project_id)) if project_id else 0
        return TableList(tables.visible_to(tx, actor, project_id), cursor)

    return json_response(await tertulia.db.read(read))


@router.post("/api/tables", response_model=SavedTable, status_code=201)
async def add_table(tertulia: InjectedApp, actor: CurrentActor, new: NewTable) -> Response:
    spec = _checked(new.spec)
    return json_response(
        await tertulia.db.write(lambda tx: tables.add(tx, actor, new.scope, new.project_id, spec)), 201
    )


@router.put("/api/tables/{table_id}", response_model=SavedTable)
async def change_table(tertulia: InjectedApp, actor: CurrentActor, table_id: str, new: TableSpec) -> Response:
    spec = _checked(new)
    return json_response(await tertulia.db.write(lambda tx: tables.change(tx, actor, table_id, spec)))


@router.delete("/api/tables/{table_id}", status_code=204)
async def remove_table(tertulia: InjectedApp, actor: CurrentActor, table_id: str) -> Response:
    await tertulia.db.write(lambda tx: tables.remove(tx, actor, table_id))
    return no_content()


@router.get("/api/me/defaults", response_model=Defaults)
async def get_defaults(tertulia: InjectedApp, actor: CurrentActor) -> Response:
    return json_response(await tertulia.db.read(lambda tx: tables.defaults(tx, actor)))


@router.put("/api/me/defaults", response_model=Defaults)
async def set_defaults(tertulia: InjectedApp, actor: CurrentActor, new: Defaults) -> Response:
    """Replaces all defaults; omitted ones are removed."""
    if new.mode is not None:
        council.get(new.mode)
    return json_response(await tertulia.db.write(lambda tx: tables.set_defaults(tx, actor, new)))


def _checked(spec: TableSpec) -> TableSpec:
    spec = cleaned(spec)
    mode = council.get(spec.mode)
    mode.must_seat(len(spec.voices))
    if spec.chair is not None:
        mode.must_have_chair()
    return spec
