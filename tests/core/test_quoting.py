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


LISTED = """Three ways, see [the guide](https://example.org/tea "Tea") or ![a pot](pot.png) this:

- Loose &amp; hot
- In a bag

1. Boil
2. Pour

| cup | ml |
|-----|----|
| big | 300 |

```python
steep(3)
```
"""


@pytest.mark.parametrize(
    "selected",
    [
        "see the guide or this:\n\nLoose & hot\nIn a bag",
        "In a bag\nBoil\nPour\ncup\tml\nbig\t300",
        "big 300\nsteep(3)",
        "[the guide](https://example.org/tea",
    ],
)
def test_lists_links_tables_and_code_are_selected_as_they_are_drawn(selected: str) -> None:
    assert stands_in(selected, LISTED)


@pytest.mark.parametrize("other", ["four minutes", "three at", "", "  ", "**", "longer Not"])
def test_what_was_not_said_does_not(other: str) -> None:
    assert not stands_in(other, DRAWN)


@given(text=st.text(), start=st.integers(0, 50), length=st.integers(1, 50))
def test_every_part_of_a_text_that_has_letters_stands_in_it(text: str, start: int, length: int) -> None:
    part = text[start : start + length]
    assert stands_in(part, text) == any(map(str.isalnum, part))


def test_a_long_quotation_of_a_longer_text_is_settled_at_once() -> None:
    """A search that began again at every word would still be looking."""
    assert not stands_in("a " * 990 + "b", "a " * 500_000)
    for start in ("![", "](", "1.", "```", ']( "'):
        assert not stands_in("b", start * 300_000)
