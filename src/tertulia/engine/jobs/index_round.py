"""The round job: what was said in some rounds can be looked up."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from tertulia.engine.means import Means
from tertulia.library.index import Spoken, of_messages, read_rounds, write_rounds
from tertulia.store import jobs
from tertulia.store.chunks import NewChunk
from tertulia.store.database import Tx


async def index_round(means: Means, payload: str) -> None:
    """Payload: the conversation, and the round or the first and the last, with colons between them."""
    conversation_id, *rounds = payload.removesuffix(":anew").split(":")
    first, last = int(rounds[0]), int(rounds[-1])
    anew = payload.endswith(":anew")
    while spoken := await means.db.read(lambda tx: read_rounds(tx, conversation_id, first, last)):
        chunked = await asyncio.to_thread(of_messages, spoken.said)  # whoever writes does not wait for this
        if await means.db.write(lambda tx, s=spoken, c=chunked: _write(tx, s, c, anew)):  # type: ignore[misc]
            return


def _write(tx: Tx, spoken: Spoken, chunked: Mapping[str, tuple[NewChunk, ...]], anew: bool) -> bool:
    is_written = write_rounds(tx, spoken, chunked, anew=anew)
    if is_written:
        jobs.add_once(tx, "embed")
    return is_written
