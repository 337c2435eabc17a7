"""Seats: a speaker keeps its colour through a conversation, whoever else comes and goes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tertulia.core.voices import SEATS, HeldSeat, Voice, Wanted, held_in, holding, seat, seat_aside

MODELS = [Wanted(f"house:{name}", name.title()) for name in ("alpha", "beta", "gamma", "delta", "epsilon")]
ALPHA, BETA, GAMMA, DELTA, EPSILON = MODELS
SAGE = Wanted("house:alpha", "The Sage", persona_id="SAGE", hue=1)
WASP = Wanted("house:alpha", "The Wasp", persona_id="WASP", hue=7)


class Table:
    """A conversation as far as its seats go."""

    def __init__(self) -> None:
        self.held: tuple[HeldSeat, ...] = ()

    def sit(self, *wanted: Wanted) -> dict[str, int]:
        voices = seat(wanted, held=self.held)
        self.held = holding(self.held, voices)
        return {voice.name: voice.seat for voice in voices}


def test_a_model_keeps_its_seat_when_the_table_changes() -> None:
    table = Table()
    assert table.sit(ALPHA, BETA) == {"Alpha": 1, "Beta": 2}
    assert table.sit(BETA) == {"Beta": 2}
    assert table.sit(GAMMA, BETA) == {"Gamma": 3, "Beta": 2}
    assert table.sit(BETA, GAMMA, ALPHA) == {"Beta": 2, "Gamma": 3, "Alpha": 1}


def test_a_persona_comes_in_its_colour_where_that_is_nobodys() -> None:
    table = Table()
    assert table.sit(ALPHA, WASP) == {"Alpha": 1, "The Wasp": 7}
    assert table.sit(SAGE, BETA) == {"The Sage": 2, "Beta": 3}
    assert table.sit(SAGE, ALPHA) == {"The Sage": 2, "Alpha": 1}


def test_two_of_the_same_keep_a_seat_each() -> None:
    table = Table()
    assert table.sit(ALPHA, ALPHA, BETA) == {"Alpha": 1, "Alpha 2": 2, "Beta": 3}
    assert table.sit(BETA, ALPHA) == {"Beta": 3, "Alpha": 1}
    assert table.sit(ALPHA, ALPHA) == {"Alpha": 1, "Alpha 2": 2}


def test_a_ninth_speaker_takes_the_seat_of_the_first_who_is_not_there() -> None:
    table = Table()
    eight = [Wanted(f"house:m{number}", f"M{number}") for number in range(SEATS)]
    table.sit(*eight)
    assert table.sit(eight[0], EPSILON) == {"M0": 1, "Epsilon": 2}
    assert table.sit(EPSILON, eight[0]) == {"Epsilon": 2, "M0": 1}


def test_whoever_is_asked_aside_comes_back_in_the_same_colour() -> None:
    table = Table()
    table.sit(ALPHA, BETA, GAMMA)
    now = seat([ALPHA, BETA], held=table.held)
    [asked] = seat_aside(seat([GAMMA]), now, held=table.held)
    assert asked.seat == 3


def test_a_branch_knows_the_seats_of_its_tree() -> None:
    own = (HeldSeat("house:alpha:0", 1),)
    beside = (HeldSeat("house:alpha:0", 4), HeldSeat("house:beta:0", 2))
    seats = held_in(own, beside)
    assert seats == (HeldSeat("house:alpha:0", 1), HeldSeat("house:beta:0", 2))
    assert [voice.seat for voice in seat([GAMMA, BETA], held=seats)] == [3, 2]


@given(
    st.lists(
        st.lists(st.sampled_from([*MODELS, SAGE, WASP]), min_size=1, max_size=5, unique=True), max_size=12
    )
)
def test_no_speaker_ever_changes_its_seat(rounds: list[list[Wanted]]) -> None:
    table, first = Table(), dict[str, int]()
    for wanted in rounds:
        now = table.sit(*wanted)
        assert len(set(now.values())) == len(now)
        for name, place in now.items():
            assert first.setdefault(name, place) == place
    assert len(set(first.values())) == len(first)


@given(
    st.lists(st.sampled_from(MODELS), max_size=8), st.lists(st.builds(HeldSeat, st.text(), st.integers(1, 8)))
)
def test_everyone_has_a_seat_of_their_own_whatever_is_held(
    wanted: list[Wanted], held: list[HeldSeat]
) -> None:
    voices: tuple[Voice, ...] = seat(wanted, held=held)
    assert sorted({voice.seat for voice in voices}) == sorted(voice.seat for voice in voices)
