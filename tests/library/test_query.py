"""Queries: any text becomes safe words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.library.query import TERMS_LIMIT, identifiers, parts, terms


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
