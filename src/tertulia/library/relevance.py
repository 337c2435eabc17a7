"""Relevance: how well a passage fits a question, on one scale, whatever else was found. Pure, and calibrated.

    likeness of the passage - likeness of everyday sentences
        + its words of the question - the size of the project

Ranking says which passage is the best of a project; of nonsense there is a best one too. This says whether it
is any good. The figures were chosen on public sets and messages that ask for nothing, and measured on others
(docs/search.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10

from tertulia.core.chunks import Match
from tertulia.library.common_words import is_common
from tertulia.library.snippets import stems
from tertulia.store.words import is_unspaced, phrases

FITS = 0.10
"""From here on a passage fits the question; with none that does, nothing enters a prompt."""
STRONG = 0.40
BESIDE = -0.20
"""From here on it may stand in a prompt beside one that fits."""
NEAR = 0.0
"""From here on it is shown to a person who searches, though it has none of the words."""

WORD, SIZE = 0.12, 0.075
"""What a word of the question is worth beside meaning, and each tenfold of a project, where chance has more
to choose from."""
WORD_ALONE, SIZE_ALONE, LEAST_ALONE = 0.3, 0.09, 0.055
"""The same where there is no meaning: one word fits in a small project, two in a large one."""
FOREIGN = 0.4
"""So near to everyday sentences are questions in a language that the embedding model hardly knows: there
words alone may say that something fits."""
COMMON_WORD, PAIR = 0.15, 0.4
"""What a common word counts, and two characters of a script without spaces."""
LARGEST = 10_000
"""More chunks than this count as this many."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The words of a question, each with what it counts."""

    words: tuple[tuple[frozenset[str], float], ...]
    """The forms in which the index knows a word."""

    @property
    def has_subject(self) -> bool:
        """Whether any of them is more than a common word."""
        return any(weight > COMMON_WORD for _, weight in self.words)

    @property
    def has_common(self) -> bool:
        return any(weight <= COMMON_WORD for _, weight in self.words)

    def count(self, found: frozenset[str]) -> float:
        """How many of them were found; `found` are stems and pairs."""
        return sum(weight for forms, weight in self.words if not forms.isdisjoint(found))


def asked(words: Sequence[str]) -> Asked:
    return Asked(tuple(weighed for word in words for weighed in _weighed(word)))


def _weighed(word: str) -> list[tuple[frozenset[str], float]]:
    if is_unspaced(word):
        return [(frozenset((pair,)), PAIR) for pair in phrases(word) if not is_common(pair)]
    is_small = all(is_common(piece) for phrase in phrases(word) for piece in phrase.split())
    return [(frozenset(stems(word)), COMMON_WORD if is_small else 1.0)]


@dataclass(frozen=True, slots=True)
class Nearness:
    """How alike a passage and the question are, and the question and everyday sentences."""

    likeness: float
    everyday: float


def fit(words: float, nearness: Nearness | None, chunks: int) -> float:
    """Without nearness it is known by its words alone."""
    size = log10(min(chunks, LARGEST) + 10)
    by_words = WORD_ALONE * words - SIZE_ALONE * size - LEAST_ALONE
    if nearness is None:
        return by_words
    by_both = nearness.likeness - nearness.everyday + WORD * words - SIZE * size
    return max(by_both, by_words) if nearness.everyday >= FOREIGN else by_both


def match(fit: float) -> Match:
    if fit >= STRONG:
        return Match.STRONG
    return Match.GOOD if fit >= FITS else Match.WEAK
