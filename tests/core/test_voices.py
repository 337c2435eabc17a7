"""Seats: a lane keeps its seat and colour through a conversation, even when other voices come and go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tertulia.core.voices import (
    SEATS,
    HeldSeat,
    SeatRequest,
    Voice,
    assign_seats,
    assign_seats_once,
    held_in,
    holding,
)

MODELS = [
    SeatRequest(f"house:{name}", name.title()) for name in ("alpha", "beta", "gamma", "delta", "epsilon")
]
ALPHA, BETA, GAMMA, DELTA, EPSILON = MODELS
SAGE = SeatRequest("house:alpha", "The Sage", persona_id="SAGE", hue=1)
WASP = SeatRequest("house:alpha", "The Wasp", persona_id="WASP", hue=7)


class Table:
    """A conversation's seats, without anything else."""

    def __init__(self) -> None:
        self.held: tuple[HeldSeat, ...] = ()

    def sit(self, *requests: SeatRequest) -> dict[str, int]:
        voices = assign_seats(requests, held_seats=self.held)
        self.held = holding(self.held, voices)
        return {voice.name: voice.seat for voice in voices}


def test_a_model_keeps_its_seat_when_the_table_changes() -> None:
    table = Table()
    assert table.sit(ALPHA, BETA) == {"Alpha": 1, "Beta": 2}
    assert table.sit(BETA) == {"Beta": 2}
    assert table.sit(GAMMA, BETA) == {"Gamma": 3, "Beta": 2}
    assert table.sit(BETA, GAMMA, ALPHA) == {"Beta": 2, "Gamma": 3, "Alpha": 1}


def test_a_persona_takes_the_seat_of_its_colour_if_no_lane_holds_it() -> None:
    table = Table()
    assert table.sit(ALPHA, WASP) == {"Alpha": 1, "The Wasp": 7}
    assert table.sit(SAGE, BETA) == {"The Sage": 2, "Beta": 3}
    assert table.sit(SAGE, ALPHA) == {"The Sage": 2, "Alpha": 1}


def test_the_same_model_twice_keeps_a_seat_for_each_lane() -> None:
    table = Table()
    assert table.sit(ALPHA, ALPHA, BETA) == {"Alpha": 1, "Alpha 2": 2, "Beta": 3}
    assert table.sit(BETA, ALPHA) == {"Beta": 3, "Alpha": 1}
    assert table.sit(ALPHA, ALPHA) == {"Alpha": 1, "Alpha 2": 2}


def test_a_ninth_voice_takes_the_oldest_seat_of_an_absent_voice() -> None:
    table = Table()
    eight = [SeatRequest(f"house:m{number}", f"M{number}") for number in range(SEATS)]
    table.sit(*eight)
    assert table.sit(eight[0], EPSILON) == {"M0": 1, "Epsilon": 2}
    assert table.sit(EPSILON, eight[0]) == {"Epsilon": 2, "M0": 1}


def test_an_absent_voice_asked_in_an_aside_gets_its_old_seat() -> None:
    table = Table()
    table.sit(ALPHA, BETA, GAMMA)
    present = assign_seats([ALPHA, BETA], held_seats=table.held)
    [aside] = assign_seats_once(assign_seats([GAMMA]), present, held_seats=table.held)
    assert aside.seat == 3


def test_a_branch_inherits_the_seats_of_its_tree() -> None:
    own = (HeldSeat("house:alpha:0", 1),)
    others = (HeldSeat("house:alpha:0", 4), HeldSeat("house:beta:0", 2))
    seats = held_in(own, others)
    assert seats == (HeldSeat("house:alpha:0", 1), HeldSeat("house:beta:0", 2))
    assert [voice.seat for voice in assign_seats([GAMMA, BETA], held_seats=seats)] == [3, 2]


@given(
    st.lists(
        st.lists(st.sampled_from([*MODELS, SAGE, WASP]), min_size=1, max_size=5, unique=True), max_size=12
    )
)
def test_a_voice_never_changes_its_seat(rounds: list[list[SeatRequest]]) -> None:
    table, first_seats = Table(), dict[str, int]()
    for requests in rounds:
        seats = table.sit(*requests)
        assert len(set(seats.values())) == len(seats)
        for name, seat_number in seats.items():
            assert first_seats.setdefault(name, seat_number) == seat_number
    assert len(set(first_seats.values())) == len(first_seats)


@given(
    st.lists(st.sampled_from(MODELS), max_size=8), st.lists(st.builds(HeldSeat, st.text(), st.integers(1, 8)))
)
def test_every_voice_gets_a_different_seat_with_any_held_seats(
    requests: list[SeatRequest], held_seats: list[HeldSeat]
) -> None:
    voices: tuple[Voice, ...] = assign_seats(requests, held_seats=held_seats)
    assert sorted({voice.seat for voice in voices}) == sorted(voice.seat for voice in voices)
