"""Rank fusion: merges the results of full-text search and vector search into one ranking.

Pure functions; their effect was measured (docs/search.md). The scores of each search are scaled to 0…1 over
its own results and added by weight. Then small boosts are added for other good results in the same file or
conversation, for a named speaker and for a named date. Boosts change the order and never remove a result. The
best possible score is about 1 for every kind, so code, prose and messages can share one list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from tertulia.core.chunks import Source, Weights
from tertulia.library.chunk import is_code
from tertulia.library.query import is_long
from tertulia.store.chunks import RankingFacts
from tertulia.store.retrieval import ScoredChunk

LEG_LIMIT = 200
"""Results of each search that take part in the fusion."""
FULL_TRUST = 0.5
"""If the best similarity is lower than this, all vector scores are scaled down in proportion."""
MESSAGE_MEANING, PROSE_MEANING = 0.2, 0.4
"""The weight of vector search; full-text search has the rest."""
CODE_MEANING, CODE_MEANING_LONG = 0.7, 0.25
"""A short question about code seldom uses the words in the code; a long report is full of its names."""
WEIGHTS = {
    Source.MESSAGE: Weights(body=1.0, heading=0.4, place=0.6, around=0.35),
    Source.FILE: Weights(body=1.0, heading=2.0, place=2.0, around=0.5),
}
CONVERSATION = 0.4
SPEAKER = 0.1
DATE = 0.2
DAYS_BEFORE, DAYS_AFTER = 3, 21
PROSE_FILE, CODE_FILE = 0.2, 0.8
TESTS = 0.35

_DAY_MS = 86_400_000
_TEST = re.compile(
    r"(^|/)(tests?|testing|__tests__|spec)/|(^|/)(test_[^/]*|conftest\.py|[^/]*[_.](test|spec)\.\w+)$"
)
_ASKS_FOR_TESTS = re.compile(r"\btests?\b", re.IGNORECASE)
_MONTHS = (
    "january february march april may june july august september october november december".split()  # noqa: SIM905
)
_DAY_OF_MONTH = r"(\d{1,2})(?:st|nd|rd|th)?"
_MONTH = rf"({'|'.join(_MONTHS)}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
_DATES = (
    re.compile(rf"\b{_DAY_OF_MONTH}\s+(?:of\s+)?{_MONTH}\b\.?(?:,?\s+(\d{{4}}))?", re.IGNORECASE),
    re.compile(rf"\b{_MONTH}\b\.?(?:\s+{_DAY_OF_MONTH}\b)?(?:,?\s+(\d{{4}}))?", re.IGNORECASE),
)
_ISO = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")


def fuse(
    words: Sequence[ScoredChunk], meaning: Sequence[ScoredChunk], facts: Mapping[int, RankingFacts], text: str
) -> dict[int, float]:
    """The fused score of each chunk, by its number. If one search found nothing, the other counts fully.

    Chunks without ranking facts are dropped: the user may not see them, or they were deleted.
    """
    fused = _fused(words, meaning, facts, is_long(text))
    return {number: score for number, score in fused.items() if number in facts}


def _fused(
    words: Sequence[ScoredChunk],
    meaning: Sequence[ScoredChunk],
    facts: Mapping[int, RankingFacts],
    is_report: bool,
) -> dict[int, float]:
    by_words, by_meaning = _scaled_words(words), _scaled_meaning(meaning)
    if not meaning:
        return by_words
    if not words:
        return by_meaning
    shares = {number: _meaning_share(fact, is_report) for number, fact in facts.items()}
    return {
        number: (1 - share) * by_words.get(number, 0.0) + share * by_meaning.get(number, 0.0)
        for number, share in shares.items()
    }


def _meaning_share(fact: RankingFacts, is_report: bool) -> float:
    if not fact.path:
        return MESSAGE_MEANING
    if not is_code(fact.path):
        return PROSE_MEANING
    return CODE_MEANING_LONG if is_report else CODE_MEANING


def _scaled_words(results: Sequence[ScoredChunk]) -> dict[int, float]:
    """Full-text scores scaled to 0…1.

    A chunk that is not among the results scores 0. If the result limit was reached, it may still contain
    words, so the lowest result becomes 0; otherwise it contains none of them.
    """
    is_full = len(results) >= LEG_LIMIT
    return _scaled(results, min(result.score for result in results) if is_full else 0.0)


def _scaled_meaning(results: Sequence[ScoredChunk]) -> dict[int, float]:
    """Similarities scaled to 0…1.

    Some chunk is always the nearest, so a low best similarity scales all down.
    """
    scores = [result.score for result in results]
    trust = min(1.0, max(0.0, max(scores, default=0.0)) / FULL_TRUST)
    scaled = _scaled(results, min(scores, default=0.0))
    return {number: score * trust for number, score in scaled.items()}


def _scaled(results: Sequence[ScoredChunk], low: float) -> dict[int, float]:
    high = max((result.score for result in results), default=low)
    if high <= low:
        return {result.number: 1.0 for result in results}
    return {result.number: (result.score - low) / (high - low) for result in results}


def boosted(
    source: Source, scores: Mapping[int, float], facts: Mapping[int, RankingFacts], text: str
) -> dict[int, float]:
    """The scores plus boosts, for chunks of one source."""
    if source is Source.FILE:
        return _boosted_files(scores, facts, text)
    return _boosted_messages(scores, facts, text)


def _boosted_messages(
    scores: Mapping[int, float], facts: Mapping[int, RankingFacts], text: str
) -> dict[int, float]:
    """Boosts messages by their conversation's three best chunks, a named speaker and a named date."""
    conversation_scores = {
        group: sum(sorted(values, reverse=True)[:3]) / 3 for group, values in _groups(scores, facts).items()
    }
    speaker = _named_speaker({facts[number].name for number in scores}, text)
    spans = dates(text)
    return {
        number: (
            score
            + CONVERSATION * conversation_scores[facts[number].group]
            + (SPEAKER if speaker is not None and facts[number].name == speaker else 0.0)
            + (DATE if any(span.holds(facts[number].created_at) for span in spans) else 0.0)
        )
        / (1 + CONVERSATION)
        for number, score in scores.items()
    }


