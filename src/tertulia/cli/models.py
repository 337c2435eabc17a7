"""`tertulia models`: lists and downloads the built-in models."""

from __future__ import annotations

import os
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Table

from tertulia import settings
from tertulia.providers import model_downloads
from tertulia.providers.model_downloads import ModelFile, Progress

app = typer.Typer(help="The built-in models: list and download them.", no_args_is_help=True)


@app.command("list")
def list_models() -> None:
    """Show the models that can be downloaded, and which are installed."""
    home = settings.read(os.environ).home
    table = Table("model", "installed", "size", "licence", "description", box=None, pad_edge=False)
    for file in model_downloads.manifest():
        installed = "yes" if model_downloads.is_installed(file, home) else "no"
        table.add_row(file.name, installed, _size(file.size), file.licence, file.about)
    Console().print(table)


@app.command("pull")
def pull_model(
    name: Annotated[str, typer.Argument(help="The model's name, as `tertulia models list` shows it.")],
) -> None:
    """Download a model and verify its checksum."""
    home = settings.read(os.environ).home
    settings.make_home(home)
    file = model_downloads.get(name)
    with Bar(TextColumn("{task.description}"), BarColumn(), DownloadColumn(), transient=True) as bar:
        path = model_downloads.pull(
            file,
            home,
            report=_progress_reporter(bar, file),
            mirror=os.environ.get(model_downloads.MIRROR_NAME),
        )
    Console(highlight=False).print(f"{file.name} is ready: {escape(str(path))}", soft_wrap=True)


def _progress_reporter(bar: Bar, file: ModelFile) -> model_downloads.Report:
    task = bar.add_task(file.name, total=file.size)

    def report(progress: Progress) -> None:
        bar.update(task, description=progress.step, completed=progress.done, total=progress.total)

    return report


def _size(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
