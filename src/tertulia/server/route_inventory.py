"""The inventory: every way in with its class of access; a route without one stops the start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any, get_args, get_type_hints

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, APIWebSocketRoute

from tertulia.core.errors import CannotStart
from tertulia.server.access import CLASSES, Access, RouteAccess

SOCKETS = {"/api/live": Access.SIGNED_IN}
"""Sockets check for themselves before they accept."""


def inventory(app: FastAPI) -> tuple[RouteAccess, ...]:
    entries: list[RouteAccess] = []
    for route in app.routes:
        if isinstance(route, APIRoute):
            entries += _entries(route)
        elif isinstance(route, APIWebSocketRoute):
            entries.append(RouteAccess("WEBSOCKET", route.path, SOCKETS[route.path], ("place",)))
        else:
            raise CannotStart(f"The inventory cannot look into {route!r}.")
    return tuple(entries)


def _entries(route: APIRoute) -> Iterator[RouteAccess]:
    access = _access(route.dependant, route.path)
    names = tuple(dict.fromkeys(_names(route.dependant)))
    ids = tuple(name for name in names if name.endswith("_id"))
    addresses = tuple(name for name in names if name.split("_")[-1] in ("url", "uri", "address", "endpoint"))
    for method in sorted(route.methods or ()):
        yield RouteAccess(method, route.path, access, ids, addresses)


def _access(dependant: Dependant, path: str) -> Access:
    found = [CLASSES[one.call] for one in dependant.dependencies if one.call in CLASSES]
    if len(found) != 1:
        raise CannotStart(f"The route {path} must name exactly one class of access; it names {len(found)}.")
    return found[0]


def _names(dependant: Dependant) -> Iterator[str]:
    for given in (*dependant.path_params, *dependant.query_params):
        yield given.name
    for given in dependant.body_params:
        yield from _fields(given.field_info.annotation)


def _fields(kind: Any) -> Iterator[str]:
    """The names of a body's fields, at any depth."""
    for inner in get_args(kind):
        yield from _fields(inner)
    if is_dataclass(kind):
        for name, inner in get_type_hints(kind).items():
            yield name
            yield from _fields(inner)
