"""Quoting: words a person selected stand in the text they were drawn from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.core.quoting import stands_in

DRAWN = "# Tea\n\nSteep it for **three** min_utes_, at `90 °C`.\n> “Not\n> longer”, they say."


@pytest.mark.parametrize(
    "selected",
    [
        "Steep it",
        "three minutes, at 90 °C",
        "it for\nthree",
        '"Not longer", they say',
        "**three**",
        "Tea Steep",
    ],
)
def test_what_can_be_selected_stands_in_the_text(selected: str) -> None:
    assert stands_in(selected, DRAWN)


@pytest.mark.parametrize("other", ["four minutes", "three at", "", "  ", "**", "longer Not"])
def test_what_was_not_said_does_not(other: str) -> None:
    assert not stands_in(other, DRAWN)


@given(text=st.text(), start=st.integers(0, 50), length=st.integers(1, 50))
def test_every_part_of_a_text_that_has_letters_stands_in_it(text: str, start: int, length: int) -> None:
    part = text[start : start + length]
    assert stands_in(part, text) == any(letter.strip("*_`~>#|\\ ") for letter in part.split())


def test_a_long_quotation_of_a_longer_text_is_settled_at_once() -> None:
    """A search that began again at every word would still be looking."""
    assert not stands_in("a " * 990 + "b", "a " * 500_000)
