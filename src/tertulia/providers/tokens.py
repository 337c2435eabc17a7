"""Tokens: how many a text takes in a model's own vocabulary, or as near as we can tell."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from tertulia.core.models import Model

Counter = Callable[[str], int]

REMEMBERED = 20_000
"""Counts of so many texts, a few megabytes; then it begins anew."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    table: str
    """The nearest table we have."""
    margin: float = 1.0
    """How much more the model's own, unpublished one may take."""


VOCABULARIES = {
    "o200k_base": Vocabulary("o200k_base"),
    "cl100k_base": Vocabulary("cl100k_base"),
    "claude": Vocabulary("o200k_base", 1.2),
    "gemini": Vocabulary("gemma3", 1.15),
    "grok": Vocabulary("o200k_base", 1.15),
    "llama3": Vocabulary("llama3"),
    "mistral": Vocabulary("mistral_v3", 1.05),
    "deepseek": Vocabulary("deepseek_v3", 1.05),
    "qwen": Vocabulary("qwen3", 1.05),
    "kimi": Vocabulary("kimi_k2", 1.05),
    "glm": Vocabulary("glm4", 1.05),
    "smollm2": Vocabulary("o200k_base", 1.25),
}


def counter(model: Model) -> Counter:
    """Counts for this model; never too few, where that can be helped."""
    return _counter(model.vocabulary)


def estimate(text: str) -> int:
    """Without a vocabulary: a token per four bytes undercounts only dense machine text."""
    return math.ceil(len(text.encode("utf-8", "replace")) / 4)


@cache
def _counter(name: str) -> Counter:
    vocabulary = VOCABULARIES.get(name)
    table = _table(vocabulary.table) if vocabulary else None
    if vocabulary is None or table is None:
        return estimate
    return _counting(table, vocabulary.margin)


@cache
def _table(name: str) -> Any | None:
    """A vocabulary takes a tenth of a second and some memory, so it is loaded when a model first needs it."""
    try:
        import splintr
    except ImportError:
        return None
    try:
        return splintr.Tokenizer.from_pretrained(name)
    except ValueError:
        return None


def _counting(table: Any, margin: float) -> Counter:
    """What was counted lately is remembered by its hash: a prompt is mostly what the last one was."""
    known: dict[tuple[int, int], int] = {}

    def count(text: str) -> int:
        mark = (len(text), hash(text))
        found = known.get(mark)
        if found is None:
            if len(known) >= REMEMBERED:
                known.clear()
            exact = len(table.encode_ordinary(text))
            found = known[mark] = exact if margin == 1.0 else math.ceil(exact * margin)
        return found

    return count
