"""Synthesis: the chair reads a round that already has its answers and writes the synthesis."""

from tertulia.council.chair import conclude
from tertulia.council.peer_review import mean_places
from tertulia.council.table import Table


async def synthesis(table: Table) -> None:
    """Reads the replies of all steps; a voice without a reply counts as absent."""
    await conclude(
        table, table.earlier_replies, ranks=mean_places(table.earlier_replies, table.earlier_reviews)
    )
