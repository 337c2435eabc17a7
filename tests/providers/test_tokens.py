"""Tokens are counted in the model's own vocabulary, and never too few where it is unknown."""

from dataclasses import replace

import pytest

from tertulia.providers import catalogue
from tertulia.providers.builtin import SMOLLM2
from tertulia.providers.tokens import REMEMBERED, VOCABULARIES, counter, estimate

GPT_4O = next(entry.model for entry in catalogue.entries() if entry.model.key == "openai:gpt-4o")
TEXTS = [
    "The table is set. Ask something below, or begin from a setting that has worked before.",
    "def add(a: int, b: int) -> int:\n    return a + b\n",
    '{"id": 17, "name": "x", "tags": ["a", "b"]}',
    "一つの会話に、たくさんの考え。",
    "Одна беседа, много умов.",
]


def test_the_count_is_exact_where_the_vocabulary_is_public() -> None:
    assert [counter(GPT_4O)(text) for text in TEXTS] == [19, 19, 22, 14, 8]


@pytest.mark.parametrize("name", sorted(VOCABULARIES))
def test_every_vocabulary_counts(name: str) -> None:
    count = counter(replace(GPT_4O, vocabulary=name))
    assert count is not estimate
    assert count("") == 0
    assert 5 <= count(TEXTS[0]) <= 40


def test_an_unpublished_vocabulary_gets_a_margin() -> None:
    text = " ".join(TEXTS) * 20
    exact, claude = counter(GPT_4O)(text), counter(replace(GPT_4O, vocabulary="claude"))(text)
    assert 1.15 <= claude / exact <= 1.25


def test_an_unknown_vocabulary_falls_back_on_bytes() -> None:
    count = counter(replace(GPT_4O, vocabulary="nobody's"))
    assert count("abcdefgh") == 2
    assert count("日本") == 2


def test_markers_of_a_model_are_counted_as_the_text_they_are() -> None:
    assert counter(GPT_4O)("<|endoftext|>") > 1


def test_the_built_in_model_is_counted_with_a_margin() -> None:
    assert counter(SMOLLM2)(TEXTS[0]) > counter(GPT_4O)(TEXTS[0])


def test_a_count_is_remembered_and_never_taken_for_that_of_another_text() -> None:
    count = counter(GPT_4O)
    fresh = [len(str(number)) * [f"word {number}"] for number in range(REMEMBERED // 4)]
    first = [count(" ".join(words)) for words in fresh]
    assert [count(" ".join(words)) for words in fresh] == first
    assert [count(text) for text in TEXTS] == [19, 19, 22, 14, 8]
