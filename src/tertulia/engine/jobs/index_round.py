"""The round job: what was said in some rounds can be looked up."""

from __future__ import annotations

from tertulia.engine.means import Means
from tertulia.library.index import index_rounds
from tertulia.store import jobs
from tertulia.store.database import Tx


async def index_round(means: Means, payload: str) -> None:
    """Payload: the conversation, and the round or the first and the last, with colons between them."""
    conversation_id, *rounds = payload.removesuffix(":anew").split(":")
    first, last = int(rounds[0]), int(rounds[-1])

    def index(tx: Tx) -> None:
        index_rounds(tx, conversation_id, first, last, anew=payload.endswith(":anew"))
        jobs.add_once(tx, "embed")

    await means.db.write(index)
