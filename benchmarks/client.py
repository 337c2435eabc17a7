"""The load: requests over plain sockets, read with as little work as will do."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

LIMIT_S = 60.0
"""Nothing here takes as long; what does is broken."""
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_LAST_CHUNK = b"0\r\n\r\n"
TEXT, PING, PONG = 1, 9, 10
"""Kinds of WebSocket frames."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    data: bytes
    """Headers and body as they came."""
    first_s: float
    """From the request to the awaited bytes, or to the first byte when none were named."""
    whole_s: float

    def json(self) -> Any:
        return json.loads(self.data.partition(b"\r\n\r\n")[2])


class Caller(asyncio.Protocol):
    """One connection, kept open; one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._done: asyncio.Future[None]
        self._data = bytearray()
        self._awaited = b""
        self._length: int | None = None
        self._began = self._first = 0.0

    @classmethod
    async def connect(cls, port: int) -> Caller:
        _, caller = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", port)
        return caller

    async def ask(self, request: bytes, awaited: bytes = b"") -> Answer:
        self._data = bytearray()
        self._awaited = awaited
        self._length = None
        self._first = 0.0
        self._done = asyncio.get_running_loop().create_future()
        self._began = time.perf_counter()
        self._transport.write(request)
        async with asyncio.timeout(LIMIT_S):
            await self._done
        whole = time.perf_counter() - self._began
        return Answer(int(self._data[9:12]), bytes(self._data), self._first, whole)

    def close(self) -> None:
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        seen = max(0, len(self._data) - len(self._awaited))
        self._data += data
        if not self._first and self._data.find(self._awaited, seen) >= 0:
            self._first = time.perf_counter() - self._began
        if self._is_whole() and not self._done.done():
            self._done.set_result(None)

    def _is_whole(self) -> bool:
        if self._length is None:
            end = self._data.find(b"\r\n\r\n")
            if end < 0:
                return False
            length = _LENGTH.search(self._data, 0, end)
            self._length = end + 4 + int(length[1]) if length else 0
        return len(self._data) >= self._length if self._length else self._data.endswith(_LAST_CHUNK)

    def connection_lost(self, error: Exception | None) -> None:
        if hasattr(self, "_done") and not self._done.done():
            self._done.set_exception(error or ConnectionError("the connection was closed"))


def get(port: int, path: str, cookie: str = "") -> bytes:
    return _request("GET", port, path, cookie, "")


def post(port: int, path: str, body: object, cookie: str = "", accept: str = "") -> bytes:
    data = json.dumps(body).encode()
    more = f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
    more += f"Origin: http://127.0.0.1:{port}\r\n" + (f"Accept: {accept}\r\n" if accept else "")
    return _request("POST", port, path, cookie, more) + data


def post_bytes(port: int, path: str, content: bytes, cookie: str = "") -> bytes:
    more = f"Content-Type: application/octet-stream\r\nContent-Length: {len(content)}\r\n"
    return _request("POST", port, path, cookie, more + f"Origin: http://127.0.0.1:{port}\r\n") + content


def _request(method: str, port: int, path: str, cookie: str, more: str) -> bytes:
    signed = f"Cookie: {cookie}\r\n" if cookie else ""
    return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{signed}{more}\r\n".encode()


class Tab(asyncio.Protocol):
    """One live socket; every frame goes to whoever listens."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._buffer = bytearray()
        self._is_open: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.heard: Callable[[bytes], None] = lambda frame: None

    @classmethod
    async def connect(cls, port: int, cookie: str) -> Tab:
        _, tab = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", port)
        key = base64.b64encode(os.urandom(16)).decode()
        more = (
            f"Origin: http://127.0.0.1:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
        )
        tab._transport.write(_request("GET", port, "/api/live", cookie, more))
        async with asyncio.timeout(LIMIT_S):
            await tab._is_open
        return tab

    async def follow(self, place: str, after: int = 0) -> None:
        """Returns when the server has caught up."""
        caught_up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        before = self.heard

        def listen(frame: bytes) -> None:
            if b'"following"' in frame and not caught_up.done():
                caught_up.set_result(None)

        self.heard = listen
        self.send({"type": "follow", "place": place, "after": after})
        async with asyncio.timeout(LIMIT_S):
            await caught_up
        self.heard = before

    def send(self, said: object) -> None:
        self._write(TEXT, json.dumps(said).encode())

    def _write(self, kind: int, data: bytes) -> None:
        """A short frame. Clients mask what they send; a mask of zeros is one."""
        assert len(data) < 126
        self._transport.write(bytes([0x80 | kind, 0x80 | len(data)]) + b"\0\0\0\0" + data)

    def close(self) -> None:
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._is_open.done() and not self._opened():
            return
        while (frame := self._frame()) is not None:
            kind, said = frame
            if kind == TEXT:
                self.heard(said)
            elif kind == PING:
                self._write(PONG, said)

    def _opened(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        if b" 101 " not in self._buffer[:end]:
            self._is_open.set_exception(ConnectionError(self._buffer[:end].decode()))
            return False
        del self._buffer[: end + 4]
        self._is_open.set_result(None)
        return True

    def _frame(self) -> tuple[int, bytes] | None:
        if len(self._buffer) < 2:
            return None
        start, size = 2, self._buffer[1]
        if size == 126:
            start, size = 4, int.from_bytes(self._buffer[2:4], "big")
        elif size == 127:
            start, size = 10, int.from_bytes(self._buffer[2:10], "big")
        if len(self._buffer) < start + size:
            return None
        frame = self._buffer[0] & 15, bytes(self._buffer[start : start + size])
        del self._buffer[: start + size]
        return frame


class Endings:
    """Turns that a tab was told are complete."""

    def __init__(self, tab: Tab) -> None:
        self._over: set[str] = set()
        self._news = asyncio.Event()
        tab.heard = self._listen

    def _listen(self, frame: bytes) -> None:
        for item in json.loads(frame):
            if item.get("noun") == "turn" and item["value"]["state"] == "complete":
                self._over.add(item["id"])
                self._news.set()

    async def wait_for(self, turn_id: str) -> None:
        async with asyncio.timeout(LIMIT_S):
            while turn_id not in self._over:
                self._news.clear()
                await self._news.wait()
