"""`tertulia index`: rebuilds the search index."""

from __future__ import annotations

from typing import Annotated

import typer

from tertulia.cli import local_database
from tertulia.core.errors import NotFound
from tertulia.engine.jobs.rebuild import enqueue_rebuild
from tertulia.store import projects
from tertulia.store.database import Tx

app = typer.Typer(help="The search index: rebuild it.", no_args_is_help=True)


@app.callback()
def about() -> None:
    """The search index: rebuild it."""


@app.command("rebuild")
def rebuild(
    project: Annotated[str, typer.Option(help="The id of a project. Without it: all projects.")] = "",
) -> None:
    """Re-index all files and messages; the server does it in the background while it runs."""

    def enqueue(tx: Tx) -> int:
        if project and not projects.exists(tx, project):
            raise NotFound(f"There is no project with the id {project!r}.")
        return enqueue_rebuild(tx, project or None)

    with local_database.connect() as db:
        count = db.write_now(enqueue)
    typer.echo(f"{count} jobs wait for the server. It runs them in the background; search works meanwhile.")
