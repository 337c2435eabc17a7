"""Snippets: the part of a chunk that shows why it was found, with the words that were looked for marked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tertulia.core.chunks import Span
from tertulia.library.query import CAMEL
from tertulia.library.stem import stem_of
from tertulia.store.words import MARKS, UNSPACED, is_unspaced, phrases, plain

LENGTH = 280
READ = 20_000
"""Of a very long chunk only the beginning is looked at."""
_WORD = re.compile(r"[^\W_]+")
_MARKED_WORD = re.compile(rf"[^\W_](?:[^\W_]|[{MARKS}])*")
_PIECE = re.compile(rf"[{UNSPACED}]|[\u1100-\u1112][\u1161-\u1175][\u11a8-\u11c2]?|[^\W_{UNSPACED}]+")
"""What the index takes for a word: of a script without spaces, each character; also where it is written as
its parts, as some machines write Korean."""


@dataclass(frozen=True, slots=True)
class Snippet:
    text: str
    highlights: tuple[Span, ...]
    words_found: int


def snippet(content: str, words: Sequence[str], *, is_code: bool = False) -> Snippet:
    """The stretch with the most different words in it; in code, parts of its names are words too."""
    wanted = _wanted(tuple(words))
    places = _places(content[:READ], wanted, is_code)
    start, end = _edges(content, _best_start(places))
    marked = tuple(Span(a - start, b - start) for a, b, _ in places if start <= a and b <= end)
    return Snippet(content[start:end], _merged(marked), len({stem for _, _, stem in places}))


def words_found(content: str, words: Sequence[str], *, is_code: bool = False) -> int:
    """How many of the words stand in it, for who shows no snippet."""
    return len(found_in(content, words, is_code=is_code))


def found_in(content: str, words: Sequence[str], *, is_code: bool = False) -> frozenset[str]:
    """Those of the words that stand in it, as the index has them."""
    wanted = _wanted(tuple(words))
    known = _known(content[:READ], wanted.stems)
    together = {phrase for _, _, phrase in _standing_together(content[:READ], wanted.phrases)}
    inside = {stem for _, _, stem in _standing_inside(content[:READ], wanted.stems)} if is_code else set()
    alone = {stem for stems in known.values() for stem in stems if stem in wanted.stems}
    return frozenset(together | inside | alone)


@dataclass(frozen=True, slots=True)
class _Wanted:
    stems: frozenset[str]
    phrases: frozenset[str]
    """Characters that must stand together, of scripts without spaces."""


@lru_cache(maxsize=256)
def _wanted(words: tuple[str, ...]) -> _Wanted:
    """All hits of one search are looked at for the same words."""
    unspaced = {word for word in words if is_unspaced(word)}
    return _Wanted(
        frozenset(stem for word in words if word not in unspaced for stem in stems(word)),
        frozenset(phrase for word in unspaced for phrase in phrases(word)),
    )


def _places(content: str, wanted: _Wanted, is_code: bool) -> list[tuple[int, int, str]]:
    """In the order they stand in."""
    found = [*_standing_alone(content, wanted.stems), *_standing_together(content, wanted.phrases)]
    if is_code:
        found += _standing_inside(content, wanted.stems)
    return sorted(found) if wanted.phrases or is_code else found


def _standing_alone(content: str, wanted: frozenset[str]) -> Iterator[tuple[int, int, str]]:
    known = _known(content, wanted)
    if not known:
        return
    for match in _pattern(content).finditer(content):
        for stem in known.get(match[0], ()):
            if stem in wanted:
                yield match.start(), match.end(), stem


def _standing_together(content: str, wanted: frozenset[str]) -> Iterator[tuple[int, int, str]]:
    """Each character that is wanted alone, and each two that are wanted side by side."""
    if not wanted:
        return
    before, start = "", 0
    for match in _PIECE.finditer(content):
        if not (piece := plain(match[0])):
            continue  # a mark
        if piece in wanted:
            yield match.start(), match.end(), piece
        if f"{before} {piece}" in wanted:
            yield start, match.end(), f"{before} {piece}"
        before, start = piece, match.start()


def _standing_inside(content: str, wanted: frozenset[str]) -> Iterator[tuple[int, int, str]]:
    """Parts of names: the User of parseUserName."""
    for match in _WORD.finditer(content) if _begun(content, wanted) else ():
        if match[0].islower() or len(parts := CAMEL.split(match[0])) < 2:
            continue
        start = match.start()
        for part in parts:
            for stem in stems(part):
                if stem in wanted and len(part) > 1:
                    yield start, start + len(part), stem
            start += len(part)


def _known(content: str, wanted: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """Its words that are wanted. Each is looked at once, and only if it begins as one that is wanted."""
    begun = _begun(content, wanted)
    if not begun:
        return {}
    words = set(_pattern(content).findall(content))
    likely = (w for w in words if w.lower().startswith(begun) or not w.isascii())
    return {word: stems(word) for word in likely if not wanted.isdisjoint(stems(word))}


def _begun(content: str, wanted: frozenset[str]) -> tuple[str, ...]:
    """Those that may stand in it at all; of letters with marks that cannot be told so fast."""
    if not content.isascii():
        return tuple(map(_beginning, wanted))
    lower = content.lower()
    return tuple(beginning for one in wanted if (beginning := _beginning(one)) in lower)


def _beginning(stem: str) -> str:
    """How all words of a stem begin: size of sizing, polici of policy, possibl of possibility."""
    if stem.endswith("bl"):
        return stem[:-2]
    return stem[:-1] if stem.endswith(("e", "i")) else stem


def _pattern(content: str) -> re.Pattern[str]:
    return _WORD if content.isascii() else _MARKED_WORD


@lru_cache(maxsize=20_000)
def stems(word: str) -> tuple[str, ...]:
    """A word's pieces as the index has them."""
    return tuple(stem_of(piece) for piece in plain(word).split())


def _best_start(places: Sequence[tuple[int, int, str]]) -> int:
    """Slides a window over the hits; linear in their number."""
    best, best_start, first = 0, 0, 0
    inside: dict[str, int] = {}
    for _, end, stem in places:
        inside[stem] = inside.get(stem, 0) + 1
        while end - places[first][0] > LENGTH * 3 // 4 and places[first][1] < end:
            gone = places[first][2]
            inside[gone] -= 1
            if not inside[gone]:
                del inside[gone]
            first += 1
        if len(inside) > best:
            best, best_start = len(inside), places[first][0]
    return best_start


def _edges(content: str, start: int) -> tuple[int, int]:
    """A little before the first hit, from the beginning of a word or of the line."""
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
