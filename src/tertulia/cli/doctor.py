"""`tertulia doctor`: checks whether everything works, and says what to do if not."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import typer
from rich.console import Console
from rich.markup import escape

from tertulia import __version__
from tertulia import settings as settings_
from tertulia.app import new_id, now_ms
from tertulia.core.errors import TertuliaError
from tertulia.providers.egress import OPEN
from tertulia.providers.registry import ProviderRegistry
from tertulia.server.asgi import web_folder
from tertulia.settings import Settings
from tertulia.store import jobs
from tertulia.store.database import Database
from tertulia.store.jobs import Job


@dataclass(frozen=True, slots=True)
class CheckResult:
    subject: str
    is_good: bool
    message: str


def doctor() -> None:
    """Check data folder, database, clock, jobs, interface and models."""
    settings = settings_.read(os.environ)
    console = Console(highlight=False)
    results = list(run_checks(settings))
    for result in results:
        verdict = "[green]good[/]" if result.is_good else "[red]fail[/]"
        console.print(f"{verdict}  {result.subject:<10} {escape(result.message)}", soft_wrap=True)
    if not all(result.is_good for result in results):
        raise typer.Exit(1)


def run_checks(settings: Settings) -> Iterator[CheckResult]:
    yield CheckResult("program", True, f"Tertulia {__version__} on Python {platform.python_version()}")
    yield _home(settings)
    yield from _database(settings)
    yield _interface()
    yield _models(settings)


def _home(settings: Settings) -> CheckResult:
    try:
        settings_.make_home(settings.home)
    except TertuliaError as error:
        return CheckResult("data", False, error.message)
    return CheckResult("data", True, f"{settings.home}")


def _database(settings: Settings) -> Iterator[CheckResult]:
    try:
        db = Database.open(settings.database_url, clock=now_ms, new_id=new_id)
    except TertuliaError as error:
        yield CheckResult("database", False, error.message)
        return
    try:
        yield CheckResult("database", True, db.version)
        yield CheckResult("vectors", True, db.vectors)
        if db.is_shared:
            warning = db.clock_warning()
            yield CheckResult("clock", warning is None, warning or "agrees with the database's")
        yield _jobs(db.read_now(jobs.dead_jobs))
    finally:
        db.close()


def _jobs(dead_jobs: Sequence[Job]) -> CheckResult:
    if not dead_jobs:
        return CheckResult("jobs", True, "none failed for good")
    last = dead_jobs[0]
    message = f"{len(dead_jobs)} failed for good, the last of them {last.kind} {last.payload}: {last.error}"
    return CheckResult("jobs", False, f"{message} Run `tertulia index rebuild` to rebuild the search index.")


def _interface() -> CheckResult:
    folder = web_folder()
    return CheckResult("interface", folder is not None, "built" if folder else "not built. Run `make web`.")


def _models(settings: Settings) -> CheckResult:
    available = ProviderRegistry.from_environment(os.environ, settings.home, OPEN).available()
    if not available:
        return CheckResult(
            "models", False, "none can answer. Run `tertulia models pull smollm2` or set a provider's key."
        )
    return CheckResult("models", True, f"{len(available)} can answer, among them {available[0].display_name}")
