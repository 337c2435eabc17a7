"""Token counting: exact with a model's own vocabulary where it is published, else estimated."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from tertulia.core.models import Model

Counter = Callable[[str], int]

REMEMBERED = 20_000
"""How many counts are cached, a few megabytes. A full cache is cleared."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    table: str
    """The tokenizer table that is closest to the model's own."""
    margin: float = 1.0
    """A factor for models whose vocabulary is not published: how many more tokens they may need."""


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
    """A function that counts tokens for this model and rounds up where the vocabulary is not exact."""
    return _counter(model.vocabulary)


def estimate(text: str) -> int:
    """Estimates tokens without a vocabulary: one per four bytes. Only dense machine text has more."""
    return math.ceil(len(text.encode("utf-8", "replace")) / 4)


@cache
def _counter(name: str) -> Counter:
    vocabulary = VOCABULARIES.get(name)
    table = _table(vocabulary.table) if vocabulary else None
    if vocabulary is None or table is None:
        return estimate
    return _cached_counter(table, vocabulary.margin)


@cache
def _table(name: str) -> Any | None:
    """Loads a tokenizer table when a model first needs it, because that takes a tenth of a second and some
    memory."""
    try:
        import splintr
    except ImportError:
        return None
    try:
        return splintr.Tokenizer.from_pretrained(name)
    except ValueError:
        return None


def _cached_counter(table: Any, margin: float) -> Counter:
    """A counting function that caches counts by the text's hash, because a prompt mostly repeats the one
    before."""
    cached: dict[tuple[int, int], int] = {}

    def count(text: str) -> int:
        key = (len(text), hash(text))
        tokens = cached.get(key)
        if tokens is None:
            if len(cached) >= REMEMBERED:
                cached.clear()
            exact = len(table.encode_ordinary(text))
            tokens = cached[key] = exact if margin == 1.0 else math.ceil(exact * margin)
        return tokens

    return count
