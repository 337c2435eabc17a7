"""The inventory: every way in with its class of access; a route without one stops the start."""

from __future__ import annotations

import re

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, APIWebSocketRoute

from tertulia.core.errors import CannotStart
from tertulia.server.access import CLASSES, Access, EntryPoint

SOCKETS = {"/api/live": Access.SIGNED_IN}
"""Sockets check for themselves before they accept."""

_ID = re.compile(r"{(\w+_id)}")


def inventory(app: FastAPI) -> tuple[EntryPoint, ...]:
    entries = []
    for route in app.routes:
        if isinstance(route, APIRoute):
            access = _access(route.dependant, route.path)
            entries += [
                EntryPoint(method, route.path, access, tuple(_ID.findall(route.path)))
                for method in sorted(route.methods or ())
            ]
        elif isinstance(route, APIWebSocketRoute):
            entries.append(EntryPoint("WEBSOCKET", route.path, SOCKETS[route.path], ()))
        else:
            raise CannotStart(f"The inventory cannot look into {route!r}.")
    return tuple(entries)


def _access(dependant: Dependant, path: str) -> Access:
    found = [CLASSES[one.call] for one in dependant.dependencies if one.call in CLASSES]
    if len(found) != 1:
        raise CannotStart(f"The route {path} must name exactly one class of access; it names {len(found)}.")
    return found[0]