def _boosted_files(
    scores: Mapping[int, float], facts: Mapping[int, RankingFacts], text: str
) -> dict[int, float]:
    """Boosts chunks by the three best chunks of their file.

    Test files are ranked lower unless the first line of the query asks for tests.
    """
    file_scores = {
        group: sum(value / 2**rank for rank, value in enumerate(sorted(values, reverse=True)[:3]))
        for group, values in _groups(scores, facts).items()
    }
    best = max(file_scores.values(), default=1.0) or 1.0
    asks_for_tests = _ASKS_FOR_TESTS.search(text.strip().partition("\n")[0][:1000]) is not None
    return {
        number: _weighted(score, file_scores[facts[number].group] / best, _file_weight(facts[number].path))
        * (1.0 if asks_for_tests or not _is_test(facts[number].path) else TESTS)
        for number, score in scores.items()
    }


def _weighted(score: float, file_score: float, weight: float) -> float:
    return (score + weight * file_score) / (1 + weight)


@lru_cache(maxsize=20_000)
def _is_test(path: str) -> bool:
    return _TEST.search(path) is not None


def _file_weight(path: str) -> float:
    return CODE_FILE if is_code(path) else PROSE_FILE


def _groups(scores: Mapping[int, float], facts: Mapping[int, RankingFacts]) -> dict[str, list[float]]:
    groups: dict[str, list[float]] = {}
    for number, score in scores.items():
        groups.setdefault(facts[number].group, []).append(score)
    return groups


def _named_speaker(names: set[str], text: str) -> str | None:
    """The speaker that the query names; None if it names none or several."""
    words = set(re.findall(r"\w+", text.lower()))
    named = [name for name in names if name and words.issuperset(re.findall(r"\w+", name.lower()))]
    return named[0] if len(named) == 1 else None


@dataclass(frozen=True, slots=True)
class NamedDate:
    """A day or a month that a query names. Without a year it stands for that date in every year."""

    year: int | None
    month: int
    day: int | None

    def holds(self, at: int) -> bool:
        """True from three days before the date to three weeks after it.

        People mention a date shortly before it comes, and for some time afterwards.
        """
        time = datetime.fromtimestamp(at / 1000, UTC)
        return any(self._begins(year) <= at < self._ends(year) for year in self._years(time.year))

    def _years(self, year: int) -> tuple[int, ...]:
        return (self.year,) if self.year is not None else (year - 1, year, year + 1)

    def _begins(self, year: int) -> int:
        return _ms(year, self.month, self.day or 1) - DAYS_BEFORE * _DAY_MS

    def _ends(self, year: int) -> int:
        end = _ms(year, self.month, self.day) + _DAY_MS if self.day else _ms(year, self.month + 1, 1)
        return end + DAYS_AFTER * _DAY_MS


def _ms(year: int, month: int, day: int) -> int:
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    return (
        int(datetime(min(max(year, 1), 9998), month, 1, tzinfo=UTC).timestamp() * 1000) + (day - 1) * _DAY_MS
    )


def dates(text: str) -> tuple[NamedDate, ...]:
    """The days and months that a query names."""
    text = text[:2000]
    named = [NamedDate(int(y), int(m), int(d)) for y, m, d in _ISO.findall(text) if 1 <= int(m) <= 12]
    for match in _DATES[0].finditer(text):
        named.append(NamedDate(_year(match[3]), _month(match[2]), min(int(match[1]), 31) or 1))
    if not named:
        for match in _DATES[1].finditer(text):
            if match[1].lower() != "may" or match[1] == "May" or match[2] or match[3]:
                named.append(
                    NamedDate(_year(match[3]), _month(match[1]), min(int(match[2]), 31) if match[2] else None)
                )
    return tuple(named)


def _year(text: str | None) -> int | None:
    return int(text) if text and 1 <= int(text) <= 9998 else None


def _month(text: str) -> int:
    return next(index for index, name in enumerate(_MONTHS, start=1) if name.startswith(text.lower()[:3]))
