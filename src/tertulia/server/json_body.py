"""JSON bodies: reads the body of a write completely, within limits of size, nesting, parts and time."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from starlette.types import Message, Receive, Scope

from tertulia.core.errors import Malformed, TooLarge, WrongType
from tertulia.core.text import storable
from tertulia.server.asgi_scope import content_type, header_values, is_safe

JSON_LIMIT = 4 << 20
JSON_DEPTH = 64
JSON_PARTS = 10_000
"""Brackets, commas and strings. Our clients send few; a body of nothing else would block the event loop."""
SILENCE_S = 30.0
"""A request is cut off when the client has sent nothing for this long."""


async def read_json_body(scope: Scope, receive: Receive, silence_s: float = SILENCE_S) -> Receive:
    """Reads and checks the body, and returns a `receive` that hands it to the route in one message."""
    if scope["type"] != "http" or is_safe(scope):
        return receive
    _check_declared_length(scope)
    chunks, size, more = [], 0, True
    while more:
        message = await _receive_within(silence_s, receive)
        if message["type"] != "http.request":
            return _replay(message, receive)
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        more = message.get("more_body", False)
        if size > JSON_LIMIT:
            raise TooLarge("A request holds at most 4 MiB.")
    body = b"".join(chunks)
    _must_be_json(scope, body)
    return _replay({"type": "http.request", "body": _replace_unstorable(body), "more_body": False}, receive)


def _check_declared_length(scope: Scope) -> None:
    declared = header_values(scope, b"content-length")
    if declared and (not declared[0].isdecimal() or int(declared[0]) > JSON_LIMIT):
        raise TooLarge("A request holds at most 4 MiB.")


async def _receive_within(silence_s: float, receive: Receive) -> Message:
    try:
        async with asyncio.timeout(silence_s):
            return await receive()
    except TimeoutError:
        raise Malformed("The request was cut off before its end.") from None


def _must_be_json(scope: Scope, body: bytes) -> None:
    """Refuses forms and plain text: any page can send them to us without a preflight, but not JSON."""
    if not body:
        return
    if content_type(scope) != "application/json":
        raise WrongType("Send JSON, with Content-Type: application/json.")
    if not _is_utf8(body):
        raise Malformed("The body is not valid JSON: it must be written in UTF-8.")
    if sum(map(body.count, (b"[", b"{", b","))) > JSON_DEPTH:
        _check_json_size(body)


def _is_utf8(body: bytes) -> bool:
    """The JSON parser also reads UTF-16 and UTF-32, in which the brackets would not be counted."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in body


_PARTS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{\]},]', re.DOTALL)
_LEVEL_CHANGES = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


def _check_json_size(body: bytes) -> None:
    """Counts nesting and parts outside strings. Stops at the first excess, so a hostile body costs little."""
    level = 0
    for count, part in enumerate(_PARTS.finditer(body)):
        level += _LEVEL_CHANGES.get(part[0], 0)
        if level > JSON_DEPTH:
            raise Malformed(f"The JSON is nested more than {JSON_DEPTH} deep.")
        if count > JSON_PARTS:
            raise TooLarge(f"The JSON has more than {JSON_PARTS} parts.")


_UNSTORABLE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")


def _replace_unstorable(body: bytes) -> bytes:
    """Replaces U+0000 and lone surrogates, which JSON can express but no database can store."""
    if not _UNSTORABLE.search(body):
        return body
    try:
        return json.dumps(_storable(json.loads(body))).encode()
    except ValueError:
        return body  # the route's own parser reports what is wrong


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
    """A `receive` that returns this message first."""
    messages = [first]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again
