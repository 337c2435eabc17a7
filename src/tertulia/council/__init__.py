"""Council modes: how several voices answer a question. Each mode is one short async function over a table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tertulia.core.errors import Invalid
from tertulia.core.voices import SEATS
from tertulia.council.brain_trust import brain_trust
from tertulia.council.debate import debate
from tertulia.council.parallel import parallel
from tertulia.council.peer_review import peer_review
from tertulia.council.quick import quick
from tertulia.council.relay import relay
from tertulia.council.second_opinion import second_opinion
from tertulia.council.summary import summary
from tertulia.council.synthesis import synthesis
from tertulia.council.table import Table

Reads = Callable[[int, int], tuple[int, ...]]
"""Takes a voice's index at the table and the number of voices; returns how many replies each of its asks
reads."""


def _reads_nothing(index: int, voices: int) -> tuple[int, ...]:
    return (0,)


def _reads_first_answer(index: int, voices: int) -> tuple[int, ...]:
    return (1,) if index else (0,)


def _reads_earlier_answers(index: int, voices: int) -> tuple[int, ...]:
    return (index,)


def _reads_all_answers_second(index: int, voices: int) -> tuple[int, ...]:
    return (0, voices)


@dataclass(frozen=True, slots=True)
class Mode:
    name: str
    run: Callable[[Table], Awaitable[None]]
    least: int
    most: int
    has_chair: bool = False
    can_be_blind: bool = False
    """Whether the names can be hidden: the voices do not speak of each other."""
    asks_at_once: bool = True
    """Whether every voice is asked for an answer from the start."""
    reads: Reads = _reads_nothing
    """For the cost estimate: how many replies of its round each voice reads, in each of its asks."""

    def must_seat(self, voices: int) -> None:
        if not self.least <= voices <= self.most:
            allowed = f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"
            noun = "voice" if self.most == 1 else "voices"
            raise Invalid(f"The mode {self.name} takes {allowed} {noun}; this turn has {voices}.")

    def must_have_chair(self) -> None:
        if not self.has_chair:
            raise Invalid(f"The mode {self.name} has no summary. Choose another mode, or leave `chair` out.")


MODES = {
    mode.name: mode
    for mode in (
        Mode("quick", quick, least=1, most=1),
        Mode("parallel", parallel, least=1, most=SEATS, can_be_blind=True),
        Mode(
            "second_opinion",
            second_opinion,
            least=2,
            most=SEATS,
            asks_at_once=False,
            reads=_reads_first_answer,
        ),
        Mode("brain_trust", brain_trust, least=2, most=SEATS, has_chair=True),
        Mode("relay", relay, least=2, most=SEATS, asks_at_once=False, reads=_reads_earlier_answers),
        Mode("debate", debate, least=2, most=SEATS, has_chair=True, reads=_reads_all_answers_second),
        Mode(
            "peer_review", peer_review, least=2, most=SEATS, has_chair=True, reads=_reads_all_answers_second
        ),
    )
}

SYNTHESIS = Mode("synthesis", synthesis, least=1, most=SEATS, has_chair=True)
"""Adds a synthesis to a round that already has its answers; no round starts with it."""

SUMMARY = Mode("summary", summary, least=1, most=1)
"""Summarises a branch in a round of the conversation it left."""


def get(name: str) -> Mode:
    if name not in MODES:
        raise Invalid(f"There is no mode {name!r}. The modes are: {', '.join(MODES)}.")
    return MODES[name]
