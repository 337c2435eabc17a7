"""Queries: what a person or a model types, as words to look for. Any text is safe.

Words are joined with OR and ranked; never a phrase and never AND, which find nothing in long questions.
"""

from __future__ import annotations

import re

from tertulia.store.words import MARKS

LENGTH_LIMIT = 8_000
TERMS_LIMIT = 64
SHAPED_LIMIT = 96
"""With those that count twice."""
_WORD = re.compile(rf"\w[\w{MARKS}]*")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_")

_NAME = re.compile(r"\b(?:[A-Za-z]+[a-z0-9][A-Z]\w*|\w+_\w+|[A-Z]{2,}\w*)\b")
_SHORTENED = re.compile(r"(?<=\w)['’](?:s|t|d|m|ll|re|ve)\b", re.IGNORECASE)
"""What follows the apostrophe in Ada's, don't and we'll."""
SHORT_TERMS = 12
"""So few words are a question, however they are set."""

STOP_WORDS = frozenset(
    """
    a about above after again against all also am an and any are as at be because been before being below
    between both but by can could did do does doing down during each either else ever every few for from
    further get gets got had has have having he her here hers him his how i if in into is it its itself just
    let like me more most my myself no nor not now of off on once one only or other our ours out over own
    please same she should so some still such tell than that the their theirs them then there these they this
    those through to too under until up upon us very was we were what when where which while who whom whose
    why will with would yes yet you your yours
    """.split()  # noqa: SIM905 - a paragraph reads better than 150 quoted words
)


def terms(text: str) -> tuple[str, ...]:
    """The content words, once each, in their order; all words when there are no others."""
    return _all_terms(text)[:TERMS_LIMIT]


def shaped(text: str) -> tuple[str, ...]:
    """What to look for: of a long text the first line and the names of things come first and count twice."""
    words = _all_terms(text)
    if not is_long(text):
        return words[:TERMS_LIMIT]
    head = text.strip()[:LENGTH_LIMIT].partition("\n")[0]
    twice = {*_all_terms(head), *(word.lower() for word in _NAME.findall(text[:LENGTH_LIMIT]))}
    said = [word for word in words if len(word) > 1]  # a long text is full of x and i
    first = [word for word in said if word in twice]
    rest = [word for word in said if word not in twice]
    return tuple([*first, *first, *rest][:SHAPED_LIMIT])


def is_long(text: str) -> bool:
    """A first line and more words below it than a question has: a report, a traceback, a letter."""
    return "\n" in text.strip()[:LENGTH_LIMIT] and len(_all_terms(text)) > SHORT_TERMS


def _all_terms(text: str) -> tuple[str, ...]:
    spoken = _SHORTENED.sub(" ", text[:LENGTH_LIMIT])
    words = dict.fromkeys(word.lower() for word in _WORD.findall(spoken))
    content = tuple(word for word in words if word not in STOP_WORDS)
    return content or tuple(words)


def parts(word: str) -> tuple[str, ...]:
    """camelCase and snake_case taken apart; nothing for a plain word."""
    pieces = [piece for piece in CAMEL.split(word) if len(piece) > 1]
    return tuple(piece.lower() for piece in pieces) if len(pieces) > 1 else ()


def identifiers(text: str) -> str:
    """The parts of every identifier in a text, for the column they are searched in."""
    found = (part for word in _WORD.findall(text) if len(word) > 3 for part in parts(word))
    return " ".join(dict.fromkeys(found))
