"""Chunking: every character is in exactly one piece, and pieces begin at headings and definitions."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.library.chunk import CHARACTERS, HEADING, LINES, chunk, is_code, pieces

texts = st.text(alphabet=st.sampled_from("ab .\n\r\x0b\u2028#`\tdefclass():é漢"), max_size=4_000)
endings = st.sampled_from(["md", "py", "ts", "csv", ""])


@given(texts, endings)
def test_each_piece_is_the_text_at_its_stated_position(text, ending):
    for piece in chunk(text, ending):
        assert text[piece.start_char : piece.end_char] == piece.content
        before = text[: piece.start_char]
        assert piece.start_line == before.count("\n") + 1
        assert piece.end_line == piece.start_line + piece.content.count("\n")


@given(texts, endings)
def test_pieces_do_not_overlap_and_only_white_space_lies_between(text, ending):
    position = 0
    for piece in chunk(text, ending):
        assert piece.start_char >= position
        assert not text[position : piece.start_char].strip()
        position = piece.end_char
    assert not text[position:].strip()


@given(texts, endings, st.integers(1, 60), st.integers(60, 2_000))
def test_no_piece_exceeds_the_limits_of_lines_and_characters(text, ending, lines, characters):
    for piece in chunk(text, ending, lines, characters):
        assert len(piece.content) <= characters
        assert piece.end_line - piece.start_line < lines


def test_a_markdown_section_begins_a_piece_with_its_parent_headings():
    green, black = "Green tea is steeped at eighty degrees, not more.", "Black tea takes boiling water."
    text = f"# Tea\n\n{green}\n\n## Black\n\n{black}\n"
    assert [(p.heading, p.start_line) for p in chunk(text, "md")] == [("Tea", 1), ("Tea / Black", 5)]


def test_a_comment_in_a_code_fence_is_not_a_heading():
    text = "# Run\n\nSome words about how it is run, long enough.\n\n```sh\n# not a heading\nmake run\n```\n"
    assert {p.heading for p in chunk(text, "md")} == {"Run"}


def test_python_functions_begin_pieces_and_methods_carry_their_class():
    body = "    return 'a line that is long enough to stand alone in a piece'\n"
    pot = "class Pot:\n    kind = 'a teapot made of iron, heavy'\n    def pour(self):\n    "
    text = f"import os\n\n@cache\ndef brew():\n{body}\n{pot}{body}"
    result = {p.heading: p.start_line for p in chunk(text, "py")}
    assert result["Pot.pour"] == 9
    assert "brew" in result


def test_other_languages_begin_pieces_at_their_definitions():
    body = "  const answer = 'long enough to stand alone in a piece of its own';\n}\n"
    text = f"export async function brew() {{\n{body}\nexport class Pot {{\n{body}"
    assert [p.heading for p in chunk(text, "ts")] == ["brew", "Pot"]


def test_a_line_as_long_as_a_page_is_cut_between_sentences():
    text = "This is one sentence of a long page. " * 100
    result = chunk(text, "txt")
    assert len(result) > 3
    assert all(p.start_line == p.end_line == 1 for p in result)
    assert all(p.content.endswith("page.") for p in result)


def test_a_file_of_short_lines_is_cut_at_fifty_lines():
    result = chunk("x = 1\n" * 120, "csv", characters=10_000)
    assert [(p.start_line, p.end_line) for p in result] == [(1, LINES), (51, 100), (101, 120)]


def test_a_heading_loses_its_signs_and_is_cut_to_the_limit():
    headings = ("# Tea ##", "# C#", "#", "##  ", "# ##", "####### Seven", f"# {'x' * 5000}")
    result = [chunk(f"{heading}\n{'word ' * 20}\n", "md")[0].heading for heading in headings]
    assert result == ["Tea", "C", "", "", "", "", "x" * HEADING]


def test_a_long_text_is_chunked_without_holding_all_pieces_in_memory():
    text = "a\n" * 30_000
    tracemalloc.start()
    count = sum(1 for _ in pieces(text, "txt"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 600
    assert peak < 1 << 20


@pytest.mark.parametrize("line", [f"# a{' ' * 200_000}x", f"# {'#' * 200_000}x", f"# {' #' * 100_000}x"])
def test_a_very_long_line_that_looks_like_a_heading_is_chunked_in_linear_time(line):
    assert chunk(line, "md")[0].start_char == 0


def test_a_megabyte_of_repeated_text_is_chunked_in_linear_time():
    for text in ("a" * 1_000_000, "[" * 1_000_000, " a" * 500_000, "é" * 1_000_000):
        assert sum(len(p.content) for p in chunk(text, "md")) > 400_000
        assert max(len(p.content) for p in chunk(text, "py")) <= CHARACTERS


def test_code_is_recognised_by_its_file_extension():
    assert all(is_code(path) for path in ("src/a.py", "A.TS", "x/y.test.svelte"))
    assert not any(is_code(path) for path in ("a.md", "a.pdf", "py", "a.py/readme", "notes.txt", ""))
