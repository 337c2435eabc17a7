"""Quote matching: a quotation that a person selected is found in the Markdown source."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.core.quoting import stands_in

SOURCE = "# Tea\n\nSteep it for **three** min_utes_, at `90 °C`.\n> “Not\n> longer”, they say."


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
def test_a_selection_from_rendered_text_is_found_in_its_source(selected: str) -> None:
    assert stands_in(selected, SOURCE)


SOURCE_WITH_BLOCKS = """Three ways, see [the guide](https://example.org/tea "Tea") or ![a pot](pot.png) this:

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
def test_a_selection_across_lists_links_tables_and_code_is_found(selected: str) -> None:
    assert stands_in(selected, SOURCE_WITH_BLOCKS)


@pytest.mark.parametrize("quotation", ["four minutes", "three at", "", "  ", "**", "longer Not"])
def test_a_quotation_that_the_text_does_not_contain_is_not_found(quotation: str) -> None:
    assert not stands_in(quotation, SOURCE)


@given(text=st.text(), start=st.integers(0, 50), length=st.integers(1, 50))
def test_every_excerpt_with_letters_is_found_in_its_text(text: str, start: int, length: int) -> None:
    part = text[start : start + length]
    assert stands_in(part, text) == any(map(str.isalnum, part))


def test_a_long_quotation_is_matched_in_linear_time() -> None:
    """A quadratic search would not finish."""
    assert not stands_in("a " * 990 + "b", "a " * 500_000)
    for start in ("![", "](", "1.", "```", ']( "'):
        assert not stands_in("b", start * 300_000)
