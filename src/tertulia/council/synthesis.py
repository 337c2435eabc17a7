"""Synthesis: the chair reads a round that was answered before, and closes it."""

from tertulia.council.chair import conclude
from tertulia.council.peer_review import mean_places
from tertulia.council.table import Table


async def synthesis(table: Table) -> None:
    """All that was said in it counts, in whatever step; whoever said nothing is absent."""
    await conclude(table, table.said, ranks=mean_places(table.said, table.reviews))
