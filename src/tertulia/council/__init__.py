"""How several voices answer: one short async function per mode, talking to a table."""

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
"""From a voice's place at the table and how many sit there."""


def _nothing(place: int, voices: int) -> tuple[int, ...]:
    return (0,)


def _the_first(place: int, voices: int) -> tuple[int, ...]:
    return (1,) if place else (0,)


def _those_before(place: int, voices: int) -> tuple[int, ...]:
    return (place,)


def _everyone_then(place: int, voices: int) -> tuple[int, ...]:
    return (0, voices)


@dataclass(frozen=True, slots=True)
class Mode:
    name: str
    run: Callable[[Table], Awaitable[None]]
    least: int
    most: int
    has_chair: bool = False
    can_be_blind: bool = False
    """Whether voices do not speak of each other, so that names can be hidden."""
    asks_at_once: bool = True
    """Whether everyone is asked for an answer from the beginning."""
    reads: Reads = _nothing
    """For an estimate: how many replies of its round each voice reads, in each of its asks."""

    def must_seat(self, voices: int) -> None:
        if not self.least <= voices <= self.most:
            wanted = f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"
            noun = "voice" if self.most == 1 else "voices"
            raise Invalid(f"The mode {self.name} takes {wanted} {noun}; this turn has {voices}.")

    def must_have_chair(self) -> None:
        if not self.has_chair:
            raise Invalid(f"The mode {self.name} has no summary. Choose another mode, or leave `chair` out.")


MODES = {
    mode.name: mode
    for mode in (
        Mode("quick", quick, least=1, most=1),
        Mode("parallel", parallel, least=1, most=SEATS, can_be_blind=True),
        Mode("second_opinion", second_opinion, least=2, most=SEATS, asks_at_once=False, reads=_the_first),
        Mode("brain_trust", brain_trust, least=2, most=SEATS, has_chair=True),
        Mode("relay", relay, least=2, most=SEATS, asks_at_once=False, reads=_those_before),
        Mode("debate", debate, least=2, most=SEATS, has_chair=True, reads=_everyone_then),
        Mode("peer_review", peer_review, least=2, most=SEATS, has_chair=True, reads=_everyone_then),
    )
}

SYNTHESIS = Mode("synthesis", synthesis, least=1, most=SEATS, has_chair=True)
"""For a round that was answered before; nobody begins a round with it."""

SUMMARY = Mode("summary", summary, least=1, most=1)
"""For a round that brings a branch back."""


def get(name: str) -> Mode:
    if name not in MODES:
        raise Invalid(f"There is no mode {name!r}. The modes are: {', '.join(MODES)}.")
    return MODES[name]
