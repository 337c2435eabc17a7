"""The guard at the door: Host, origin and size are checked before anything else looks at a request.

One pure ASGI layer (a BaseHTTPMiddleware costs three times as much per streamed chunk).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tertulia.core.errors import Malformed, TertuliaError, TooLarge, UnknownHost, WrongOrigin, WrongType
from tertulia.server.errors import respond

JSON_LIMIT = 4 << 20
JSON_DEPTH = 64
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_HOST = re.compile(r"^(?P<name>\[[0-9a-f:.]{2,45}\]|[a-z0-9](?:[a-z0-9.\-]{0,252}))(?::(?P<port>\d{1,5}))?$")

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


class Guard:
    def __init__(self, app: ASGIApp, hosts: Iterable[str], policy: str) -> None:
        self._app = app
        self._hosts = frozenset(hosts)
        self._policy = (b"content-security-policy", policy.encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        try:
            host = self._host(scope)
            _must_come_from_here(scope, host)
            receive = await _bounded(scope, receive)
        except TertuliaError as error:
            await self._refuse(scope, receive, send, error)
            return
        await self._app(scope, receive, self._with_headers(scope, send))

    def _host(self, scope: Scope) -> Host:
        """421 for a name that is not ours, so that a rebound name never reaches a loopback server."""
        given = _all(scope, b"host")
        host = parse_host(given[0]) if len(given) == 1 else None
        if host is None:
            raise Malformed("The Host header is missing or cannot be read.")
        if host.name not in self._hosts:
            raise UnknownHost("This server does not answer to that name. Add it to TERTULIA_ALLOWED_HOSTS.")
        return host

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, error: TertuliaError) -> None:
        if scope["type"] == "websocket":
            await _deny_socket(scope, receive, send, error)
        else:
            await respond(error)(scope, receive, self._with_headers(scope, send))

    def _with_headers(self, scope: Scope, send: Send) -> Send:
        if scope["type"] == "websocket":
            return send
        is_api = scope["path"].startswith("/api/")
        extra = (*PAGE_HEADERS, self._policy, *(API_HEADERS if is_api else ()))

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *extra]
            await send(message)

        return send_guarded


def parse_host(text: str) -> Host | None:
    match = _HOST.match(text.lower())
    if match is None:
        return None
    port = match["port"]
    if port is not None and not 0 < int(port) <= 65535:
        return None
    return Host(match["name"], int(port) if port else None)


def _must_come_from_here(scope: Scope, host: Host) -> None:
    """A write, or a socket, proves that it comes from a page of this server."""
    is_socket = scope["type"] == "websocket"
    if not is_socket and scope["method"] in SAFE:
        return
    origins = _all(scope, b"origin")
    site = _all(scope, b"sec-fetch-site")
    if site and site != ["same-origin"]:
        raise WrongOrigin("This request came from another site.")
    if origins and not _is_own(origins, host):
        raise WrongOrigin("This request came from another site.")
    if not origins and not site:
        raise WrongOrigin(
            "Say where this request comes from: send an Origin header with this server's address."
        )


def _is_own(origins: list[str], host: Host) -> bool:
    scheme, _, rest = origins[0].partition("://")
    return len(origins) == 1 and scheme in ("http", "https") and parse_host(rest) == host


async def _bounded(scope: Scope, receive: Receive) -> Receive:
    """Reads the body of a write whole, within its limit, and hands it on."""
    if scope["type"] != "http" or scope["method"] in SAFE:
        return receive
    declared = _all(scope, b"content-length")
    if declared and (not declared[0].isdecimal() or int(declared[0]) > JSON_LIMIT):
        raise TooLarge("A request holds at most 4 MiB.")
    chunks, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return _replay(message, receive)
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        more = message.get("more_body", False)
        if size > JSON_LIMIT:
            raise TooLarge("A request holds at most 4 MiB.")
    whole = b"".join(chunks)
    _must_be_json(scope, whole)
    return _replay({"type": "http.request", "body": whole, "more_body": False}, receive)


def _must_be_json(scope: Scope, whole: bytes) -> None:
    """A form or plain text could be sent by any page without asking first; JSON cannot."""
    if not whole:
        return
    kind = (_all(scope, b"content-type") or [""])[0].partition(";")[0].strip().lower()
    if kind != "application/json":
        raise WrongType("Send JSON, with Content-Type: application/json.")
    if whole.count(b"[") + whole.count(b"{") > JSON_DEPTH and depth(whole) > JSON_DEPTH:
        raise Malformed(f"The JSON is nested more than {JSON_DEPTH} deep.")


_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{\]}]', re.DOTALL)


def depth(text: bytes) -> int:
    """How deep brackets nest outside strings, in one pass."""
    deepest = level = 0
    for match in _BRACKETS.finditer(text):
        mark = match[0]
        if mark in (b"[", b"{"):
            level += 1
            deepest = max(deepest, level)
        elif mark in (b"]", b"}"):
            level -= 1
    return deepest


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
