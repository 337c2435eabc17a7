"""Synthesis: the chair reads a round that was answered before, and closes it."""

from tertulia.council.chair import conclude
from tertulia.council.table import Table


async def synthesis(table: Table) -> None:
    """Everyone's answer is at hand already; whoever has none is absent."""
    await conclude(table, await table.ask_all())
