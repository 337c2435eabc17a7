"""Text that any database can hold."""

from __future__ import annotations

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
