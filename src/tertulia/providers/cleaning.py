"""Cleaning: what arrives from outside becomes text that can be stored, shown and quoted."""

from __future__ import annotations

import re

DETAIL_LIMIT = 500
REPLACEMENT = "\ufffd"

_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")
_KEY_LIKE = re.compile(r"\b(?:sk|pk|rk|gsk|xai|key|AIza)[-_A-Za-z0-9*.]{12,}|\bBearer\s+\S+", re.IGNORECASE)


class Whole:
    """Joins characters cut in two by a provider, and replaces what is no character at all.

    JSON can carry half of a pair ("\\ud83d") and a NUL; neither can be written to a database or a socket.
    """

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def take(self, text: str) -> str:
        if text.isascii() and not self._half:
            return text if "\x00" not in text else text.replace("\x00", REPLACEMENT)
        return self._join(self._half + text)

    def rest(self) -> str:
        """What is left when nothing more comes: half a character."""
        half, self._half = self._half, ""
        return REPLACEMENT if half else ""

    def _join(self, text: str) -> str:
        self._half = ""
        if _SURROGATE.search(text) is None:
            return text.replace("\x00", REPLACEMENT)
        if "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        paired = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return paired.replace("\x00", REPLACEMENT)


def quotable(said: str, secrets: tuple[str, ...] = ()) -> str | None:
    """What a provider said, fit to be shown: no key, no control characters, not too long."""
    for secret in secrets:
        if secret:
            said = said.replace(secret, "•••")
    said = _KEY_LIKE.sub("•••", said)
    said = " ".join(_CONTROL.sub(" ", said).split())
    if len(said) > DETAIL_LIMIT:
        said = said[: DETAIL_LIMIT - 1] + "…"
    return said or None
