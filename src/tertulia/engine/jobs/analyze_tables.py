"""Table statistics: after a job that wrote much, the database analyses the tables that have grown."""

from __future__ import annotations

from tertulia.core.errors import TertuliaError
from tertulia.engine.dependencies import Dependencies


async def analyze_tables(dependencies: Dependencies) -> None:
    """A failure only makes searches slower for a while, so that the job does not fail with it."""
    try:
        await dependencies.db.analyze()
    except TertuliaError as error:
        dependencies.report(error)
