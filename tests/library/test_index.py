"""Indexing: what a chunk is shown by."""

from __future__ import annotations

import pytest

from tertulia.core.files import FileMetadata, Indexing, IndexState, ProjectFile
from tertulia.library.index import SUMMARY_CHARACTERS, of_file, summary


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


def test_a_passage_without_a_word_is_no_chunk_unless_the_file_begins_with_it() -> None:
    """By the first a file of nothing but brackets is still found by its path."""
    made = ProjectFile(
        "F",
        "P",
        "a.json",
        "application/json",
        0,
        "",
        1,
        FileMetadata(),
        IndexState(Indexing.QUEUED),
        "A",
        0,
        0,
    )
    found = list(of_file(made, "[\n" * 500 + '"walnut"\n' + "]\n" * 500, 50))
    assert [(chunk.location.start_line == 1, "walnut" in chunk.content) for chunk in found] == [
        (True, False),
        (False, True),
    ]
