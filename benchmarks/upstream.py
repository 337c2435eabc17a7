"""A provider that costs next to nothing: OpenAI chat streams of bytes made beforehand.

The name of the model says how it answers: `burst-8` sends 8 pieces in one go, `paced-50-300` sends 50 a
second, 300 of them, the first at once. `GET /stats` counts what was sent, to divide a cost by.

    python -m benchmarks.upstream PORT
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from dataclasses import asdict, dataclass
from functools import cache
from typing import cast

import uvloop

from benchmarks.words import some

ANSWERS = 499
"""Different answers, given in turn."""
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_MODEL = re.compile(rb'"model": ?"(burst|paced)((?:-\d+)+)')


@dataclass(slots=True)
class Stats:
    requests: int = 0
    streams: int = 0
    """Begun and not yet ended."""
    pieces: int = 0


@dataclass(frozen=True, slots=True)
class Manner:
    """How an answer is sent."""

    pieces: int
    per_second: float | None
    """None: all at once."""


def manner(request: bytes) -> Manner:
    found = _MODEL.search(request)
    if found is None:
        raise ValueError("the model must be called burst-PIECES or paced-PER_SECOND-PIECES")
    numbers = [int(number) for number in found[2].split(b"-")[1:]]
    if found[1] == b"burst":
        return Manner(numbers[0], None)
    return Manner(numbers[1], numbers[0])


@cache
def answer(number: int, pieces: int) -> tuple[bytes, ...]:
    """The events of one answer, a word each."""
    return tuple(_event(_chunk({"content": f"{word} "})) for word in some(pieces, number))


@cache
def ending(pieces: int) -> bytes:
    usage = {"prompt_tokens": 40, "completion_tokens": pieces, "total_tokens": 40 + pieces}
    last = _event(_chunk({}, "stop")) + _event(_chunk(None) | {"usage": usage})
    return last + _framed(b"data: [DONE]\n\n") + b"0\r\n\r\n"


def _chunk(delta: dict[str, str] | None, finish: str | None = None) -> dict[str, object]:
    choices = (
        [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
    )
    return {
        "id": "chatcmpl-B1a2c3D4e5F6g7H8",
        "object": "chat.completion.chunk",
        "created": 1750000000,
        "model": "benchmark",
        "system_fingerprint": "fp_0123456789",
        "choices": choices,
    }


def _event(chunk: dict[str, object]) -> bytes:
    return _framed(b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n")


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


class Line(asyncio.Protocol):
    """One connection, kept open from request to request."""

    def __init__(self, stats: Stats) -> None:
        self._stats = stats
        self._loop = asyncio.get_running_loop()
        self._buffer = b""
        self._next: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = _LENGTH.search(head)
        needed = int(length[1]) if length else 0
        if len(body) >= needed:
            self._buffer = body[needed:]
            self._answer(head, body[:needed])

    def _answer(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"GET /stats "):
            counted = json.dumps(asdict(self._stats)).encode()
            self._transport.write(
                b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(counted), counted)
            )
            return
        self._stats.requests += 1
        how = manner(body)
        words = answer(self._stats.requests % ANSWERS, how.pieces)
        if how.per_second is None:
            self._stats.pieces += how.pieces
            self._transport.write(b"".join((HEAD, *words, ending(how.pieces))))
        else:
            self._stats.streams += 1
            self._stats.pieces += 1
            self._transport.write(HEAD + words[0])
            self._wait(1, words, self._loop.time(), 1 / how.per_second)

    def _wait(self, number: int, words: tuple[bytes, ...], began: float, pause: float) -> None:
        self._next = self._loop.call_at(began + number * pause, self._send, number, words, began, pause)

    def _send(self, number: int, words: tuple[bytes, ...], began: float, pause: float) -> None:
        if number < len(words):
            self._stats.pieces += 1
            self._transport.write(words[number])
            self._wait(number + 1, words, began, pause)
        else:
            self._next = None
            self._stats.streams -= 1
            self._transport.write(ending(len(words)))

    def connection_lost(self, error: Exception | None) -> None:
        if self._next is not None:
            self._next.cancel()
            self._stats.streams -= 1


async def serve(port: int) -> None:
    stats = Stats()
    server = await asyncio.get_running_loop().create_server(
        lambda: Line(stats), "127.0.0.1", port, backlog=1024
    )
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
