"""Voices: the models and personas at the table of a turn, and the assignment of seats and lanes."""

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
    """The lane, the same from round to round: "openai:gpt-4o:0" or "persona:<id>:0"."""
    seat: int
    """1 to 8; decides colour and shape."""
    name: str
    model: str
    """The model's key, such as "openai:gpt-4o"."""
    persona_id: str | None = None
    persona_version: int | None = None
    """The persona's version at the time of the reply."""
    letter: str = ""
    """The name of the voice while its round is blind; empty in a round that never was."""
    effort: Effort | None = None
    """The thinking effort; None: the model's default."""


@dataclass(frozen=True, slots=True)
class SeatRequest:
    """A request for a seat: a model or a persona, with its name."""

    model: str
    name: str
    persona_id: str | None = None
    persona_version: int | None = None
    hue: int | None = None
    """The seat that a persona prefers."""
    effort: Effort | None = None

    @property
    def lane(self) -> str:
        return f"persona:{self.persona_id}" if self.persona_id else self.model


@dataclass(frozen=True, slots=True)
class HeldSeat:
    """The seat that a lane keeps in a conversation, even when other voices come and go."""

    lane: str
    seat: int


def assign_seats(
    seat_requests: Iterable[SeatRequest], seated: Iterable[Voice] = (), held_seats: Iterable[HeldSeat] = ()
) -> tuple[Voice, ...]:
    """Assigns a seat, a lane and a unique name to each; the same model twice gets two lanes and two names.

    `seated` are the voices already at the table; `held_seats` are the conversation's seats, oldest first.
    """
    requests = tuple(seat_requests)
    present = tuple(seated)
    names = {voice.name for voice in present}
    lanes = _lanes(requests, Counter(voice.id.rpartition(":")[0] for voice in present))
    seats = _choose_seats(requests, lanes, {voice.seat for voice in present}, held_seats)
    voices = []
    for request, lane, seat_number in zip(requests, lanes, seats, strict=True):
        name = _unused_name(request.name, names)
        names.add(name)
        voices.append(_voice(request, lane, seat_number, name))
    return tuple(voices)


def _voice(request: SeatRequest, lane: str, seat_number: int, name: str) -> Voice:
    return Voice(
        lane,
        seat_number,
        name,
        request.model,
        request.persona_id,
        request.persona_version,
        effort=request.effort,
    )


def _lanes(requests: tuple[SeatRequest, ...], used: Counter[str]) -> list[str]:
    """The lane of each; the second GPT-4o of a table has a lane of its own."""
    lanes = []
    for request in requests:
        lanes.append(f"{request.lane}:{used[request.lane]}")
        used[request.lane] += 1
    return lanes


def holding(held_seats: Iterable[HeldSeat], voices: Iterable[Voice]) -> tuple[HeldSeat, ...]:
    """The seats of a conversation after these voices were seated; each keeps its current seat."""
    seats = {held_seat.lane: held_seat.seat for held_seat in held_seats}
    seats.update((voice.id, voice.seat) for voice in voices)
    return tuple(HeldSeat(lane, seat_number) for lane, seat_number in seats.items())


def held_in(own: Iterable[HeldSeat], others: Iterable[HeldSeat]) -> tuple[HeldSeat, ...]:
    """The seats of a conversation, then the seats of lanes that only other branches of its tree have."""
    seats = {held_seat.lane: held_seat for held_seat in own}
    return (*seats.values(), *(held_seat for held_seat in others if held_seat.lane not in seats))


def _unused_name(name: str, names: set[str]) -> str:
    """Adds a number to a name in use: the voices and the chair know each other by name alone."""
    numbered = (f"{name} {number}" for number in count(2))
    return name if name not in names else next(candidate for candidate in numbered if candidate not in names)


def assign_seats_once(
    voices: Iterable[Voice],
    table: Iterable[Voice],
    lanes: Sequence[str] = (),
    held_seats: Iterable[HeldSeat] = (),
) -> tuple[Voice, ...]:
    """Seats the voices of an aside: a voice of the table keeps its seat, any other takes a free one.

    `lanes` names the lane of each voice, for a table where the same model sits twice.
    """
    known = {voice.id: voice for voice in table}
    occupied = {voice.seat for voice in known.values()}
    seats = {held_seat.lane: held_seat.seat for held_seat in held_seats}
    aside = []
    for voice, lane in zip_longest(voices, lanes):
        chosen = with_lane(voice, lane) if lane else voice
        present = known.get(chosen.id)
        number = present.seat if present else _free_seat(seats.get(chosen.id, voice.seat), occupied)
        occupied.add(number)
        aside.append(replace(chosen, seat=number, name=present.name if present else chosen.name))
    return tuple(aside)


def with_lane(voice: Voice, lane: str) -> Voice:
    """The voice in another lane of the same model or persona: the second GPT-4o of a table is "GPT-4o 2"."""
    own_key, _, own_number = voice.id.rpartition(":")
    key, _, number = lane.rpartition(":")
    if key != own_key or number not in _NUMBERS:
        raise Invalid(f"{voice.name} has no lane {lane[:100]!r}: the id of a voice that answers names one.")
    if number == own_number:
        return voice
    name = voice.name if own_number == "0" else voice.name.removesuffix(f" {int(own_number) + 1}")
    return replace(voice, id=lane, name=name if number == "0" else f"{name} {int(number) + 1}")


_NUMBERS = frozenset(map(str, range(SEATS)))


def _free_seat(preferred: int, occupied: set[int]) -> int:
    candidates = (preferred, *range(1, SEATS + 1))
    return next((number for number in candidates if number not in occupied), SEATS)


def _choose_seats(
    requests: tuple[SeatRequest, ...], lanes: list[str], occupied: set[int], held_seats: Iterable[HeldSeat]
) -> list[int]:
    """A lane keeps the seat that it holds in the conversation; a new lane takes a seat that no lane holds.

    A new persona takes the seat of its own colour if no lane holds it. When every seat is held, the new lane
    takes the seat of a lane that is not at the table, the longest held first.
    """
    seats = {held_seat.lane: held_seat.seat for held_seat in held_seats}
    assigned: dict[int, int] = {}

    def assign(index: int, number: int | None, reserved: Iterable[int]) -> None:
        if number and number not in occupied and number not in assigned.values() and number not in reserved:
            assigned[index] = number

    for index, lane in enumerate(lanes):
        assign(index, seats.get(lane), ())
    for index, request in enumerate(requests):
        if index not in assigned:
            assign(index, request.hue, seats.values())
    held_numbers = tuple(dict.fromkeys(seats.values()))
    unheld = (number for number in range(1, SEATS + 1) if number not in held_numbers)
    candidates = (*unheld, *held_numbers)
    free = (number for number in candidates if number not in occupied and number not in assigned.values())
    return [assigned.get(index) or next(free, SEATS) for index in range(len(requests))]
