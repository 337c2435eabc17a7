"""Scripted upstream: a fake provider on loopback with real sockets, in four dialects.

    upstream.says("Hello there")                                  every model replies this
    upstream.says("Slowly", model="gpt-4o", pace=0.05)            one model, a word every 50 ms
    upstream.plays(refuses(429, retry_after="1"), says("Now"))    the first request, then all others
    upstream.plays((Say("half a"), Cut()))                        a connection that drops

The dialect follows from the address of the request, so one script works in all dialects. Without a script a
model repeats the prompt. `python -m tests.upstream.scripted --port 9000` starts one for browsers.
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

from tests.patience import TimedEvent, soon
from tests.upstream.dialects import Dialect, Usage, dialect_of

# --- steps of a script -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Head:
    """Status and headers. A script without a Head starts with 200 and an event stream."""

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
    """The finish reason, with a token count and an end marker."""

    reason: str = "stop"
    usage: Usage | None = Usage()
    is_last: bool = True
    """False for a provider that keeps sending afterwards."""


@dataclass(frozen=True)
class Fail:
    """An error event inside the stream."""

    message: str = "overloaded"
    kind: str = "overloaded_error"


@dataclass(frozen=True)
class Raw:
    """Bytes of the body, sent unchanged."""

    data: bytes


@dataclass(frozen=True)
class Flood:
    """The same bytes many times, until the client leaves."""

    data: bytes
    times: int


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class Hold:
    """Sends nothing until the event is set."""

    until: asyncio.Event


@dataclass(frozen=True)
class KeepAlives:
    """Comments for as long as the client stays connected."""

    every: float = 0.02
    data: bytes = b": keep-alive\n\n"


@dataclass(frozen=True)
class Stall:
    """Silence for as long as the client stays connected."""


@dataclass(frozen=True)
class Cut:
    """Closes the connection in the middle of the body."""


@dataclass(frozen=True)
class Bare:
    """Ends the body correctly, without a finish reason."""


@dataclass(frozen=True)
class Reset:
    """Resets the connection."""


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
    """A complete reply, word by word unless `chunks` is given."""
    steps: list[Step] = [Think(word) for word in words(thinking)]
    for chunk in words(text) if chunks is None else chunks:
        steps += [Say(chunk), Pause(pace)] if pace else [Say(chunk)]
    return (*steps, Finish(finish, usage or Usage(7, 0, len(steps), 0)))


def refuses(status: int, body: bytes | str | dict[str, Any] = b"", **headers: str) -> Script:
    """A response with an error status; `retry_after="1"` becomes the header Retry-After."""
    data = (
        json.dumps(body).encode()
        if isinstance(body, dict)
        else body.encode()
        if isinstance(body, str)
        else body
    )
    all_headers = {name.replace("_", "-").title(): value for name, value in headers.items()}
    all_headers.setdefault("Content-Type", "application/json" if isinstance(body, dict) else "text/plain")
    return Head(status, all_headers), Raw(data), Bare()


def vectors(embeddings: Iterable[list[float]]) -> Script:
    """An embeddings response in reverse order, so that a client that ignores the index gets wrong vectors."""
    rows = [{"object": "embedding", "index": i, "embedding": numbers} for i, numbers in enumerate(embeddings)]
    body = {"object": "list", "data": rows[::-1], "usage": {"prompt_tokens": 7, "total_tokens": 7}}
    return Head(200, {"Content-Type": "application/json"}), Raw(json.dumps(body).encode()), Bare()


def words(text: str) -> list[str]:
    """Splits a text into pieces that join to it again: "a b" is "a", " b"."""
    return re.findall(r"\s*\S+|\s+$", text)


# --- recorded requests -------------------------------------------------------------------------------------


@dataclass
class RecordedRequest:
    """A recorded request, and how the client ended it."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    model: str
    connection: int
    closed: TimedEvent = field(default_factory=TimedEvent)
    """Set when the client disconnects before the script is over."""
    over: TimedEvent = field(default_factory=TimedEvent)
    """Set when the script is over or the client has disconnected."""


# --- the upstream ------------------------------------------------------------------------------------------


