"""Quote matching: finds a quotation in a text, despite markup, line breaks and different quotation marks."""

from __future__ import annotations

import re
from html import unescape

_SEPARATOR = r"[\s*_`~>]+"
"""The separators allowed between two words: whitespace and emphasis marks."""
_EDGES = "*_`~ \t\n\"'“”„‘’«»…."
MAX_WORDS = 80
"""The most words of a quotation; a longer one is a copy, and slow to search for."""


def find_quote(quote: str, text: str) -> str:
    """The quotation exactly as the text has it; empty if the text does not contain it."""
    words = [word for word in (part.strip("*_`~") for part in quote.strip(_EDGES).split()) if word]
    if not words or len(words) > MAX_WORDS:
        return ""
    match = re.search(_SEPARATOR.join(map(_word_pattern, words)), text)
    return match.group(0) if match else ""


def _word_pattern(word: str) -> str:
    """The pattern for a word in which typographic and plain quotation marks are equal."""
    escaped = re.escape(word)
    return re.sub(r"['‘’]", "['‘’]", re.sub(r'["“”„]', '["“”„]', escaped))


def stands_in(quote: str, text: str) -> bool:
    """Whether a person could have selected this quotation in the rendered text. Markup, list numbers and
    link targets are ignored, and lines may break anywhere. Takes linear time."""
    letters = _alphanumeric(quote)
    return bool(letters) and (
        quote in text or letters in _alphanumeric(_NOT_RENDERED.sub("", unescape(text)))
    )


_NOT_RENDERED = re.compile(
    r"^[ \t]*(?:```|~~~)[^\n]*"  # the language of a code block
    r"|^[ \t]*\d{1,9}[.)](?=[ \t])"  # the number of an item
    r"|!\[[^\[\]]*+\]"  # the alternative text of an image
    r"|(?<=\])\([^()\s]*+(?:[ \t]+\"[^()\"\n]*+\")?\)",  # the target of a link
    re.MULTILINE,
)


def _alphanumeric(text: str) -> str:
    return "".join(filter(str.isalnum, text))
