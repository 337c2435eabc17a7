"""A provider that says exactly what it is told to: real sockets on loopback, in four dialects.

    upstream.says("Hello there")                                  every model answers this
    upstream.says("Slowly", model="gpt-4o", pace=0.05)            one model, a word every 50 ms
    upstream.plays(refuses(429, retry_after="1"), says("Now"))    the first request, then all others
    upstream.plays((Say("half a"), Cut()))                        a line that drops

The dialect follows from the address that is asked, so one script plays in all of them. Without a script a
model repeats what it was asked. `python -m tests.upstream.scripted --port 9000` serves browsers.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import re
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.patience import soon
from tests.upstream.dialects import Dialect, Usage, dialect_of

# --- what a script is made of ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Head:
    """Status and headers; a script that starts otherwise starts with 200 and an event stream."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    is_chunked: bool = True


@dataclass(frozen=True)
class Say:
    text: str


@dataclass(frozen=True)
class Think:
    text: str


@dataclass(frozen=True)
class Finish:
    """The provider's own word that it is done, with its count and its end marker."""

    reason: str = "stop"
    usage: Usage | None = Usage()
    is_last: bool = True
    """False for a provider that goes on talking."""


@dataclass(frozen=True)
class Fail:
    """An error told inside the stream."""

    message: str = "overloaded"
    kind: str = "overloaded_error"


@dataclass(frozen=True)
class Raw:
    """Bytes of the body, as they are."""

    data: bytes


@dataclass(frozen=True)
class Flood:
    """The same bytes again and again, until the client has enough."""

    data: bytes
    times: int


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class Hold:
    """Nothing until the event is set."""

    until: asyncio.Event


@dataclass(frozen=True)
class KeepAlives:
    """Comments, for as long as the client listens."""

    every: float = 0.02
    data: bytes = b": keep-alive\n\n"


@dataclass(frozen=True)
class Stall:
    """Silence for as long as the client listens."""


@dataclass(frozen=True)
class Cut:
    """The connection is closed in the middle of the body."""


@dataclass(frozen=True)
class Bare:
    """The body ends properly, and the answer does not."""


@dataclass(frozen=True)
class Reset:
    """The connection is torn down."""


Step = (
    Head | Say | Think | Finish | Fail | Raw | Flood | Pause | Hold | KeepAlives | Stall | Cut | Bare | Reset
)
Script = tuple[Step, ...]


def says(
    text: str,
    *,
    chunks: Iterable[str] | None = None,
    pace: float = 0.0,
    thinking: str = "",
    finish: str = "stop",
    usage: Usage | None = None,
) -> Script:
    """A whole answer, word by word unless told otherwise."""
    steps: list[Step] = [Think(word) for word in words(thinking)]
    for chunk in words(text) if chunks is None else chunks:
        steps += [Say(chunk), Pause(pace)] if pace else [Say(chunk)]
    return (*steps, Finish(finish, usage or Usage(7, 0, len(steps), 0)))


def refuses(status: int, body: bytes | str | dict[str, Any] = b"", **headers: str) -> Script:
    """A status other than success; `retry_after="1"` becomes the header Retry-After."""
    data = (
        json.dumps(body).encode()
        if isinstance(body, dict)
        else body.encode()
        if isinstance(body, str)
        else body
    )
    named = {name.replace("_", "-").title(): value for name, value in headers.items()}
    named.setdefault("Content-Type", "application/json" if isinstance(body, dict) else "text/plain")
    return Head(status, named), Raw(data), Bare()


def vectors(given: Iterable[list[float]]) -> Script:
    """Embeddings, the last first: whoever takes them in the order in which they come takes the wrong ones."""
    rows = [{"object": "embedding", "index": i, "embedding": numbers} for i, numbers in enumerate(given)]
    body = {"object": "list", "data": rows[::-1], "usage": {"prompt_tokens": 7, "total_tokens": 7}}
    return Head(200, {"Content-Type": "application/json"}), Raw(json.dumps(body).encode()), Bare()


def words(text: str) -> list[str]:
    """Pieces that join to the text: "a b" is "a", " b"."""
    return re.findall(r"\s*\S+|\s+$", text)


# --- what the upstream saw ---------------------------------------------------------------------------------


