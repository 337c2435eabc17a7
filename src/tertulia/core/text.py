"""Text that any database can hold, and text that says to a model what it says to a person."""

from __future__ import annotations

import re

REPLACEMENT = "\ufffd"


def storable(text: str) -> str:
    """The text with U+0000 and lone surrogates replaced; everything else stays as it is."""
    if "\0" in text:
        text = text.replace("\0", REPLACEMENT)
    if text.isascii() or _is_encodable(text):
        return text
    # Halves that belong together join into the character they mean; a half alone means nothing.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def visible(text: str) -> str:
    """The text without letters that a model reads and a person does not see, or sees elsewhere.

    Tag characters, zero-width spaces, overrides of direction and piled-up variation selectors go. Marks of
    direction and joiners stay: Persian, Indic scripts and emoji need them. A flag that is spelt in tag
    characters stays whole.
    """
    return text if text.isascii() else _DECEPTIVE.sub(lambda found: found[1] or "", text)


_DECEPTIVE = re.compile(
    "(\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f)"
    "|[\U000e0000-\U000e007f\u200b\u2060-\u2064\ufeff\u202a-\u202e\u2066-\u2069]"
    "|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}"
)
