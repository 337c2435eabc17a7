"""The round job: what was said in some rounds can be looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from tertulia.engine.dependencies import Dependencies
from tertulia.library.index import RoundsToIndex, of_messages, read_rounds, write_at_once, write_rounds
from tertulia.store import jobs
from tertulia.store.chunks import NewChunk
from tertulia.store.database import Tx

SHORT_CHARACTERS = 20_000
"""Cut within a millisecond."""


@dataclass(frozen=True, slots=True)
class RoundRange:
    conversation_id: str
    first: int
    last: int
    anew: bool

    @classmethod
    def of(cls, payload: str) -> RoundRange:
        """The conversation, and the round or the first and the last, with colons between them."""
        conversation_id, *rounds = payload.removesuffix(":anew").split(":")
        return cls(conversation_id, int(rounds[0]), int(rounds[-1]), payload.endswith(":anew"))


def index_round_at_once(dependencies: Dependencies, tx: Tx, payload: str) -> bool:
    """What is short is cut where it is written: nobody can speak in between. False when it is long."""
    rounds = RoundRange.of(payload)
    if rounds.first != rounds.last:
        return False
    spoken = _read(tx, rounds)
    if spoken is None:
        return True
    if spoken.characters > SHORT_CHARACTERS:
        return False
    write_at_once(tx, spoken, anew=rounds.anew)
    jobs.add_once(tx, "embed")
    return True


async def index_round(dependencies: Dependencies, payload: str) -> None:
    rounds = RoundRange.of(payload)
    while cut := await dependencies.db.read(lambda tx: _cut(tx, rounds)):
        if await dependencies.db.write(partial(_write, cut=cut, anew=rounds.anew)):
            return


@dataclass(frozen=True, slots=True)
class ChunkedRounds:
    spoken: RoundsToIndex
    chunked: Mapping[str, tuple[NewChunk, ...]]


def _cut(tx: Tx, rounds: RoundRange) -> ChunkedRounds | None:
    """What is long is cut where it is read: whoever writes does not wait for this."""
    spoken = _read(tx, rounds)
    return ChunkedRounds(spoken, of_messages(spoken.said)) if spoken else None


def _read(tx: Tx, rounds: RoundRange) -> RoundsToIndex | None:
    return read_rounds(tx, rounds.conversation_id, rounds.first, rounds.last)


def _write(tx: Tx, cut: ChunkedRounds, anew: bool) -> bool:
    is_written = write_rounds(tx, cut.spoken, cut.chunked, anew=anew)
    if is_written:
        jobs.add_once(tx, "embed")
    return is_written
