"""Health: is the process alive, and is it ready for work."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter
from starlette.responses import Response

from tertulia import __version__
from tertulia.server.access import InjectedApp, Public
from tertulia.server.responses import json_response
from tertulia.store import users

router = APIRouter(tags=["service"])


@dataclass(frozen=True, slots=True)
class Health:
    status: str
    version: str


@router.get("/api/health", response_model=Health)
async def get_health(anyone: Public) -> Response:
    """Needs nothing but the process."""
    return json_response(Health("ok", __version__))


@router.get("/api/ready", response_model=Health)
async def get_ready(tertulia: InjectedApp, anyone: Public) -> Response:
    """The database answers."""
    await tertulia.db.read(users.count)
    return json_response(Health("ready", __version__))
