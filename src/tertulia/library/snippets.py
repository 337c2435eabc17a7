"""Snippets: the part of a chunk that best shows why it was found, with the query's words highlighted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tertulia.core.chunks import Span
from tertulia.library.query import CAMEL
from tertulia.library.stem import stem_of
from tertulia.store.text_index import MARKS, UNSPACED, is_unspaced, phrases, plain

LENGTH = 280
READ_LIMIT = 20_000
"""Characters; only this beginning of a very long chunk is searched for words."""
_WORD = re.compile(r"[^\W_]+")
_MARKED_WORD = re.compile(rf"[^\W_](?:[^\W_]|[{MARKS}])*")
_INDEX_WORD = re.compile(rf"[{UNSPACED}]|[\u1100-\u1112][\u1161-\u1175][\u11a8-\u11c2]?|[^\W_{UNSPACED}]+")
"""A word as the full-text index splits text: in scripts without spaces each character is a word, and so is a
Korean syllable that is encoded as its separate letters."""


@dataclass(frozen=True, slots=True)
class Snippet:
    text: str
    highlights: tuple[Span, ...]
    words_found: int


def snippet(content: str, words: Sequence[str], *, is_code: bool = False) -> Snippet:
    """The part of the text with the most different query words.

    In code, parts of identifiers count as words.
    """
    query = _query_terms(tuple(words))
    matches = _matches(content[:READ_LIMIT], query, is_code)
    start, end = _edges(content, _best_start(matches))
    highlights = tuple(Span(a - start, b - start) for a, b, _ in matches if start <= a and b <= end)
    return Snippet(content[start:end], _merged(highlights), len({stem for _, _, stem in matches}))


def words_found(content: str, words: Sequence[str], *, is_code: bool = False) -> int:
    """How many of the words the text contains, for callers that need no snippet."""
    return len(found_in(content, words, is_code=is_code))


def found_in(content: str, words: Sequence[str], *, is_code: bool = False) -> frozenset[str]:
    """The query words that the text contains, as stems or phrases of the full-text index."""
    query = _query_terms(tuple(words))
    matching_words = _matching_words(content[:READ_LIMIT], query.stems)
    matching_phrases = {phrase for _, _, phrase in _phrase_matches(content[:READ_LIMIT], query.phrases)}
    parts = {stem for _, _, stem in _part_matches(content[:READ_LIMIT], query.stems)} if is_code else set()
    whole_words = {stem for stems in matching_words.values() for stem in stems if stem in query.stems}
    return frozenset(matching_phrases | parts | whole_words)


@dataclass(frozen=True, slots=True)
class _QueryTerms:
    stems: frozenset[str]
    phrases: frozenset[str]
    """Characters of scripts without spaces that must be adjacent."""


@lru_cache(maxsize=256)
def _query_terms(words: tuple[str, ...]) -> _QueryTerms:
    """The stems and phrases of the query words; cached, because all hits of a search use the same words."""
    unspaced = {word for word in words if is_unspaced(word)}
    return _QueryTerms(
        frozenset(stem for word in words if word not in unspaced for stem in stems(word)),
        frozenset(phrase for word in unspaced for phrase in phrases(word)),
    )


def _matches(content: str, query: _QueryTerms, is_code: bool) -> list[tuple[int, int, str]]:
    """The start, the end and the stem or phrase of each match, in the order of the text."""
    matches = [*_word_matches(content, query.stems), *_phrase_matches(content, query.phrases)]
    if is_code:
        matches += _part_matches(content, query.stems)
    return sorted(matches) if query.phrases or is_code else matches


def _word_matches(content: str, query_stems: frozenset[str]) -> Iterator[tuple[int, int, str]]:
    """Whole words with a stem of the query."""
    matching = _matching_words(content, query_stems)
    if not matching:
        return
    for match in _pattern(content).finditer(content):
        for stem in matching.get(match[0], ()):
            if stem in query_stems:
                yield match.start(), match.end(), stem


def _phrase_matches(content: str, query_phrases: frozenset[str]) -> Iterator[tuple[int, int, str]]:
    """Single characters and pairs of adjacent characters that are phrases of the query."""
    if not query_phrases:
        return
    before, start = "", 0
    for match in _INDEX_WORD.finditer(content):
        if not (character := plain(match[0])):
            continue  # a combining mark
        if character in query_phrases:
            yield match.start(), match.end(), character
        if f"{before} {character}" in query_phrases:
            yield start, match.end(), f"{before} {character}"
        before, start = character, match.start()


def _part_matches(content: str, query_stems: frozenset[str]) -> Iterator[tuple[int, int, str]]:
    """Parts of identifiers, such as User in parseUserName."""
    for match in _WORD.finditer(content) if _likely_prefixes(content, query_stems) else ():
        if match[0].islower() or len(parts := CAMEL.split(match[0])) < 2:
            continue
        start = match.start()
        for part in parts:
            for stem in stems(part):
                if stem in query_stems and len(part) > 1:
                    yield start, start + len(part), stem
            start += len(part)


def _matching_words(content: str, query_stems: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """The different words of the text that have a stem of the query, with their stems.

    Only words that begin like a stem of the query are stemmed, because stemming is slow.
    """
    prefixes = _likely_prefixes(content, query_stems)
    if not prefixes:
        return {}
    words = set(_pattern(content).findall(content))
    likely = (w for w in words if w.lower().startswith(prefixes) or not w.isascii())
    return {word: stems(word) for word in likely if not query_stems.isdisjoint(stems(word))}


def _likely_prefixes(content: str, query_stems: frozenset[str]) -> tuple[str, ...]:
    """The prefixes of the query stems that occur in the text; all of them if the text is not ASCII.

    A letter with an accent may be written in several ways, so that a plain search would miss it.
    """
    if not content.isascii():
        return tuple(map(_prefix, query_stems))
    lower = content.lower()
    return tuple(prefix for stem in query_stems if (prefix := _prefix(stem)) in lower)


def _prefix(stem: str) -> str:
    """The beginning that all words of a stem share: siz for size, polic for polici, possi for possibl."""
    if stem.endswith("bl"):
        return stem[:-2]
    return stem[:-1] if stem.endswith(("e", "i")) else stem


def _pattern(content: str) -> re.Pattern[str]:
    return _WORD if content.isascii() else _MARKED_WORD


@lru_cache(maxsize=20_000)
def stems(word: str) -> tuple[str, ...]:
    """The stems of a word as they are in the full-text index."""
    return tuple(stem_of(part) for part in plain(word).split())


def _best_start(matches: Sequence[tuple[int, int, str]]) -> int:
    """The start of the window with the most different stems, by a sliding window in linear time."""
    best, best_start, first = 0, 0, 0
    counts: dict[str, int] = {}
    for _, end, stem in matches:
        counts[stem] = counts.get(stem, 0) + 1
        while end - matches[first][0] > LENGTH * 3 // 4 and matches[first][1] < end:
            dropped = matches[first][2]
            counts[dropped] -= 1
            if not counts[dropped]:
                del counts[dropped]
            first += 1
        if len(counts) > best:
            best, best_start = len(counts), matches[first][0]
    return best_start


def _edges(content: str, start: int) -> tuple[int, int]:
    """The start and end of the snippet: just before the first match, at the start of a word or line."""
    begin = max(0, start - LENGTH // 5)
    if begin:
        line = content.rfind("\n", begin, start)
        space = content.find(" ", begin, start)
        begin = line + 1 if line >= 0 else space + 1 if space >= 0 else begin
    end = min(len(content), begin + LENGTH)
    if end < len(content):
        space = content.rfind(" ", begin + LENGTH // 2, end)
        end = space if space > 0 else end
    return begin, end


def _merged(spans: Sequence[Span]) -> tuple[Span, ...]:
    merged: list[Span] = []
    for span in spans:
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(span.end, merged[-1].end))
        else:
            merged.append(span)
    return tuple(merged)
