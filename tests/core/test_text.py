"""Text that any database can hold, and text that hides nothing from whoever sees it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.core.text import storable, visible


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


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("Hello\U000e0069\U000e0067\U000e006e", "Hello"),
        ("pay\u200bload\ufeff", "payload"),
        ("exe.\u202etxt\u202c", "exe.txt"),
        ("\u2066a\u2069", "a"),
        ("x\ufe01\U000e0101\U000e0102", "x"),
    ],
)
def test_what_a_person_does_not_see_is_taken_out(text: str, seen: str) -> None:
    assert visible(text) == seen


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "👩\u200d👩\u200d👧 ❤\ufe0f",
        "می\u200cخواهم",
        "क्\u200dष",
        "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
        "葛\U000e0100",
        "\u200fשלום",
    ],
)
def test_emoji_and_scripts_that_need_joiners_stay(text: str) -> None:
    assert visible(text) == text
