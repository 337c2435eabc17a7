"""Quoting: whether words stand in a text, and how they stand there."""

from __future__ import annotations

import re

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
    """Whether someone could have selected these words in the text as it is drawn: without its marks, in lines
    of any length. Looks at each letter once, however long both are."""
    bare = _bare(quote)
    return bool(bare) and bare in _bare(text)


def _bare(text: str) -> str:
    return "".join(text.translate(_MARKS).split())


_MARKS = str.maketrans(
    {**dict.fromkeys("*_`~>#|\\"), **dict.fromkeys("‘’", "'"), **dict.fromkeys("“”„", '"')}
)
