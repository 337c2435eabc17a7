"""`tertulia models`: the weights that can be fetched, and fetching them."""

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

app = typer.Typer(help="The built-in models: which there are, and fetching them.", no_args_is_help=True)


@app.command("list")
def list_models() -> None:
    """Show the models that can be fetched, and which are here."""
    home = settings.read(os.environ).home
    table = Table("model", "here", "size", "licence", "what it is", box=None, pad_edge=False)
    for asset in model_downloads.manifest():
        here = "yes" if model_downloads.is_installed(asset, home) else "no"
        table.add_row(asset.name, here, _size(asset.size), asset.licence, asset.about)
    Console().print(table)


@app.command("pull")
def pull_model(
    name: Annotated[str, typer.Argument(help="The model's name, as `tertulia models list` shows it.")],
) -> None:
    """Fetch a model's weights, and check that they are the right ones."""
    home = settings.read(os.environ).home
    settings.make_home(home)
    asset = model_downloads.get(name)
    with Bar(TextColumn("{task.description}"), BarColumn(), DownloadColumn(), transient=True) as bar:
        path = model_downloads.pull(
            asset, home, report=_drawn(bar, asset), mirror=os.environ.get(model_downloads.MIRROR_NAME)
        )
    Console(highlight=False).print(f"{asset.name} is ready: {escape(str(path))}", soft_wrap=True)


def _drawn(bar: Bar, asset: ModelFile) -> model_downloads.Report:
    task = bar.add_task(asset.name, total=asset.size)

    def report(progress: Progress) -> None:
        bar.update(task, description=progress.step, completed=progress.done, total=progress.total)

    return report


def _size(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
