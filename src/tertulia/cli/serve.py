"""`tertulia serve`: runs the server in the foreground."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from tertulia import __version__
from tertulia import settings as settings_
from tertulia.providers.egress import OPEN, Egress
from tertulia.server import logs, uvicorn_server
from tertulia.server.state import ServerState
from tertulia.settings import Settings
from tertulia.store import users

console = Console(stderr=True, highlight=False, soft_wrap=True)


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on (TERTULIA_HOST).")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=settings_.LAST_PORT, help="Port to listen on (TERTULIA_PORT).")
    ] = None,
) -> None:
    """Serve Tertulia until stopped with Ctrl-C."""
    given = settings_.read(os.environ)
    settings = replace(given, host=host or given.host, port=given.port if port is None else port)
    run(settings, os.environ, OPEN)


def run(settings: Settings, environ: Mapping[str, str], egress: Egress) -> None:
    logs.configure(settings.log_level)
    uvicorn_server.serve(settings, environ, secrets.token_urlsafe(16), egress, _print_greeting)


async def _print_greeting(state: ServerState, port: int) -> None:
    settings = state.tertulia.settings
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    console.print(f"[bold]Tertulia {__version__}[/] is at [bold green]http://{host}:{port}[/]")
    console.print(f"  data    {escape(str(settings.home))}")
    console.print(f"  models  {escape(_available_models(state))}")
    if state.needs_setup_token and not await state.tertulia.db.read(users.count):
        console.print(f"  set-up token for the first account: [bold]{state.setup_token}[/]")


def _available_models(state: ServerState) -> str:
    available = state.tertulia.providers.available()
    if not available:
        return "none can answer yet: run `tertulia models pull smollm2` or set a provider's key"
    return ", ".join(model.display_name for model in available[:4]) + (" …" if len(available) > 4 else "")
