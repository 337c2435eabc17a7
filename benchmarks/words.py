"""Words to talk with: a made-up language whose few common words are common and whose many rare ones are rare.

If everyone said the same sentence, search, compression and caches would not be what they are.
"""

from __future__ import annotations

import random
from functools import cache
from itertools import accumulate, product

WORDS = 4096


@cache
def vocabulary() -> tuple[str, ...]:
    """The most common first."""
    syllables = ["".join(parts) for parts in product("bdfgklmnprstvz", "aeiou")]
    words = {syllable: None for syllable in syllables}
    chance = random.Random(1)
    while len(words) < WORDS:
        words["".join(chance.choices(syllables, k=chance.choice((2, 2, 3, 3, 4))))] = None
    return tuple(words)


@cache
def _weights() -> tuple[float, ...]:
    """As in every language: the word of rank n is heard 1/n as often as the first."""
    return tuple(accumulate(1 / (rank + 3) for rank in range(WORDS)))


def some(count: int, seed: int) -> tuple[str, ...]:
    """So many words, the same for the same seed."""
    return tuple(random.Random(seed).choices(vocabulary(), cum_weights=_weights(), k=count))


def sentence(count: int, seed: int) -> str:
    return " ".join(some(count, seed))
