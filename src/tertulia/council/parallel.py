"""Parallel: all voices answer at the same time and do not see each other's answers."""

from tertulia.council.table import Table


async def parallel(table: Table) -> None:
    await table.ask_all()
