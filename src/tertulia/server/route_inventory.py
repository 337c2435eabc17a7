"""Route inventory: lists every route with its access class; the server does not start if one is missing."""

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
"""WebSocket routes, which check their access class themselves before they accept."""


def inventory(app: FastAPI) -> tuple[RouteAccess, ...]:
    entries: list[RouteAccess] = []
    for route in app.routes:
        if isinstance(route, APIRoute):
            entries += _entries(route)
        elif isinstance(route, APIWebSocketRoute):
            entries.append(RouteAccess("WEBSOCKET", route.path, SOCKETS[route.path], ("place",)))
        else:
            raise CannotStart(f"The route inventory does not know the kind of {route!r}.")
    return tuple(entries)


def _entries(route: APIRoute) -> Iterator[RouteAccess]:
    access = _access(route.dependant, route.path)
    names = tuple(dict.fromkeys(_names(route.dependant)))
    ids = tuple(name for name in names if name.endswith("_id"))
    addresses = tuple(name for name in names if name.split("_")[-1] in ("url", "uri", "address", "endpoint"))
    for method in sorted(route.methods or ()):
        yield RouteAccess(method, route.path, access, ids, addresses)


def _access(dependant: Dependant, path: str) -> Access:
    classes = [CLASSES[child.call] for child in dependant.dependencies if child.call in CLASSES]
    if len(classes) != 1:
        raise CannotStart(f"The route {path} must have exactly one access class; it has {len(classes)}.")
    return classes[0]


def _names(dependant: Dependant) -> Iterator[str]:
    for parameter in (*dependant.path_params, *dependant.query_params):
        yield parameter.name
    for parameter in dependant.body_params:
        yield from _fields(parameter.field_info.annotation)


def _fields(type_: Any) -> Iterator[str]:
    """The names of all fields of a body, at any depth."""
    for inner in get_args(type_):
        yield from _fields(inner)
    if is_dataclass(type_):
        for name, inner in get_type_hints(type_).items():
            yield name
            yield from _fields(inner)
