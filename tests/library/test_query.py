"""Query parsing: any text becomes safe search terms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.library.query import LENGTH_LIMIT, SHAPED_LIMIT, TERMS_LIMIT, identifiers, parts, shaped, terms


@given(st.text(max_size=2_000))
def test_any_text_becomes_a_limited_number_of_words_without_punctuation(text):
    words = terms(text)
    assert len(words) <= TERMS_LIMIT
    assert all(word and word == word.lower() for word in words)
    assert not any(c in word for word in words for c in "\"'()*:^+-")


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
def test_stop_words_are_removed_unless_there_are_no_others(text, words):
    assert terms(text) == words


def test_identifiers_are_split_into_their_parts():
    assert parts("getUserName") == ("get", "user", "name")
    assert parts("parse_auth_log") == ("parse", "auth", "log")
    assert parts("HTTPServer") == ("http", "server")
    assert parts("plain") == ()
    assert identifiers("x = getUserName(HTTPServer)") == "get user name http server"


def test_words_of_the_first_line_and_identifiers_count_twice_in_a_long_text():
    filler = " ".join(f"filler{letter}{second}" for letter in "abcdefghij" for second in "klmnopqrst")
    weighted = shaped(f"Kernel crashes\n\nx = {filler} load_kernel raises BadKernel")
    assert len(weighted) == SHAPED_LIMIT
    assert weighted[:4] == weighted[4:8] == ("kernel", "crashes", "load_kernel", "badkernel")
    assert "x" not in weighted


def test_a_short_question_on_two_lines_is_searched_unchanged():
    assert shaped("Where is\nload_kernel?") == terms("Where is load_kernel?") == ("load_kernel",)


def test_a_long_text_is_cut_to_the_limits_of_terms_and_characters():
    assert len(terms(" ".join(f"word{n}" for n in range(20_000)))) == TERMS_LIMIT
    assert terms("the " * LENGTH_LIMIT + "needle") == ("the",)
