"""The round job: what was said in some rounds can be looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from tertulia.engine.means import Means
from tertulia.library.index import Spoken, of_messages, read_rounds, write_at_once, write_rounds
from tertulia.store import jobs
from tertulia.store.chunks import NewChunk
from tertulia.store.database import Tx

SHORT_CHARACTERS = 20_000
"""Cut within a millisecond."""


async def index_round(means: Means, payload: str) -> None:
    """Payload: the conversation, and the round or the first and the last, with colons between them."""
    conversation_id, *rounds = payload.removesuffix(":anew").split(":")
    first, last = int(rounds[0]), int(rounds[-1])
    anew = payload.endswith(":anew")
    if first == last and await means.db.write(lambda tx: _write_at_once(tx, conversation_id, first, anew)):
        return
    while cut := await means.db.read(lambda tx: _cut(tx, conversation_id, first, last)):
        if await means.db.write(partial(_write, cut=cut, anew=anew)):
            return


@dataclass(frozen=True, slots=True)
class Cut:
    spoken: Spoken
    chunked: Mapping[str, tuple[NewChunk, ...]]


def _write_at_once(tx: Tx, conversation_id: str, number: int, anew: bool) -> bool:
    """What is short is cut where it is written: nobody can speak in between. False when it is long."""
    spoken = read_rounds(tx, conversation_id, number, number)
    if spoken is None:
        return True
    if spoken.characters > SHORT_CHARACTERS:
        return False
    write_at_once(tx, spoken, anew=anew)
    jobs.add_once(tx, "embed")
    return True


def _cut(tx: Tx, conversation_id: str, first: int, last: int) -> Cut | None:
    """What is long is cut where it is read: whoever writes does not wait for this."""
    spoken = read_rounds(tx, conversation_id, first, last)
    return Cut(spoken, of_messages(spoken.said)) if spoken else None


def _write(tx: Tx, cut: Cut, anew: bool) -> bool:
    is_written = write_rounds(tx, cut.spoken, cut.chunked, anew=anew)
    if is_written:
        jobs.add_once(tx, "embed")
    return is_written
