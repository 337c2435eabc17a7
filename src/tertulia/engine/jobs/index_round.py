"""The round job: indexes the messages of some rounds for search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from tertulia.core.jobs import EmbedChunks, IndexRounds
from tertulia.engine.dependencies import Dependencies
from tertulia.library.index import RoundsToIndex, of_messages, read_rounds, write_at_once, write_rounds
from tertulia.store import jobs
from tertulia.store.chunks import NewChunk
from tertulia.store.database import Tx

SHORT_CHARACTERS = 20_000
"""Text up to this length is cut into chunks within a millisecond."""


def index_rounds_inline(dependencies: Dependencies, tx: Tx, job: IndexRounds) -> bool:
    """Indexes one short round within the transaction, so that nothing can change it in between."""
    if job.first != job.last:
        return False
    rounds = _read(tx, job)
    if rounds is None:
        return True
    if rounds.characters > SHORT_CHARACTERS:
        return False
    write_at_once(tx, rounds, anew=job.anew)
    jobs.enqueue_once(tx, EmbedChunks())
    return True


async def index_rounds(dependencies: Dependencies, job: IndexRounds) -> None:
    """Starts over when a message changed between the read and the write."""
    while chunked := await dependencies.db.read(lambda tx: _cut(tx, job)):
        if await dependencies.db.write(partial(_write, chunked=chunked, anew=job.anew)):
            return


@dataclass(frozen=True, slots=True)
class ChunkedRounds:
    rounds: RoundsToIndex
    chunks: Mapping[str, tuple[NewChunk, ...]]
    """The chunks of each message, by its id."""


def _cut(tx: Tx, job: IndexRounds) -> ChunkedRounds | None:
    """Cuts the messages within a read, so that no writer waits for it."""
    rounds = _read(tx, job)
    return ChunkedRounds(rounds, of_messages(rounds.messages)) if rounds else None


def _read(tx: Tx, job: IndexRounds) -> RoundsToIndex | None:
    return read_rounds(tx, job.conversation_id, job.first, job.last)


def _write(tx: Tx, chunked: ChunkedRounds, anew: bool) -> bool:
    is_written = write_rounds(tx, chunked.rounds, chunked.chunks, anew=anew)
    if is_written:
        jobs.enqueue_once(tx, EmbedChunks())
    return is_written
