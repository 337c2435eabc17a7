"""Sanitize: makes text from providers safe to store, show and quote."""

from __future__ import annotations

import re

DETAIL_LIMIT = 500
REPLACEMENT = "\ufffd"

_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")
_KEY_LIKE = re.compile(r"\b(?:sk|pk|rk|gsk|xai|key|AIza)[-_A-Za-z0-9*.]{12,}|\bBearer\s+\S+", re.IGNORECASE)


class SurrogateJoiner:
    """Joins surrogate pairs that a provider has split between two deltas, and replaces invalid characters.

    JSON can carry half a pair ("\\ud83d") and a NUL; neither can be written to a database or a socket.
    """

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def feed(self, text: str) -> str:
        if text.isascii() and not self._half:
            return text if "\x00" not in text else text.replace("\x00", REPLACEMENT)
        return self._join(self._half + text)

    def flush(self) -> str:
        """A replacement character if the stream ended with half a surrogate pair."""
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


def quotable(message: str, secrets: tuple[str, ...] = ()) -> str | None:
    """A provider's message made safe to show: no keys, no control characters, at most 500 characters; None if
    empty."""
    for secret in secrets:
        if secret:
            message = message.replace(secret, "•••")
    message = _KEY_LIKE.sub("•••", message)
    message = " ".join(_CONTROL.sub(" ", message).split())
    if len(message) > DETAIL_LIMIT:
        message = message[: DETAIL_LIMIT - 1] + "…"
    return message or None
