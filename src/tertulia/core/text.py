"""Text sanitizing: makes text storable in any database, and removes characters that people do not see."""

from __future__ import annotations

import re

REPLACEMENT = "\ufffd"


def storable(text: str) -> str:
    """Replaces U+0000 and lone surrogates; everything else stays as it is."""
    if "\0" in text:
        text = text.replace("\0", REPLACEMENT)
    if text.isascii() or _is_encodable(text):
        return text
    # A matching pair of surrogates becomes the character it encodes; a lone surrogate is replaced.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def visible(text: str) -> str:
    """Removes characters that a model reads but a person does not see, or sees in another place.

    It removes tag characters, zero-width spaces, direction overrides and repeated variation selectors.
    Direction marks and joiners stay: Persian, Indic scripts and emoji need them. A flag that is encoded in
    tag characters stays whole.
    """
    return text if text.isascii() else _DECEPTIVE.sub(lambda match: match[1] or "", text)


_DECEPTIVE = re.compile(
    "(\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f)"
    "|[\U000e0000-\U000e007f\u200b\u2060-\u2064\ufeff\u202a-\u202e\u2066-\u2069]"
    "|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}"
)
