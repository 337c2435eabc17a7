"""Command line: `tertulia serve`, `doctor`, `user`, `models`, `index` and the others."""

from __future__ import annotations

import sys

import typer
from rich.console import Console
from rich.markup import escape

from tertulia.cli import doctor, index, inventory, models, serve, users, version
from tertulia.core.errors import TertuliaError

app = typer.Typer(
    name="tertulia",
    help="One conversation, many models: a chat workspace where several models answer at once.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("serve")(serve.serve)
app.command("doctor")(doctor.doctor)
app.command("version")(version.version)
app.command("inventory")(inventory.list_entry_points)
app.command("openapi")(inventory.print_openapi)
app.add_typer(index.app, name="index")
app.add_typer(models.app, name="models")
app.add_typer(users.app, name="user")


def main() -> None:
    """Runs a command. Prints an error for people as one sentence instead of a traceback."""
    try:
        app()
    except TertuliaError as error:
        print_error(error)
        sys.exit(1)


def print_error(error: TertuliaError) -> None:
    """Escapes the message, because rich would read brackets in it as markup."""
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    console.print(f"[bold red]{error.code}[/] {escape(error.message)}")
