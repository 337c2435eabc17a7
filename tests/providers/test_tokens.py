"""Token counting: exact with a published vocabulary, and never too low where it is unknown."""

from dataclasses import replace

import pytest

from tertulia.providers import catalogue
from tertulia.providers.local_models import SMOLLM2
from tertulia.providers.tokens import REMEMBERED, VOCABULARIES, counter, estimate

GPT_4O = next(entry.model for entry in catalogue.entries() if entry.model.key == "openai:gpt-4o")
TEXTS = [
    "The table is set. Ask something below, or begin from a setting that has worked before.",
    "def add(a: int, b: int) -> int:\n    return a + b\n",
    '{"id": 17, "name": "x", "tags": ["a", "b"]}',
    "一つの会話に、たくさんの考え。",
    "Одна беседа, много умов.",
]


def test_a_published_vocabulary_gives_exact_counts() -> None:
    assert [counter(GPT_4O)(text) for text in TEXTS] == [19, 19, 22, 14, 8]


@pytest.mark.parametrize("name", sorted(VOCABULARIES))
def test_every_vocabulary_can_be_loaded_and_counts_plausibly(name: str) -> None:
    count = counter(replace(GPT_4O, vocabulary=name))
    assert count is not estimate
    assert count("") == 0
    assert 5 <= count(TEXTS[0]) <= 40


def test_an_unpublished_vocabulary_gets_a_margin() -> None:
    text = " ".join(TEXTS) * 20
    exact, claude = counter(GPT_4O)(text), counter(replace(GPT_4O, vocabulary="claude"))(text)
    assert 1.15 <= claude / exact <= 1.25


def test_an_unknown_vocabulary_is_estimated_from_bytes() -> None:
    count = counter(replace(GPT_4O, vocabulary="nobody's"))
    assert count("abcdefgh") == 2
    assert count("日本") == 2


def test_special_token_markers_count_as_plain_text() -> None:
    assert counter(GPT_4O)("<|endoftext|>") > 1


def test_the_built_in_model_is_counted_with_a_margin() -> None:
    assert counter(SMOLLM2)(TEXTS[0]) > counter(GPT_4O)(TEXTS[0])


def test_cached_counts_are_never_mixed_up_between_texts() -> None:
    count = counter(GPT_4O)
    new_texts = [len(str(number)) * [f"word {number}"] for number in range(REMEMBERED // 4)]
    first_counts = [count(" ".join(words)) for words in new_texts]
    assert [count(" ".join(words)) for words in new_texts] == first_counts
    assert [count(text) for text in TEXTS] == [19, 19, 22, 14, 8]
