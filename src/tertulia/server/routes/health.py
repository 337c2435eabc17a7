"""Health routes: whether the process runs, and whether it can serve requests."""

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
    """Answers as soon as the process runs."""
    return json_response(Health("ok", __version__))


@router.get("/api/ready", response_model=Health)
async def get_ready(tertulia: InjectedApp, anyone: Public) -> Response:
    """Answers if the database can be read."""
    await tertulia.db.read(users.count)
    return json_response(Health("ready", __version__))
