"""The rule behind the matrix: the server reads the store only through functions that take the actor (AZ)."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from fastapi import FastAPI

from tertulia.core.errors import CannotStart
from tertulia.server.asgi import bare
from tertulia.server.route_inventory import inventory

SERVER = Path(importlib.import_module("tertulia.server").__file__ or "").parent

TYPES = {"Tx", "SignedIn", "Blobs"}
"""Blobs are read by the hash of their content, which is known only from a file that the actor may see."""

WITHOUT_ACTOR = {
    # before the user is known
    "sessions.find_signed_in",
    "sessions.add",
    "sessions.touch",
    "users.count",
    "users.add_first",
    "users.find_credentials",
    # about the user of the session that was checked
    "users.password_hash",
    "users.set_password",
    "sessions.is_open",
    "files.used_bytes",
    # for administrators, by the access class of the routes
    "users.add",
    "config.get_all",
    "config.set",
    # a default for all users
    "config.default_models",
    # after the permission was checked in the same transaction
    "events.last_number",
    "events.first_number",
    "events.after",
    "turns.waiting_or_running",
    "turns.of_rounds",
    "blind.as_told",
    "messages.round",
}


def test_every_store_call_of_the_server_takes_the_actor_or_is_listed_here() -> None:
    without_actor = {name for name, takes_actor in store_calls() if not takes_actor}
    assert without_actor == WITHOUT_ACTOR


def store_calls() -> Iterator[tuple[str, bool]]:
    """Each function of the store that the server calls, and whether it takes the actor."""
    for path in SERVER.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        modules = dict(store_modules(tree))
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in modules
            ):
                function = getattr(modules[node.value.id], node.attr)
                if inspect.isfunction(function):
                    takes_actor = "actor" in inspect.signature(function).parameters
                    yield f"{node.value.id}.{node.attr}", takes_actor


def store_modules(tree: ast.Module) -> Iterator[tuple[str, ModuleType]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "tertulia.store":
            for alias in node.names:
                yield alias.asname or alias.name, importlib.import_module(f"tertulia.store.{alias.name}")


def test_the_server_imports_store_modules_and_not_their_functions() -> None:
    """Otherwise the list above would miss the call."""
    for path in SERVER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tertulia.store."):
                assert {alias.name for alias in node.names} <= TYPES, path


def test_a_route_without_an_access_class_stops_the_start() -> None:
    app = FastAPI()

    @app.get("/api/everyones")
    async def everyones() -> None: ...

    app.router.routes = [route for route in app.routes if getattr(route, "path", "") == "/api/everyones"]
    with pytest.raises(CannotStart, match="/api/everyones"):
        inventory(app)


def test_no_request_can_name_an_address_to_connect_to() -> None:
    """A route that takes one needs tests of outbound requests too (SF)."""
    assert [entry.path for entry in inventory(bare()) if entry.addresses] == []


def test_the_route_inventory_contains_the_whole_api() -> None:
    paths = bare().openapi()["paths"]
    declared = {(method.upper(), path) for path, operations in paths.items() for method in operations}
    assert declared == {(e.method, e.path) for e in inventory(bare()) if e.method != "WEBSOCKET"}
