"""Ranking parser: reads a reviewer's order of anonymous answers from its text, and combines several
rankings.

A reviewer is asked for one line, "Ranking: B > A". It may write a list, JSON, a table or a sentence instead,
in any language. The parsers below go from the strictest form to the loosest; each gives every letter a
place, or fails.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any

from tertulia.core.findings import Ranking

Order = tuple[tuple[str, ...], ...]
"""Letters from best to worst; the letters of one group tie."""


def parse_order(text: str, letters: Sequence[str]) -> Order | None:
    """The order of these letters in the text; None if a letter has no place, or if there are fewer than
    two."""
    if len(letters) < 2:
        return None
    known = frozenset(letters)
    normalised = unicodedata.normalize("NFKC", text[-LONGEST:])
    parsers = (_from_json, _after_label, _from_chain, _from_numbers, _from_ordinals, _from_praise)
    return next((order for parse in parsers if (order := parse(normalised, known))), None)


LONGEST = 10_000
"""Characters from the end of a review to parse; the ranking comes last."""


# ── a letter in a text

_MARKS = r"[*_`\"'“”‘’«»\[\](){}]{0,4}"
_BARE = rf"{_MARKS}(?<![A-Za-z0-9])([A-Za-z])(?![A-Za-z0-9À-ɏ]){_MARKS}"
_LETTER = rf"{_MARKS}(?:[^\W\d_]{{2,20}}\s{{1,3}})?{_BARE}"
"""A letter with its markup, after "Answer", "Antwort" or any one word."""

_MENTION = re.compile(r"(?<![A-Za-z0-9À-ɏ])([A-Z])(?![A-Za-z0-9À-ɏ])")
_ARTICLE = re.compile(r"A\s+[a-z]")
_LABELLED = re.compile(r"[^\W\d_]{2,20}\s+$")


def _mentions(text: str) -> Iterator[str]:
    """The capital letters that stand alone, without the article "A" as in "A clear case"."""
    for capital in _MENTION.finditer(text):
        before = text[max(0, capital.start() - 24) : capital.start()]
        if _ARTICLE.match(text, capital.start()) and not _LABELLED.search(before):
            continue
        yield capital[1]


def _complete_order(groups: Iterable[Sequence[str]], known: frozenset[str]) -> Order | None:
    """The groups without unknown letters; None unless each known letter is in exactly one group."""
    filtered = (tuple(letter for letter in group if letter in known) for group in groups)
    order = tuple(group for group in filtered if group)
    letters = [letter for group in order for letter in group]
    return order if len(letters) == len(set(letters)) == len(known) else None


def _by_place(places: Sequence[tuple[int, str]], known: frozenset[str]) -> Order | None:
    """The letters sorted by place; None if the places do not start at 1 or exceed the number of letters."""
    ranked = sorted((pair for pair in places if pair[1] in known), key=lambda pair: pair[0])
    if not ranked or ranked[0][0] != 1 or ranked[-1][0] > len(known):
        return None
    return _complete_order(
        ([letter for _, letter in tied] for _, tied in groupby(ranked, key=lambda pair: pair[0])), known
    )


# ── as data

_JSON_TRIES = 40


def _from_json(text: str, known: frozenset[str]) -> Order | None:
    decoder, at = json.JSONDecoder(), 0
    order: Order | None = None
    for _ in range(_JSON_TRIES):
        bracket = re.compile(r"[{\[]").search(text, at)
        if bracket is None:
            break
        try:
            data, at = decoder.raw_decode(text, bracket.start())
        except (ValueError, RecursionError):
            at = bracket.end()
            continue
        order = _from_data(data, known) or order
    return order


def _from_data(data: Any, known: frozenset[str], depth: int = 4) -> Order | None:
    if isinstance(data, str):
        return _from_chain(data, known)
    if not isinstance(data, dict | list) or depth == 0:
        return None
    order = _from_object(data, known) if isinstance(data, dict) else _from_array(data, known)
    values = data.values() if isinstance(data, dict) else data
    return order or next((inner for value in values if (inner := _from_data(value, known, depth - 1))), None)


def _from_object(data: dict[str, Any], known: frozenset[str]) -> Order | None:
    """Reads {"B": 1, "A": 2} or {"1": "B", "2": "A"}."""
    letters = [(place, letter) for key, value in data.items()
               if (letter := _letter_of(key)) and (place := _place_of(value))]  # fmt: skip
    places = [(place, letter) for key, value in data.items()
              if (place := _place_of(key)) and (letter := _letter_of(value))]  # fmt: skip
    return _by_place(letters, known) or _by_place(places, known)


def _from_array(data: list[Any], known: frozenset[str]) -> Order | None:
    """Reads ["B", "A"], [["B", "C"], "A"], or [{"answer": "B", "rank": 1}, …]."""
    if data and all(isinstance(item, dict) for item in data):
        places = [(_rank_in(item) or 0, _letter_in(item)) for item in data]
        return _by_place(places, known) or _complete_order(([letter] for _, letter in places), known)
    groups = [item if isinstance(item, list) else [item] for item in data]
    return _complete_order(([_letter_of(item) for item in group] for group in groups), known)


_RANK_KEYS = frozenset({"rank", "place", "position", "ranking", "rang", "platz"})


def _rank_in(data: dict[str, Any]) -> int:
    return next((place for key, value in data.items()
                 if key.lower() in _RANK_KEYS and (place := _place_of(value))), 0)  # fmt: skip


def _letter_in(data: dict[str, Any]) -> str:
    return next((letter for value in data.values() if (letter := _letter_of(value))), "")


_LETTER_ALONE = re.compile(rf"\s*{_LETTER}\s*")


def _letter_of(data: object) -> str:
    match = _LETTER_ALONE.fullmatch(data) if isinstance(data, str) and len(data) < 60 else None
    return match[1].upper() if match else ""


def _place_of(data: object) -> int:
    if isinstance(data, bool):
        return 0
    if isinstance(data, str):
        return int(data) if re.fullmatch(r"[1-9]", data) else 0
    return data if isinstance(data, int) else 0


# ── after the word "ranking"

_LABEL = re.compile(
    r"rank(?:ing|ed|s)?\b|rangliste|rangfolge|reihenfolge|rangordning|rangorde|volgorde|classement"
    r"|clasificaci[oó]n|classifica(?:ção)?|\bordre\b|\borden\b|\bordem\b|\bordine\b|\border\b|kolejność"
    r"|рейтинг|порядок|ранжирование|排名|排序|排行|順位|ランキング|순위|ترتيب",
    re.IGNORECASE,
)
_LABEL_TRIES = 12
_AFTER_LABEL_CHARS = 1_200


def _after_label(text: str, known: frozenset[str]) -> Order | None:
    """The order after the last word like "ranking" that has one."""
    labels = list(_LABEL.finditer(text))[-_LABEL_TRIES:]
    for label in reversed(labels):
        tail = text[label.end() : label.end() + _AFTER_LABEL_CHARS]
        if order := _from_chain(tail, known) or _from_places(tail, known) or _from_sequence(tail, known):
            return order
    return None


def _from_sequence(tail: str, known: frozenset[str]) -> Order | None:
    """The letters in the order of the text: "B, A and C", or one to a line."""
    lines = [line for line in tail.lstrip(" \t:：-–—*_#").splitlines() if line.strip()]
    for part in (lines[:1], lines[: len(known)], lines[1 : 1 + len(known)]):
        letters = dict.fromkeys(letter for line in part for letter in _mentions(line))
        if order := _complete_order(([letter] for letter in letters), known):
            return order
    return None


# ── as a chain: B > A = C

_BETTER = (
    r"(?:is\s+)?(?:better|stronger)\s+than|beats|over|followed\s+by|(?:and\s+)?then"
    r"|besser\s+als|gefolgt\s+von|vor"
)
_BETTER_ROMANCE = r"mieux\s+que|meilleure?\s+que|puis|mejor\s+que|luego|meglio\s+di|poi"
_SEPARATOR = rf"\s*(,?\s*(?:>+=?|≻|≥|→|⟶|->|=>|<+=?|≺|≤|=+|≈|~|[,;]?\s(?:{_BETTER}|{_BETTER_ROMANCE})\s))\s*"
_PARENTHESIS = r"(?:\s?\([^()\n]{1,80}\))?"
_LINK = re.compile(rf"{_LETTER}{_PARENTHESIS}", re.IGNORECASE)
_JOINT = re.compile(_SEPARATOR, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Chain:
    letters: tuple[str, ...]
    joints: tuple[str, ...]


def _from_chain(text: str, known: frozenset[str]) -> Order | None:
    """The order of the last chain that contains every known letter."""
    orders = [order for chain in _chains(text) if (order := _complete_order(_groups(chain), known))]
    return orders[-1] if orders else None


def _chains(text: str) -> Iterator[_Chain]:
    """Finds letters with an order sign between each two."""
    at = 0
    while first := _LINK.search(text, at):
        letters, joints, at = [first[1].upper()], [], first.end()
        while (joint := _JOINT.match(text, at)) and (link := _LINK.match(text, joint.end())):
            joints.append(joint[1].strip(" ,;"))
            letters.append(link[1].upper())
            at = link.end()
        if joints:
            yield _Chain(tuple(letters), tuple(joints))


def _groups(chain: _Chain) -> list[list[str]]:
    """The letters of a chain, best first; empty if its signs contradict each other."""
    if any(map(_is_worse, chain.joints)) and any(map(_is_better, chain.joints)):
        return []
    groups = [[chain.letters[0]]]
    for joint, letter in zip(chain.joints, chain.letters[1:], strict=True):
        if _is_tie(joint):
            groups[-1].append(letter)
        else:
            groups.append([letter])
    return groups[::-1] if any(map(_is_worse, chain.joints)) else groups


def _is_tie(joint: str) -> bool:
    return joint in ("≈", "~") or set(joint) == {"="}


def _is_worse(joint: str) -> bool:
    return joint[:1] in "<≺≤"


def _is_better(joint: str) -> bool:
    return not _is_tie(joint) and not _is_worse(joint)


# ── as numbers: 1. B 2. A, or B: 2nd

_RANK_WORD = r"(?:#|n[or]\.?°?\s?|rank(?:ed)?\s|place\s|platz\s|rang\s|puesto\s|lugar\s|第\s?)"
_SUFFIX = r"(?:st|nd|rd|th|er|ère|e|º|ª|°|位|名)?"
_NUMBER_FIRST = re.compile(
    rf"(?<![\w.,/]){_MARKS}{_RANK_WORD}?([1-9]){_SUFFIX}(?:\s?(?:place|platz|plaats))?{_MARKS}\s?[.):,=–—-]{{0,2}}\s{{0,3}}"
    rf"{_LETTER}",
    re.IGNORECASE,
)
_NUMBER_LAST = re.compile(
    rf"{_LETTER}[ \t]?[:=|–—-]{{0,2}}[ \t]?{_RANK_WORD}?([1-9]){_SUFFIX}{_MARKS}(?:\s(?:place|platz))?"
    r"(?=[ \t]*(?:[,;|\n]|\.?\s*$))",
    re.IGNORECASE | re.MULTILINE,
)
_AFTER_LETTER = re.compile(r"[^\n]{0,400}")
_LONG_REMARK = 8
"""Words."""


def _from_places(text: str, known: frozenset[str]) -> Order | None:
    first = [(int(match[1]), match[2].upper()) for match in _NUMBER_FIRST.finditer(text)]
    last = [(int(match[2]), match[1].upper()) for match in _NUMBER_LAST.finditer(text)]
    return _last_run(first, known) or _last_run(last, known, is_in_order=False)


def _last_run(
    pairs: Sequence[tuple[int, str]], known: frozenset[str], *, is_in_order: bool = True
) -> Order | None:
    """The order of the last complete numbering in the text."""
    for start in range(len(pairs) - len(known), -1, -1):
        run = pairs[start : start + len(known)]
        is_ascending = [place for place, _ in run] == sorted(place for place, _ in run)
        if (is_ascending or not is_in_order) and (order := _by_place(run, known)):
            return order
    return None


def _from_numbers(text: str, known: frozenset[str]) -> Order | None:
    """The order of a numbered list without the word "ranking". A list of long remarks in the order A, B, C
    is no ranking: it only reviews the answers as they were shown."""
    order = _from_places(text, known)
    is_as_shown = order is not None and [letter for group in order for letter in group] == sorted(known)
    return None if is_as_shown and _has_long_remarks(text) else order


def _has_long_remarks(text: str) -> bool:
    remarks = (_AFTER_LETTER.match(text, number.end()) for number in _NUMBER_FIRST.finditer(text))
    return any(remark is not None and len(remark[0].split()) > _LONG_REMARK for remark in remarks)


# ── in words: first B, second A

_CONCLUSION = 2_500
"""Characters from the end to parse: earlier sentences judge one answer at a time."""

_ORDINALS = (
    r"first|erste\w{0,2}|premi[eè]re?|primer\w?|primo",
    r"second|zweite\w{0,2}|deuxi[eè]me|segund\w|second\w",
    r"third|dritte\w{0,2}|troisi[eè]me|tercer\w?|terzo",
    r"fourth|vierte\w{0,2}|quatri[eè]me|cuart\w|quarto",
    r"fifth|fünfte\w{0,2}|cinqui[eè]me|quint\w",
    r"sixth|sechste\w{0,2}|sixi[eè]me|sext\w",
    r"seventh|siebte\w{0,2}|septi[eè]me|séptim\w",
)
_LAST = r"last|letzte\w{0,2}|derni[eè]re?|últim\w|ultimo"
_ORDINAL_LINK = (
    r"(?:[^\S\n]*(?:is|comes|ranks?|takes|goes|to|in|place|platz|the|ist|auf|est|en|es|:|,|–|—|-)){0,4}"
    r"[^\S\n]*"
)


def _from_ordinals(text: str, known: frozenset[str]) -> Order | None:
    """The order of letters beside ordinal words: all letters after their word, or all before it."""
    if len(known) > len(_ORDINALS):
        return None
    text = text[-_CONCLUSION:]
    words = [*_ORDINALS[: len(known) - 1], f"{_ORDINALS[len(known) - 1]}|{_LAST}"]
    pattern_lists = [
        [rf"(?<!\w)(?:{word})(?!\w){_ORDINAL_LINK}{_BARE}" for word in words],
        [rf"{_LETTER}{_ORDINAL_LINK}(?:{word})(?!\w)" for word in words],
    ]
    orders = (_by_place(list(_letters_by_ordinal(patterns, text)), known) for patterns in pattern_lists)
    return next((order for order in orders if order), None)


def _letters_by_ordinal(patterns: Sequence[str], text: str) -> Iterator[tuple[int, str]]:
    for place, pattern in enumerate(patterns, 1):
        for match in re.finditer(pattern, text, re.IGNORECASE):
            yield place, match[1].upper()


# ── in a sentence: Answer B is best

_COPULA = (
    r"(?:'s)?[^\S\n]*(?:\w{2,20}[^\S\n]+)?(?:is|was|seems|remains|ist|est|es|è|é|är|jest|—|–|-|:|,)?[^\S\n]*"
)
_INTENSIFIER = (
    r"(?:(?:clearly|by\sfar|overall|definitely|easily|probably|still|simply|the|our|my|klar|eindeutig|wohl|am"
    r"|die|das|der|clairement|la|le|el|il|lo|a|o|ma|den|det|самый|是|が|は)[^\S\n]*){0,4}"
)
_BEST = (
    r"(?:best\w*|strongest|winner|superior|stärkste\w*|meilleure?|mejor|migliore|melhor|bäst\w?|najlepsz\w*|лучш\w*"
    r"|最好|最佳|最良|一番|최고)"
)
_WORST = (
    r"(?:worst|weakest|schlechteste\w*|schwächste\w*|pire|moins\sbonne?|peor|peggiore|pior|sämst\w*|худш\w*"
    r"|最差|最悪)"
)
_ANSWER_LINK = (
    r"(?:[^\S\n]*(?:overall|answer|response|reply|one|choice|option|antwort|réponse|respuesta|risposta|resposta"
    r"|is|was|ist|est|es|è|é|goes|to|:|=|–|—|-)){0,4}[^\S\n]*"
)


def _from_praise(text: str, known: frozenset[str]) -> Order | None:
    """The order of sentences such as "Answer B is best"; the answers that are neither best nor worst tie."""
    text = text[-_CONCLUSION:]
    best, worst = _letters_called(_BEST, text, known), _letters_called(_WORST, text, known)
    if len(known) == 2 and not best:
        best = _letters_called(_BETTER_OF_TWO, text, known) or (known - worst if worst else worst)
    if len(best) != 1 or len(worst) > 1 or best & worst:
        return None
    between = known - best - worst
    return _complete_order((sorted(best), sorted(between), sorted(worst)), known)


_BETTER_OF_TWO = r"(?:better|stronger|preferable|besser|mieux|meglio)"


def _letters_called(praise: str, text: str, known: frozenset[str]) -> frozenset[str]:
    """The letters that the text calls best or worst; ignores "not the best"."""
    patterns = (
        rf"{_LETTER}{_COPULA}{_INTENSIFIER}{praise}(?!\w)",
        rf"(?<!not\s)(?<!not\sthe\s)(?<!\w){praise}{_ANSWER_LINK}{_BARE}",
    )
    letters = (match[1] for pattern in patterns for match in re.finditer(pattern, text, re.IGNORECASE))
    return frozenset(letter for letter in letters if letter in known)


# ── several orders, added up


@dataclass(frozen=True, slots=True)
class Standing:
    """The mean place of an answer, over all rankings that contain it."""

    message_id: str
    place: int
    """Answers with the same mean share a place."""
    mean: Fraction
    rankings: int
    """The number of rankings that contain it."""


def ranking_of(order: Order, ids: dict[str, str]) -> Ranking:
    """Replaces the letters of an order with the ids of their messages."""
    places: list[int] = []
    message_ids: list[str] = []
    for group in order:
        place = len(message_ids) + 1
        message_ids += [ids[letter] for letter in group]
        places += [place] * len(group)
    return Ranking(tuple(message_ids), tuple(places))


def standings(message_ids: Iterable[str], rankings: Sequence[Ranking]) -> tuple[Standing, ...]:
    """The messages by mean place, best first; leaves out messages that no ranking contains."""
    dependencies: list[tuple[Fraction, str, int]] = []
    for message_id in message_ids:
        places = [place for ranking in rankings if (place := mean_place(ranking, message_id)) is not None]
        if places:
            dependencies.append((sum(places, Fraction()) / len(places), message_id, len(places)))
    return tuple(
        Standing(message_id, 1 + sum(other < mean for other, _, _ in dependencies), mean, count)
        for mean, message_id, count in sorted(dependencies, key=lambda row: row[0])
    )


def mean_place(ranking: Ranking, message_id: str) -> Fraction | None:
    """The place of a message in a ranking. Tied messages share their places: two tied first both have 1½."""
    if message_id not in ranking.message_ids:
        return None
    places = ranking.places or tuple(range(1, len(ranking.message_ids) + 1))
    place = places[ranking.message_ids.index(message_id)]
    return place + Fraction(places.count(place) - 1, 2)
