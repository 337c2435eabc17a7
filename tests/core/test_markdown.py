"""Plain text from Markdown: the words stay and the markup goes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.core.markdown import plain_text

CASES = json.loads((Path(__file__).parent / "plain_text.json").read_text())
WORDS = st.from_regex(r"\A[a-z]+(_[a-z0-9]+){0,3}\Z")
MARKS = st.sampled_from(
    ["{}", "**{}**", "*{}*", "***{}***", "`{}`", "~~{}~~", "${}$", "[{}](https://example.org/)"]
)


@pytest.mark.parametrize(("markdown", "plain"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_plain_text_matches_the_cases_shared_with_the_interface(markdown: str, plain: str) -> None:
    assert plain_text(markdown) == plain


@given(st.lists(st.tuples(WORDS, MARKS), min_size=1, max_size=8))
def test_words_stay_complete_and_lose_their_markup(words: list[tuple[str, str]]) -> None:
    markdown = " ".join(mark.format(word) for word, mark in words)
    assert plain_text(markdown) == " ".join(word for word, _ in words)


@given(
    st.lists(
        st.tuples(st.sampled_from(["# {}", "- {}", "> {}", "{}", "1. {}"]), WORDS), min_size=2, max_size=6
    )
)
def test_each_block_ends_like_a_sentence(blocks: list[tuple[str, str]]) -> None:
    plain = plain_text("\n\n".join(mark.format(word) for mark, word in blocks))
    assert [word.rstrip(".;") for word in plain.split()] == [word for _, word in blocks]
    assert all(word[-1] in ".;" for word in plain.split()[:-1])


@given(st.text())
def test_plain_text_of_any_text_is_one_line(text: str) -> None:
    plain = plain_text(text)
    assert plain == " ".join(plain.split())


@given(st.text(), st.integers(min_value=1, max_value=40))
def test_a_preview_keeps_to_its_length_limit(text: str, most: int) -> None:
    assert len(plain_text(text, most)) <= most + len("…")


def test_a_long_text_is_cut_between_words() -> None:
    assert plain_text("One thing and **another** thing", 20) == "One thing and…"
