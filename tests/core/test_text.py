"""Text that any database can hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.core.text import storable


@pytest.mark.parametrize("text", ["", "plain", "Grüße, 世界 😀", "\x01\x1f\x7f\ufffe", "\n\t"])
def test_text_that_can_be_held_stays_as_it_is(text: str) -> None:
    assert storable(text) == text


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("a\0b", "a\ufffdb"),
        ("\ud800", "\ufffd"),
        ("x\udc00y", "x\ufffdy"),
        ("\ud83d\ude00", "😀"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("é\0\ud83d", "é\ufffd\ufffd"),
    ],
)
def test_what_cannot_be_held_is_replaced(text: str, held: str) -> None:
    assert storable(text) == held


@given(st.text(st.characters()))
def test_anything_becomes_text_that_can_be_encoded(text: str) -> None:
    held = storable(text)
    assert held.encode().decode() == held
    assert "\0" not in held
    assert storable(held) == held
