"""Brain trust: all voices answer at the same time, then the chair writes the synthesis."""

from tertulia.council.chair import conclude
from tertulia.council.table import Table


async def brain_trust(table: Table) -> None:
    await conclude(table, await table.ask_all())
