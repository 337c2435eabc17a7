"""Parallel: all voices at once, none sees what the others are saying."""

from tertulia.council.table import Table


async def parallel(table: Table) -> None:
    await table.ask_all()
