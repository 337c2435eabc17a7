"""The round job: what was said in some rounds can be looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

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
    while cut := await means.db.read(lambda tx: _cut(tx, conversation_id, first, last)):
        if await means.db.write(partial(_write, cut=cut, anew=anew)):
            return


@dataclass(frozen=True, slots=True)
class Cut:
    spoken: Spoken
    chunked: Mapping[str, tuple[NewChunk, ...]]


def _cut(tx: Tx, conversation_id: str, first: int, last: int) -> Cut | None:
    """Where it is read, so that whoever writes does not wait for this."""
    spoken = read_rounds(tx, conversation_id, first, last)
    return Cut(spoken, of_messages(spoken.said)) if spoken else None


def _write(tx: Tx, cut: Cut, anew: bool) -> bool:
    is_written = write_rounds(tx, cut.spoken, cut.chunked, anew=anew)
    if is_written:
        jobs.add_once(tx, "embed")
    return is_written
