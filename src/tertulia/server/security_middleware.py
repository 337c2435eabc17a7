"""The guard at the door: Host, origin and size are checked before anything else looks at a request.

One pure ASGI layer (a BaseHTTPMiddleware costs three times as much per streamed chunk).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tertulia.core.errors import Malformed, TertuliaError, TooLarge, UnknownHost, WrongOrigin, WrongType
from tertulia.core.text import storable
from tertulia.server.errors import respond, unknown

JSON_LIMIT = 4 << 20
JSON_DEPTH = 64
JSON_PARTS = 10_000
"""Brackets, commas and strings: what we are sent has few; a body of nothing else would hold everyone up."""
SILENCE_S = 30.0
"""A request that says nothing for so long is over."""
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_HOST = re.compile(r"^(?P<name>\[[0-9a-f:.]{2,45}\]|[a-z0-9](?:[a-z0-9.\-]{0,252}))(?::(?P<port>\d{1,5}))?$")

Header = tuple[bytes, bytes]
TakesBytes = Callable[[str, str], bool]
"""Whether what a method brings to a path is a file."""

API_HEADERS = ((b"cache-control", b"no-store"),)
PAGE_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=(), payment=()"),
)


@dataclass(frozen=True, slots=True)
class Host:
    name: str
    port: int | None


class SecurityMiddleware:
    def __init__(
        self,
        app: ASGIApp,
        hosts: Iterable[str],
        policy: str,
        public_url: str = "",
        takes_bytes: TakesBytes = lambda method, path: False,
        silence_s: float = SILENCE_S,
    ) -> None:
        self._app = app
        self._takes_bytes = takes_bytes
        self._silence_s = silence_s
        self._hosts = frozenset(hosts)
        self._policy = (b"content-security-policy", policy.encode())
        self._public = public_url.lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        try:
            self._must_come_from_here(scope, self._host(scope))
            if self._is_upload(scope):
                _must_be_bytes(scope)
            else:
                receive = await _bounded(scope, receive, self._silence_s)
        except TertuliaError as error:
            await self._refuse(scope, receive, send, error)
            return
        if scope["type"] == "websocket":
            await self._app(scope, receive, send)
        else:
            await self._answer(scope, receive, WithHeaders(send, self._headers(scope)))

    def _host(self, scope: Scope) -> Host:
        """421 for a name that is not ours, so that a rebound name never reaches a loopback server."""
        given = _all(scope, b"host")
        host = parse_host(given[0]) if len(given) == 1 else None
        if host is None:
            raise Malformed("The Host header is missing or cannot be read.")
        if host.name not in self._hosts:
            raise UnknownHost("This server does not answer to that name. Add it to TERTULIA_ALLOWED_HOSTS.")
        return host

    def _must_come_from_here(self, scope: Scope, host: Host) -> None:
        """A write or a socket proves that it comes from a page of this server; a read must not say otherwise.

        A link from elsewhere to a page is no harm. A page on another port of this machine is elsewhere too,
        though the browser sends our cookie with what it asks for.
        """
        is_read = scope["type"] == "http" and scope["method"] in SAFE
        if is_read and not _is_api(scope):
            return
        origins, sites = _all(scope, b"origin"), _all(scope, b"sec-fetch-site")
        own_sites = ("same-origin", "none") if is_read else ("same-origin",)
        if any(site not in own_sites for site in sites) or not all(self._is_own(o, host) for o in origins):
            raise WrongOrigin("This request came from another site.")
        if not (is_read or origins or sites):
            raise WrongOrigin(
                "Say where this request comes from: send an Origin header with this server's address."
            )

    def _is_own(self, origin: str, host: Host) -> bool:
        """The address asked for, or the public one, which a proxy may have replaced on the way."""
        scheme, _, rest = origin.partition("://")
        return scheme in ("http", "https") and (parse_host(rest) == host or origin.lower() == self._public)

    def _is_upload(self, scope: Scope) -> bool:
        return scope["type"] == "http" and self._takes_bytes(scope["method"], scope["path"])

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, error: TertuliaError) -> None:
        if scope["type"] == "websocket":
            await _deny_socket(scope, receive, send, error)
        else:
            await respond(error)(scope, receive, WithHeaders(send, self._headers(scope)))

    async def _answer(self, scope: Scope, receive: Receive, send: WithHeaders) -> None:
        """Whatever nobody expected is answered from here, so that it wears the same headers as the rest."""
        try:
            await self._app(scope, receive, send)
        except Exception as error:
            if send.has_begun:
                raise
            await unknown(error)(scope, receive, send)

    def _headers(self, scope: Scope) -> Sequence[Header]:
        return (*PAGE_HEADERS, self._policy, *(API_HEADERS if _is_api(scope) else ()))


class WithHeaders:
    """Sends on, with headers added to the first message."""

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


def parse_host(text: str) -> Host | None:
    match = _HOST.match(text.lower())
    if match is None:
        return None
    port = match["port"]
    if port is not None and not 0 < int(port) <= 65535:
        return None
    return Host(match["name"], int(port) if port else None)


def _is_api(scope: Scope) -> bool:
    return str(scope["path"]).startswith("/api/")


def _must_be_bytes(scope: Scope) -> None:
    """A file comes as it is or in a form; its route reads it as it arrives and says when it is enough."""
    if _kind(scope) not in ("application/octet-stream", "multipart/form-data"):
        raise WrongType("Send a file with Content-Type: application/octet-stream, or several in a form.")


def _kind(scope: Scope) -> str:
    return (_all(scope, b"content-type") or [""])[0].partition(";")[0].strip().lower()


async def _bounded(scope: Scope, receive: Receive, silence_s: float) -> Receive:
    """Reads the body of a write whole, within its limit, and hands it on; one that stops arriving is over."""
    if scope["type"] != "http" or scope["method"] in SAFE:
        return receive
    declared = _all(scope, b"content-length")
    if declared and (not declared[0].isdecimal() or int(declared[0]) > JSON_LIMIT):
        raise TooLarge("A request holds at most 4 MiB.")
    chunks, size, more = [], 0, True
    while more:
        message = await _within(silence_s, receive)
        if message["type"] != "http.request":
            return _replay(message, receive)
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        more = message.get("more_body", False)
        if size > JSON_LIMIT:
            raise TooLarge("A request holds at most 4 MiB.")
    whole = b"".join(chunks)
    _must_be_json(scope, whole)
    return _replay({"type": "http.request", "body": _replace_unstorable(whole), "more_body": False}, receive)


async def _within(silence_s: float, receive: Receive) -> Message:
    try:
        async with asyncio.timeout(silence_s):
            return await receive()
    except TimeoutError:
        raise Malformed("The request was cut off before its end.") from None


def _must_be_json(scope: Scope, whole: bytes) -> None:
    """A form or plain text could be sent by any page without asking first; JSON cannot."""
    if not whole:
        return
    if _kind(scope) != "application/json":
        raise WrongType("Send JSON, with Content-Type: application/json.")
    if not _is_utf8(whole):
        raise Malformed("The body is not valid JSON: it must be written in UTF-8.")
    if sum(map(whole.count, (b"[", b"{", b","))) > JSON_DEPTH:
        _check_json_size(whole)


def _is_utf8(whole: bytes) -> bool:
    """Other encodings are read by the JSON parser too, and mean something else to whoever counts brackets."""
    try:
        whole.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in whole


_PARTS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{\]},]', re.DOTALL)
_STEPS = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


def _check_json_size(text: bytes) -> None:
    """Counts outside strings and stops at the first thing too many, so that a hostile body costs nothing."""
    level = 0
    for count, part in enumerate(_PARTS.finditer(text)):
        level += _STEPS.get(part[0], 0)
        if level > JSON_DEPTH:
            raise Malformed(f"The JSON is nested more than {JSON_DEPTH} deep.")
        if count > JSON_PARTS:
            raise TooLarge(f"The JSON has more than {JSON_PARTS} parts.")


_BROKEN = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")


def _replace_unstorable(whole: bytes) -> bytes:
    """JSON can write U+0000 and half a character; nothing behind the door could keep or send them."""
    if not _BROKEN.search(whole):
        return whole
    try:
        return json.dumps(_storable(json.loads(whole))).encode()
    except ValueError:
        return whole  # whoever reads it will say what is wrong with it


def _storable(value: Any) -> Any:
    match value:
        case str():
            return storable(value)
        case list():
            return [_storable(item) for item in value]
        case dict():
            return {storable(key): _storable(item) for key, item in value.items()}
    return value


def _replay(first: Message, receive: Receive) -> Receive:
    waiting = [first]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again


async def _deny_socket(scope: Scope, receive: Receive, send: Send, error: TertuliaError) -> None:
    """Refuses before the upgrade, with the status an ordinary request would get."""
    await receive()
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 4403})
        return
    response: Response = respond(error)
    headers = list(response.raw_headers)
    await send({"type": "websocket.http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": response.body})


def _all(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]
