"""Query parsing: turns any text that a person or a model types into search terms.

Any input is safe. The terms are joined with OR and ranked; phrases and AND are never used, because they find
nothing for long questions.
"""

from __future__ import annotations

import re

from tertulia.store.text_index import MARKS

LENGTH_LIMIT = 8_000
TERMS_LIMIT = 64
SHAPED_LIMIT = 96
"""Including the terms that are repeated because they count twice."""
_WORD = re.compile(rf"\w[\w{MARKS}]*")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_")

_NAME = re.compile(r"\b(?:[A-Za-z]+[a-z0-9][A-Z]\w*|\w+_\w+|[A-Z]{2,}\w*)\b")
_CONTRACTION = re.compile(r"(?<=\w)['’](?:s|t|d|m|ll|re|ve)\b", re.IGNORECASE)
"""The apostrophe and the letters after it in Ada's, don't and we'll."""
SHORT_TERMS = 12
"""A text of at most this many terms is a short question, even on several lines."""

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
    """The words of a text without stop words, each once, in order. If all are stop words, all words."""
    return _all_terms(text)[:TERMS_LIMIT]


def shaped(text: str) -> tuple[str, ...]:
    """The search terms for files. In a long text, the words of the first line and identifiers count twice."""
    words = _all_terms(text)
    if not is_long(text):
        return words[:TERMS_LIMIT]
    head = text.strip()[:LENGTH_LIMIT].partition("\n")[0]
    important = {*_all_terms(head), *(word.lower() for word in _NAME.findall(text[:LENGTH_LIMIT]))}
    longer = [word for word in words if len(word) > 1]  # a long text is full of x and i
    first = [word for word in longer if word in important]
    rest = [word for word in longer if word not in important]
    return tuple([*first, *first, *rest][:SHAPED_LIMIT])


def is_long(text: str) -> bool:
    """True for several lines with more terms than a question has, such as a bug report or a traceback."""
    return "\n" in text.strip()[:LENGTH_LIMIT] and len(_all_terms(text)) > SHORT_TERMS


def _all_terms(text: str) -> tuple[str, ...]:
    shortened = _CONTRACTION.sub(" ", text[:LENGTH_LIMIT])
    words = dict.fromkeys(word.lower() for word in _WORD.findall(shortened))
    content = tuple(word for word in words if word not in STOP_WORDS)
    return content or tuple(words)


def parts(word: str) -> tuple[str, ...]:
    """The parts of a camelCase or snake_case identifier, in lower case; empty for a plain word."""
    pieces = [piece for piece in CAMEL.split(word) if len(piece) > 1]
    return tuple(piece.lower() for piece in pieces) if len(pieces) > 1 else ()


def identifiers(text: str) -> str:
    """The parts of all identifiers in a text, each once, for the `around` column of the full-text index."""
    all_parts = (part for word in _WORD.findall(text) if len(word) > 3 for part in parts(word))
    return " ".join(dict.fromkeys(all_parts))
