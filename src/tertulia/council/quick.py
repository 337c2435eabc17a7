"""Quick: the first voice answers."""

from tertulia.council.table import Table


async def quick(table: Table) -> None:
    await table.ask(table.voices[0])
