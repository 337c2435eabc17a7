"""Response headers: the security headers that every response carries, and Cache-Control for the API."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.types import Message, Send

Header = tuple[bytes, bytes]

API_HEADERS = ((b"cache-control", b"no-store"),)
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=(), payment=()"),
)


class WithHeaders:
    """A `send` that adds headers to the start of the response."""

    __slots__ = ("_headers", "_send", "has_begun")

    def __init__(self, send: Send, headers: Sequence[Header]) -> None:
        self._send = send
        self._headers = headers
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            message["headers"] = [*message.get("headers", ()), *self._headers]
        await self._send(message)