@dataclass
class Seen:
    """One request, and how the client left it."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    model: str
    connection: int
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """The client went away before the script was over."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """The script was played to its end, or the client went away."""


# --- the upstream ------------------------------------------------------------------------------------------


class Upstream:
    def __init__(self) -> None:
        self.requests: list[Seen] = []
        self._scripts: dict[str | None, list[Script]] = {}
        self._arrived = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections = itertools.count(1)
        self._server: asyncio.Server
        self.pace = 0.0
        """Between the words of an answer nobody scripted."""
        self.embeds: Callable[[str], list[float]] = lambda text: [1.0] * 8
        """The numbers of a text, where a request for vectors has no script."""

    # what it will say

    def says(self, text: str, *, model: str | None = None, **how: Any) -> None:
        self.plays(says(text, **how), model=model)

    def plays(self, *scripts: Script, model: str | None = None) -> None:
        """The scripts of the next requests, in order; the last is played again and again."""
        self._scripts[model] = list(scripts)

    def forget(self) -> None:
        """As if nobody had asked or scripted anything yet."""
        self.requests.clear()
        self._scripts.clear()

    # where it is

    @property
    def port(self) -> int:
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def environ(self) -> dict[str, str]:
        """Every provider, answered here."""
        at_v1 = ("OPENAI", "XAI", "OPENROUTER", "GROQ", "MISTRAL", "DEEPSEEK")
        at_root = ("ANTHROPIC", "GOOGLE")
        keys = {f"{name}_API_KEY": f"key-of-{name.lower()}" for name in (*at_v1, *at_root)}
        urls = {f"{name}_BASE_URL": f"{self.url}/v1" for name in at_v1}
        return keys | urls | {f"{name}_BASE_URL": self.url for name in at_root}

    # what it saw

    @property
    def last(self) -> Seen:
        return self.requests[-1]

    async def heard(self, count: int = 1) -> Seen:
        """Waits for the n-th request to arrive."""
        async with soon(), self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)
        return self.requests[count - 1]

    # how it runs

    async def open(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", port, limit=64 << 20)

    async def close(self) -> None:
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        number = next(self._connections)
        try:
            while await self._exchange(reader, writer, number):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> bool:
        """One request and its answer; whether the connection stays open."""
        head = await reader.readuntil(b"\r\n\r\n")
        (method, target, _), headers = _parsed(head)
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if target.startswith("/_"):
            return await self._told(method, target, body, writer)
        seen = Seen(target, headers, json.loads(body or b"{}"), "", number)
        dialect = dialect_of(target, seen.body)
        seen.model = dialect.model
        script = self._script(seen, dialect)
        async with self._arrived:
            self.requests.append(seen)
            self._arrived.notify_all()
        return await Performance(writer, seen, dialect).watched(script, reader)

    def _script(self, seen: Seen, dialect: Dialect) -> Script:
        scripts = self._scripts.get(seen.model) or self._scripts.get(None)
        if not scripts and seen.path.endswith("/embeddings"):
            return vectors(self.embeds(text) for text in seen.body["input"])
        if not scripts:
            return says(f"{seen.model} heard: {dialect.question}", pace=self.pace)
        return scripts.pop(0) if len(scripts) > 1 else scripts[0]

    async def _told(self, method: str, target: str, body: bytes, writer: asyncio.StreamWriter) -> bool:
        """For those who cannot call us: POST /_script sets a script, GET /_requests shows what was asked."""
        if method == "POST" and target == "/_script":
            self._take_script(json.loads(body))
            answer = b"{}"
        else:
            answer = json.dumps(
                [{"path": s.path, "model": s.model, "body": s.body} for s in self.requests]
            ).encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(answer)
        )
        writer.write(answer)
        await writer.drain()
        return True

    def _take_script(self, told: dict[str, Any]) -> None:
        """{"model"?, "text", "pace"?, "thinking"?, "finish"?} or {"status", "body"?, "retry_after"?}.

        "end" may be "cut", "bare", "reset" or "stall"; "scripts" may be a list of several of these.
        """
        model = told.pop("model", None)
        self.plays(*(script_of(one) for one in told.get("scripts", [told])), model=model)


def script_of(told: dict[str, Any]) -> Script:
    told = dict(told)
    if "status" in told:
        return refuses(told.pop("status"), told.pop("body", b""), **told)
    end = told.pop("end", None)
    script = says(told.pop("text"), **told)
    ends: dict[str, Step] = {"cut": Cut(), "bare": Bare(), "reset": Reset(), "stall": Stall()}
    return script if end is None else (*script[:-1], ends[end])


class Performance:
    """One script, played to one client."""

    def __init__(self, writer: asyncio.StreamWriter, seen: Seen, dialect: Dialect) -> None:
        self._writer = writer
        self._seen = seen
        self._dialect = dialect
        self._head: Head | None = None

    async def watched(self, script: Script, reader: asyncio.StreamReader) -> bool:
        """Plays while someone listens; whether the connection can be used again."""
        playing = asyncio.create_task(self._play(script))
        leaving = asyncio.create_task(_left(reader))
        try:
            await asyncio.wait((playing, leaving), return_when=asyncio.FIRST_COMPLETED)
            if playing.done() and playing.exception() is None:
                return playing.result()
            self._seen.closed.set()
            return False
        finally:
            self._seen.over.set()
            for task in (playing, leaving):
                task.cancel()
            await asyncio.gather(playing, leaving, return_exceptions=True)

    async def _play(self, script: Script) -> bool:
        for step in script:
            match step:
                case Head():
                    self._begin(step)
                case Say(text):
                    self._send(self._dialect.says(text))
                case Think(text):
                    self._send(self._dialect.thinks(text))
                case Finish(reason, usage, is_last):
                    self._send(self._dialect.finishes(reason, usage))
                    if is_last:
                        return self._end()
                case Fail(message, kind):
                    self._send(self._dialect.fails(message, kind))
                case Raw(data):
                    self._send(data)
                case Flood(data, times):
                    for _ in range(times):
                        self._send(data)
                        await self._writer.drain()
                case Pause(seconds):
                    await asyncio.sleep(seconds)
                case Hold(until):
                    await until.wait()
                case KeepAlives(every, data):
                    while True:
                        self._send(data)
                        await asyncio.sleep(every)
                case Stall():
                    await asyncio.Event().wait()
                case Bare():
                    return self._end()
                case Cut():
                    return False
                case Reset():
                    self._tear()
                    return False
            await self._writer.drain()
        return self._end()

    def _begin(self, head: Head) -> None:
        self._head = head
        headers = dict(head.headers)
        headers.setdefault("Content-Type", "text/event-stream")
        if head.is_chunked:
            headers["Transfer-Encoding"] = "chunked"
        lines = [f"HTTP/1.1 {head.status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
        self._writer.write("\r\n".join([*lines, "", ""]).encode())

    def _send(self, data: bytes) -> None:
        if self._head is None:
            self._begin(Head())
        if not data:
            return
        chunked = self._head is not None and self._head.is_chunked
        self._writer.write(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)

    def _end(self) -> bool:
        self._send(b"")
        assert self._head is not None
        if self._head.is_chunked:
            self._writer.write(b"0\r\n\r\n")
        return self._head.is_chunked

    def _tear(self) -> None:
        self._send(b"")
        connection: socket.socket = self._writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


async def _left(reader: asyncio.StreamReader) -> None:
    """Returns when the client is gone; nobody sends a second request before the first is answered."""
    try:
        await reader.read(1)
    except ConnectionError:
        return


def _parsed(head: bytes) -> tuple[tuple[str, str, str], dict[str, str]]:
    first, *rest = head.decode("latin-1").split("\r\n")
    method, target, version = first.split(" ")
    pairs = (line.partition(":") for line in rest if line)
    return (method, target, version), {name.strip().lower(): value.strip() for name, _, value in pairs}


@asynccontextmanager
async def scripted(port: int = 0) -> AsyncIterator[Upstream]:
    upstream = Upstream()
    await upstream.open(port)
    try:
        yield upstream
    finally:
        await upstream.close()


async def _serve(port: int, pace: float) -> None:
    async with scripted(port) as upstream:
        upstream.pace = pace
        print(upstream.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A scripted provider on loopback.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--pace", type=float, default=0.02, help="seconds between words nobody scripted")
    told = parser.parse_args()
    asyncio.run(_serve(told.port, told.pace))
