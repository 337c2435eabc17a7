"""After a job that wrote much: the database looks over what has outgrown its plans."""

from __future__ import annotations

from tertulia.core.errors import TertuliaError
from tertulia.engine.dependencies import Dependencies


async def analyze_tables(dependencies: Dependencies) -> None:
    """Without it a search is slower for a while, and nothing else: the job is done all the same."""
    try:
        await dependencies.db.analyze()
    except TertuliaError as error:
        dependencies.report(error)
