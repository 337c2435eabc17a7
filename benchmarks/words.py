"""Words to talk with: every other one is a small English word, the rest are 20,000 made-up ones.

If everyone said the same sentence, search, compression and caches would not be what they are.
"""

from __future__ import annotations

import random
from functools import cache
from itertools import accumulate, product

WORDS = 20_000
SMALL = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "a",
    "is",
    "that",
    "for",
    "it",
    "as",
    "was",
    "with",
    "be",
    "by",
    "on",
    "not",
    "this",
    "are",
    "or",
    "from",
    "at",
    "which",
    "but",
]


@cache
def vocabulary() -> tuple[str, ...]:
    """The most common first."""
    syllables = ["".join(parts) for parts in product("bdfgklmnprstvz", "aeiou")]
    chance = random.Random(1)
    words: dict[str, None] = {}
    while len(words) < WORDS:
        words["".join(chance.choices(syllables, k=chance.choice((2, 3, 3, 4))))] = None
    return tuple(words)


@cache
def _weights() -> tuple[float, ...]:
    """As in every language, the rarer the more of them; the commonest of these is one word in 300."""
    return tuple(accumulate(1 / (rank + 50) for rank in range(WORDS)))


def some(count: int, seed: int) -> tuple[str, ...]:
    """So many words, the same for the same seed."""
    chance = random.Random(seed)
    content = chance.choices(vocabulary(), cum_weights=_weights(), k=count - count // 2)
    small = chance.choices(SMALL, k=count // 2)
    return tuple((content, small)[number % 2][number // 2] for number in range(count))


def sentence(count: int, seed: int) -> str:
    return " ".join(some(count, seed))
