"""Relevance: how well a passage fits a question, on an absolute scale.

    similarity of the passage - similarity of small talk
        + weight of the question's words in the passage - weight of the project's size

Ranking finds the best passage of a project, but even a meaningless question has a best passage. Relevance
decides whether the passage is good enough. These are pure functions; their constants were chosen on public
data sets and on messages that need no search, and measured on others (docs/search.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10

from tertulia.core.chunks import Match
from tertulia.library.common_words import is_common
from tertulia.library.snippets import stems
from tertulia.store.text_index import is_unspaced, phrases

FITS = 0.10
"""From this fit on a passage answers the question. If no passage reaches it, none enters a prompt."""
STRONG = 0.40
"""From this fit on a match is shown as strong."""
BESIDE = -0.20
"""From this fit on a passage may enter a prompt together with one that reaches FITS."""
NEAR = 0.0
"""From this fit on a search shows a passage even without any word of the query."""

WORD, SIZE = 0.12, 0.075
"""With vector search: the gain per matching word, and the loss per tenfold project size, because in a large
project more passages match by chance."""
WORD_ALONE, SIZE_ALONE, OFFSET_ALONE = 0.3, 0.09, 0.055
"""Without vector search: one matching word is enough in a small project, a large one needs two."""
FOREIGN = 0.4
"""From this similarity to small talk on, the question is in a language that the embedding model hardly knows.
Then matching words alone may make a passage fit."""
COMMON_WORD, PAIR = 0.15, 0.4
"""The weights of a common word and of two characters in a script without spaces; other words weigh 1."""
LARGEST = 10_000
"""Larger projects count as this many chunks."""


@dataclass(frozen=True, slots=True)
class QuestionTerms:
    """The words of a query with their weights."""

    words: tuple[tuple[frozenset[str], float], ...]
    """For each word its forms in the full-text index, and its weight."""

    @property
    def has_subject(self) -> bool:
        """True if at least one word is not a common word."""
        return any(weight > COMMON_WORD for _, weight in self.words)

    @property
    def has_common(self) -> bool:
        return any(weight <= COMMON_WORD for _, weight in self.words)

    def count(self, matches: frozenset[str]) -> float:
        """The total weight of the words that match. `matches` holds stems and pairs of characters."""
        return sum(weight for forms, weight in self.words if not forms.isdisjoint(matches))


def question_terms(words: Sequence[str]) -> QuestionTerms:
    return QuestionTerms(tuple(weighted for word in words for weighted in _weighted(word)))


def _weighted(word: str) -> list[tuple[frozenset[str], float]]:
    if is_unspaced(word):
        return [(frozenset((pair,)), PAIR) for pair in phrases(word) if not is_common(pair)]
    is_common_word = all(is_common(part) for phrase in phrases(word) for part in phrase.split())
    return [(frozenset(stems(word)), COMMON_WORD if is_common_word else 1.0)]


@dataclass(frozen=True, slots=True)
class Relevance:
    """The similarity of a passage to the question, and of small talk to the question."""

    likeness: float
    everyday: float


def fit(words: float, meaning_scores: Relevance | None, chunks: int) -> float:
    """How well a passage fits, from the weight of its matching words and the project's size.

    Without `meaning_scores`, when there are no vectors, only the words count.
    """
    size = log10(min(chunks, LARGEST) + 10)
    by_words = WORD_ALONE * words - SIZE_ALONE * size - OFFSET_ALONE
    if meaning_scores is None:
        return by_words
    by_both = meaning_scores.likeness - meaning_scores.everyday + WORD * words - SIZE * size
    return max(by_both, by_words) if meaning_scores.everyday >= FOREIGN else by_both


def match(fit: float) -> Match:
    if fit >= STRONG:
        return Match.STRONG
    return Match.GOOD if fit >= FITS else Match.WEAK
