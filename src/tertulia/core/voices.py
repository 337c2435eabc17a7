"""Voices: who sits at the table for a turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count, zip_longest

from tertulia.core.errors import Invalid
from tertulia.core.thinking import Effort

SEATS = 8


@dataclass(frozen=True, slots=True)
class Voice:
    id: str
    """The lane: the same from round to round, "openai:gpt-4o:0" or "persona:<id>:0"."""
    seat: int
    """1 to 8: hue and shape."""
    name: str
    model: str
    """The model's key, "openai:gpt-4o"."""
    persona_id: str | None = None
    persona_version: int | None = None
    """The persona as it was when it spoke."""
    letter: str = ""
    """What it goes by while its round is blind; empty in a round that never was."""
    effort: Effort | None = None
    """How much it thinks; None: as much as its model does by itself."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whom someone wants at the table: a model or a persona, and what it is called."""

    model: str
    name: str
    persona_id: str | None = None
    persona_version: int | None = None
    hue: int | None = None
    """The seat a persona keeps where it is free."""
    effort: Effort | None = None

    @property
    def lane(self) -> str:
        return f"persona:{self.persona_id}" if self.persona_id else self.model


@dataclass(frozen=True, slots=True)
class HeldSeat:
    """The seat a lane has in a conversation: it keeps it whoever else comes to the table or leaves it."""

    lane: str
    seat: int


def seat(
    wanted: Iterable[Wanted], taken: Iterable[Voice] = (), held: Iterable[HeldSeat] = ()
) -> tuple[Voice, ...]:
    """Gives each its place, lane and name; the same one twice, or two of one name, are told apart.

    `taken` are those who sit there already; `held` are the seats of the conversation, the oldest first.
    """
    guests = tuple(wanted)
    others = tuple(taken)
    names = {voice.name for voice in others}
    lanes = _lanes(guests, Counter(voice.id.rpartition(":")[0] for voice in others))
    places = _places(guests, lanes, {voice.seat for voice in others}, held)
    voices = []
    for one, lane, place in zip(guests, lanes, places, strict=True):
        name = _unused(one.name, names)
        names.add(name)
        voices.append(_voice(one, lane, place, name))
    return tuple(voices)


def _voice(one: Wanted, lane: str, place: int, name: str) -> Voice:
    return Voice(lane, place, name, one.model, one.persona_id, one.persona_version, effort=one.effort)


def _lanes(guests: tuple[Wanted, ...], seen: Counter[str]) -> list[str]:
    """The second GPT-4o of a table has a lane of its own."""
    lanes = []
    for one in guests:
        lanes.append(f"{one.lane}:{seen[one.lane]}")
        seen[one.lane] += 1
    return lanes


def holding(held: Iterable[HeldSeat], voices: Iterable[Voice]) -> tuple[HeldSeat, ...]:
    """The seats of a conversation after these have sat down: where one sits now is where it stays."""
    seats = {one.lane: one.seat for one in held}
    seats.update((voice.id, voice.seat) for voice in voices)
    return tuple(HeldSeat(lane, place) for lane, place in seats.items())


def held_in(own: Iterable[HeldSeat], others: Iterable[HeldSeat]) -> tuple[HeldSeat, ...]:
    """The seats of a conversation, then those that only branches beside it know of."""
    seats = {one.lane: one for one in own}
    return (*seats.values(), *(one for one in others if one.lane not in seats))


def _unused(name: str, names: set[str]) -> str:
    """The others at the table know each other by name alone, and so does the chair."""
    numbered = (f"{name} {number}" for number in count(2))
    return name if name not in names else next(one for one in numbered if one not in names)


def seat_aside(
    voices: Iterable[Voice],
    table: Iterable[Voice],
    lanes: Sequence[str] = (),
    held: Iterable[HeldSeat] = (),
) -> tuple[Voice, ...]:
    """For a question to a few: who is at the table keeps the place, and whoever is not takes a free one.

    `lanes` says which of two that are the same is meant, one for each voice.
    """
    known = {voice.id: voice for voice in table}
    taken = {voice.seat for voice in known.values()}
    seats = {one.lane: one.seat for one in held}
    asked = []
    for voice, lane in zip_longest(voices, lanes):
        meant = in_lane(voice, lane) if lane else voice
        before = known.get(meant.id)
        place = before.seat if before else _free_from(seats.get(meant.id, voice.seat), taken)
        taken.add(place)
        asked.append(replace(meant, seat=place, name=before.name if before else meant.name))
    return tuple(asked)


def in_lane(voice: Voice, lane: str) -> Voice:
    """The same voice in another lane of its own: the second GPT-4o of a table is "GPT-4o 2"."""
    own, _, nth = voice.id.rpartition(":")
    wanted, _, number = lane.rpartition(":")
    if wanted != own or number not in _NUMBERS:
        raise Invalid(f"{voice.name} has no lane {lane[:100]!r}: the id of a voice that answers names one.")
    if number == nth:
        return voice
    name = voice.name if nth == "0" else voice.name.removesuffix(f" {int(nth) + 1}")
    return replace(voice, id=lane, name=name if number == "0" else f"{name} {int(number) + 1}")


_NUMBERS = frozenset(map(str, range(SEATS)))


def _free_from(place: int, taken: set[int]) -> int:
    return next((one for one in (place, *range(1, SEATS + 1)) if one not in taken), SEATS)


def _places(
    guests: tuple[Wanted, ...], lanes: list[str], taken: set[int], held: Iterable[HeldSeat]
) -> list[int]:
    """Whoever has a seat in the conversation keeps it, and whoever comes takes one that is nobody's.

    A persona comes in the colour it is known by where that is nobody's. When all are somebody's, someone who
    is not there gives theirs up: first whoever came first.
    """
    seats = {one.lane: one.seat for one in held}
    kept: dict[int, int] = {}

    def keep(nth: int, place: int | None, others: Iterable[int]) -> None:
        if place and place not in taken and place not in kept.values() and place not in others:
            kept[nth] = place

    for nth, lane in enumerate(lanes):
        keep(nth, seats.get(lane), ())
    for nth, one in enumerate(guests):
        if nth not in kept:
            keep(nth, one.hue, seats.values())
    somebodys = tuple(dict.fromkeys(seats.values()))
    nobodys = (place for place in range(1, SEATS + 1) if place not in somebodys)
    free = (place for place in (*nobodys, *somebodys) if place not in taken and place not in kept.values())
    return [kept.get(nth) or next(free, SEATS) for nth in range(len(guests))]
