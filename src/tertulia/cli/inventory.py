"""`tertulia inventory` and `tertulia openapi`: print the routes and the OpenAPI document, for tools."""

from __future__ import annotations

import json

import typer

from tertulia.core.serialization import to_plain
from tertulia.server.asgi import bare
from tertulia.server.route_inventory import inventory


def list_entry_points() -> None:
    """List every entry point with its access class, as JSON."""
    typer.echo(json.dumps(to_plain(inventory(bare())), indent=2))


def print_openapi() -> None:
    """Print the OpenAPI document of the HTTP API."""
    typer.echo(json.dumps(bare().openapi(), indent=2))
