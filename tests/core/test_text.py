"""Text sanitizing: text that any database can store, and text without invisible characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.core.text import storable, visible


@pytest.mark.parametrize("text", ["", "plain", "Grüße, 世界 😀", "\x01\x1f\x7f\ufffe", "\n\t"])
def test_storable_text_stays_unchanged(text: str) -> None:
    assert storable(text) == text


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("a\0b", "a\ufffdb"),
        ("\ud800", "\ufffd"),
        ("x\udc00y", "x\ufffdy"),
        ("\ud83d\ude00", "😀"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("é\0\ud83d", "é\ufffd\ufffd"),
    ],
)
def test_unstorable_characters_are_replaced(text: str, stored: str) -> None:
    assert storable(text) == stored


@given(st.text(st.characters()))
def test_any_text_becomes_encodable(text: str) -> None:
    stored = storable(text)
    assert stored.encode().decode() == stored
    assert "\0" not in stored
    assert storable(stored) == stored


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("Hello\U000e0069\U000e0067\U000e006e", "Hello"),
        ("pay\u200bload\ufeff", "payload"),
        ("exe.\u202etxt\u202c", "exe.txt"),
        ("\u2066a\u2069", "a"),
        ("x\ufe01\U000e0101\U000e0102", "x"),
    ],
)
def test_invisible_characters_are_removed(text: str, cleaned: str) -> None:
    assert visible(text) == cleaned


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
def test_emoji_and_scripts_that_need_joiners_stay_unchanged(text: str) -> None:
    assert visible(text) == text
