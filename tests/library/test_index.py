"""Indexing: the summary of a chunk, and which pieces of a file become chunks."""

from __future__ import annotations

import pytest

from tertulia.core.files import FileMetadata, IndexPhase, IndexState, ProjectFile
from tertulia.library.index import SUMMARY_CHARACTERS, of_file, summary


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("\n\n## Tea in the garden ##\nat five", "Tea in the garden"),
        ("---\n* first of all", "first of all"),
        ("| a | b |\n", "a | b"),
        ("***\n", ""),
        ("word " * 100, "word " * 31 + "word…"),
        (f"a{' ' * 3_000}b", f"a{' ' * (SUMMARY_CHARACTERS - 2)}…"),
    ],
)
def test_the_summary_is_the_first_line_with_words(content: str, expected: str) -> None:
    assert summary(content) == expected


def test_a_piece_without_words_is_not_indexed_except_the_first_of_a_file() -> None:
    """The first piece is kept so that even a file of brackets can be found by its path."""
    file = ProjectFile(
        "F",
        "P",
        "a.json",
        "application/json",
        0,
        "",
        1,
        FileMetadata(),
        IndexState(IndexPhase.QUEUED),
        "A",
        0,
        0,
    )
    file_chunks = list(of_file(file, "[\n" * 500 + '"walnut"\n' + "]\n" * 500, 50))
    assert [(chunk.location.start_line == 1, "walnut" in chunk.content) for chunk in file_chunks] == [
        (True, False),
        (False, True),
    ]
