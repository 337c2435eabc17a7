"""`tertulia index`: what can be looked up, built anew."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from tertulia import settings as settings_
from tertulia.app import new_id, now_ms
from tertulia.engine.jobs.rebuild import leave_rebuild
from tertulia.store.database import Database

app = typer.Typer(help="What can be looked up: build it anew.", no_args_is_help=True)


@app.callback()
def about() -> None:
    """What can be looked up: build it anew."""


@app.command("rebuild")
def rebuild(
    project: Annotated[str, typer.Option(help="The id of one project. Left out: all of them.")] = "",
) -> None:
    """Have all files and messages read anew, in the background of the server's next run."""
    settings = settings_.read(os.environ)
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    db = Database.open(settings.database_url, clock=now_ms, new_id=new_id)
    try:
        left = db.write_now(lambda tx: leave_rebuild(tx, project or None))
    finally:
        db.close()
    typer.echo(f"{left} jobs wait for the server. It does them while it runs; search works meanwhile.")