class Upstream:
    def __init__(self) -> None:
        self.requests: list[RecordedRequest] = []
        self._scripts: dict[str | None, list[Script]] = {}
        self._request_arrived = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections = itertools.count(1)
        self._server: asyncio.Server
        self.pace = 0.0
        """Seconds between the words of a reply without a script."""
        self.embeds: Callable[[str], list[float]] = lambda text: [1.0] * 8
        """The vector of a text, for embedding requests without a script."""

    # scripts

    def says(self, text: str, *, model: str | None = None, **how: Any) -> None:
        self.plays(says(text, **how), model=model)

    def plays(self, *scripts: Script, model: str | None = None) -> None:
        """Sets the scripts of the next requests, in order. The last one repeats."""
        self._scripts[model] = list(scripts)

    def reset(self) -> None:
        """Removes all recorded requests and scripts."""
        self.requests.clear()
        self._scripts.clear()

    # address

    @property
    def port(self) -> int:
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def environ(self) -> dict[str, str]:
        """Environment variables that point every provider to this server."""
        at_v1 = ("OPENAI", "XAI", "OPENROUTER", "GROQ", "MISTRAL", "DEEPSEEK")
        at_root = ("ANTHROPIC", "GOOGLE")
        keys = {f"{name}_API_KEY": f"key-of-{name.lower()}" for name in (*at_v1, *at_root)}
        urls = {f"{name}_BASE_URL": f"{self.url}/v1" for name in at_v1}
        return keys | urls | {f"{name}_BASE_URL": self.url for name in at_root}

    # requests

    @property
    def last(self) -> RecordedRequest:
        return self.requests[-1]

    async def wait_for_request(self, count: int = 1) -> RecordedRequest:
        """Waits until this many requests have arrived and returns the last of them."""
        async with soon(), self._request_arrived:
            await self._request_arrived.wait_for(lambda: len(self.requests) >= count)
        return self.requests[count - 1]

    # server

    async def open(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._on_connection, "127.0.0.1", port, limit=64 << 20)

    async def close(self) -> None:
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
        """Handles one request. True if the connection stays open."""
        head = await reader.readuntil(b"\r\n\r\n")
        (method, target, _), headers = _parse_head(head)
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if target.startswith("/_"):
            return await self._control(method, target, body, writer)
        request = RecordedRequest(target, headers, json.loads(body or b"{}"), "", number)
        dialect = dialect_of(target, request.body)
        request.model = dialect.model
        script = self._script(request, dialect)
        async with self._request_arrived:
            self.requests.append(request)
            self._request_arrived.notify_all()
        return await Performance(writer, request, dialect).watched(script, reader)

    def _script(self, request: RecordedRequest, dialect: Dialect) -> Script:
        scripts = self._scripts.get(request.model) or self._scripts.get(None)
        if not scripts and request.path.endswith("/embeddings"):
            return vectors(self.embeds(text) for text in request.body["input"])
        if not scripts:
            return says(f"{request.model} heard: {dialect.question}", pace=self.pace)
        return scripts.pop(0) if len(scripts) > 1 else scripts[0]

    async def _control(self, method: str, target: str, body: bytes, writer: asyncio.StreamWriter) -> bool:
        """For clients in other processes: POST /_script sets a script, GET /_requests lists the requests."""
        if method == "POST" and target == "/_script":
            self._set_scripts(json.loads(body))
            answer = b"{}"
        else:
            answer = json.dumps(
                [
                    {"path": request.path, "model": request.model, "body": request.body}
                    for request in self.requests
                ]
            ).encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(answer)
        )
        writer.write(answer)
        await writer.drain()
        return True

    def _set_scripts(self, command: dict[str, Any]) -> None:
        """{"model"?, "text", "pace"?, "thinking"?, "finish"?} or {"status", "body"?, "retry_after"?}.

        "end" may be "cut", "bare", "reset" or "stall"; "scripts" may be a list of several of these.
        """
        model = command.pop("model", None)
        self.plays(*(script_of(script) for script in command.get("scripts", [command])), model=model)


def script_of(command: dict[str, Any]) -> Script:
    command = dict(command)
    if "status" in command:
        return refuses(command.pop("status"), command.pop("body", b""), **command)
    ending = command.pop("end", None)
    script = says(command.pop("text"), **command)
    endings: dict[str, Step] = {"cut": Cut(), "bare": Bare(), "reset": Reset(), "stall": Stall()}
    return script if ending is None else (*script[:-1], endings[ending])


class Performance:
    """Plays one script to one client."""

    def __init__(self, writer: asyncio.StreamWriter, request: RecordedRequest, dialect: Dialect) -> None:
        self._writer = writer
        self._request = request
        self._dialect = dialect
        self._head: Head | None = None

    async def watched(self, script: Script, reader: asyncio.StreamReader) -> bool:
        """Plays the script until the client disconnects. True if the connection can be reused."""
        play_task = asyncio.create_task(self._play(script))
        disconnect_task = asyncio.create_task(_disconnected(reader))
        try:
            await asyncio.wait((play_task, disconnect_task), return_when=asyncio.FIRST_COMPLETED)
            if play_task.done() and play_task.exception() is None:
                return play_task.result()
            self._request.closed.set()
            return False
        finally:
            self._request.over.set()
            for task in (play_task, disconnect_task):
                task.cancel()
            await asyncio.gather(play_task, disconnect_task, return_exceptions=True)

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
                    self._reset()
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

    def _reset(self) -> None:
        self._send(b"")
        connection: socket.socket = self._writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


async def _disconnected(reader: asyncio.StreamReader) -> None:
    """Returns when the client has disconnected. No client sends a second request before the first is
    answered."""
    try:
        await reader.read(1)
    except ConnectionError:
        return


def _parse_head(head: bytes) -> tuple[tuple[str, str, str], dict[str, str]]:
    request_line, *header_lines = head.decode("latin-1").split("\r\n")
    method, target, version = request_line.split(" ")
    pairs = (line.partition(":") for line in header_lines if line)
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
    options = parser.parse_args()
    asyncio.run(_serve(options.port, options.pace))
