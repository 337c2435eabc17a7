"""Queries: any text becomes safe words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.library.query import LENGTH_LIMIT, SHAPED_LIMIT, TERMS_LIMIT, identifiers, parts, shaped, terms


@given(st.text(max_size=2_000))
def test_any_text_becomes_a_few_words_without_marks(text):
    found = terms(text)
    assert len(found) <= TERMS_LIMIT
    assert all(word and word == word.lower() for word in found)
    assert not any(c in word for word in found for c in "\"'()*:^+-")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What is the capital of France?", ("capital", "france")),
        ("to be or not to be", ("to", "be", "or", "not")),
        ("C++ and O'Reilly", ("c", "o", "reilly")),
        ('owner:alice OR "x"', ("owner", "alice", "x")),
        ("What's Ada’s plan? We'll rock'n'roll", ("ada", "plan", "rock", "n", "roll")),
        ("żółw 漢字 مرحبا", ("żółw", "漢字", "مرحبا")),
        ("", ()),
        ("?!…", ()),
    ],
)
def test_stop_words_go_unless_there_is_nothing_else(text, words):
    assert terms(text) == words


def test_identifiers_are_found_by_their_parts():
    assert parts("getUserName") == ("get", "user", "name")
    assert parts("parse_auth_log") == ("parse", "auth", "log")
    assert parts("HTTPServer") == ("http", "server")
    assert parts("plain") == ()
    assert identifiers("x = getUserName(HTTPServer)") == "get user name http server"


def test_of_a_long_text_the_first_line_and_the_names_count_twice_however_late_they_come():
    filler = " ".join(f"filler{letter}{other}" for letter in "abcdefghij" for other in "klmnopqrst")
    asked = shaped(f"Kernel crashes\n\nx = {filler} load_kernel raises BadKernel")
    assert len(asked) == SHAPED_LIMIT
    assert asked[:4] == asked[4:8] == ("kernel", "crashes", "load_kernel", "badkernel")
    assert "x" not in asked


def test_a_short_question_is_asked_as_it_stands():
    assert shaped("Where is\nload_kernel?") == terms("Where is load_kernel?") == ("load_kernel",)


def test_of_a_long_text_only_so_much_is_looked_for():
    assert len(terms(" ".join(f"word{n}" for n in range(20_000)))) == TERMS_LIMIT
    assert terms("the " * LENGTH_LIMIT + "needle") == ("the",)
