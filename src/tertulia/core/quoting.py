"""Quoting: whether words stand in a text, and how they stand there."""

from __future__ import annotations

import re
from html import unescape

_BETWEEN = r"[\s*_`~>]+"
"""What may lie between two words without their being other words: line breaks and marks of emphasis."""
_EDGES = "*_`~ \t\n\"'“”„‘’«»…."
LONGEST = 80
"""Words. More than this is no quotation but a copy, and would be slow to look for."""


def find_quote(quote: str, text: str) -> str:
    """The span of the text that says exactly this, as it stands there; empty when there is none."""
    words = [word for word in (part.strip("*_`~") for part in quote.strip(_EDGES).split()) if word]
    if not words or len(words) > LONGEST:
        return ""
    found = re.search(_BETWEEN.join(map(_letters, words)), text)
    return found.group(0) if found else ""


def _letters(word: str) -> str:
    """Typographers' and typewriters' quotation marks are the same letter."""
    escaped = re.escape(word)
    return re.sub(r"['‘’]", "['‘’]", re.sub(r'["“”„]', '["“”„]', escaped))


def stands_in(quote: str, text: str) -> bool:
    """Whether someone could have selected these words in the text as it is drawn: without its marks, the
    numbers of its lists and where its links lead, in lines of any length. Takes as long as both are."""
    letters = _letters_alone(quote)
    return bool(letters) and (quote in text or letters in _letters_alone(_UNDRAWN.sub("", unescape(text))))


_UNDRAWN = re.compile(
    r"^[ \t]*(?:```|~~~)[^\n]*"  # what language a block of code is in
    r"|^[ \t]*\d{1,9}[.)](?=[ \t])"  # the number of an item
    r"|!\[[^\[\]]*+\]"  # what a picture is of
    r"|(?<=\])\([^()\s]*+(?:[ \t]+\"[^()\"\n]*+\")?\)",  # where a link leads
    re.MULTILINE,
)


def _letters_alone(text: str) -> str:
    return "".join(filter(str.isalnum, text))
