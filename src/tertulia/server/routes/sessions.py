"""Session routes: the devices on which an account is signed in."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter
from starlette.responses import Response

from tertulia.core.sessions import Session
from tertulia.server.access import CurrentActor, InjectedApp
from tertulia.server.responses import json_response, no_content
from tertulia.store import sessions

router = APIRouter(tags=["account"])


@dataclass(frozen=True, slots=True)
class SessionList:
    items: tuple[Session, ...]


@router.get("/api/sessions", response_model=SessionList)
async def list_sessions(tertulia: InjectedApp, actor: CurrentActor) -> Response:
    return json_response(SessionList(await tertulia.db.read(lambda tx: sessions.visible_to(tx, actor))))


@router.delete("/api/sessions/{session_id}", status_code=204)
async def remove_session(tertulia: InjectedApp, actor: CurrentActor, session_id: str) -> Response:
    """Signs a device out."""
    await tertulia.db.write(lambda tx: sessions.remove(tx, actor, session_id))
    return no_content()
