"""Token counting: exact with a model's own vocabulary where it is published, else estimated.

Also reads the figures that a provider reports with a reply, and estimates missing or implausible ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from tertulia.core.models import Model, TokenCount
from tertulia.core.prompts import Prompt

Counter = Callable[[str], int]

REMEMBERED = 20_000
"""How many counts are cached, a few megabytes. A full cache is cleared."""
REPORTED_LIMIT = 100_000_000
"""A provider's figure above this is implausible."""
PICTURE_TOKENS = 1_500
"""About the tokens of a large picture; providers count between 250 and 5,000."""


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


# --- the usage that a provider reports ---------------------------------------------------------------------


def as_count(value: object) -> int | None:
    """A plausible token count, or None."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= REPORTED_LIMIT:
        return value
    return None


def estimated_usage(prompt: Prompt, output_bytes: int) -> TokenCount:
    """An estimate for a call whose count is missing, because such a call is not free."""
    prompt_bytes = size_bytes(prompt.system) + sum(size_bytes(message.content) for message in prompt.messages)
    pictures = sum(len(message.pictures) for message in prompt.messages)
    input_tokens = math.ceil(prompt_bytes / 4) + pictures * PICTURE_TOKENS
    return TokenCount(input_tokens, 0, math.ceil(output_bytes / 4), is_estimated=True)


def size_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
