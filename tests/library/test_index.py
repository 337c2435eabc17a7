"""Indexing: what a chunk is shown by."""

from __future__ import annotations

import pytest

from tertulia.library.index import SUMMARY_CHARACTERS, summary


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("\n\n## Tea in the garden ##\nat five", "Tea in the garden"),
        ("---\n* first of all", "first of all"),
        ("| a | b |\n", "a | b"),
        ("***\n", ""),
        ("word " * 100, "word " * 31 + "word…"),
        (f"a{' ' * 3_000}b", f"a{' ' * (SUMMARY_CHARACTERS - 2)}…"),
    ],
)
def test_a_chunk_is_shown_by_its_first_line_that_says_something(content: str, shown: str) -> None:
    assert summary(content) == shown
