"""The bridge: lets the clients of other companies call through our wire, and watches what comes back.

Their clients bring patience without end, retries of their own and a belief that a stream which stops is
complete. Here they get a transport that keeps our limits, opens no connection of its own and knows a last
word when it hears one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpx2

from tertulia.core.errors import TertuliaError
from tertulia.providers.faults import Faults
from tertulia.providers.seam import ProviderFault
from tertulia.providers.sse import Event
from tertulia.providers.wire import Answer, Request, Wire


@dataclass(frozen=True, slots=True)
class Signs:
    """How a dialect tells what matters to us, from one decoded event."""

    is_last_word: Callable[[dict[str, Any]], bool]
    is_error: Callable[[dict[str, Any]], bool]
    is_text: Callable[[dict[str, Any]], bool]
    keep_alive: str | None = None
    """The name of an event that only says the line is open."""


class Watch:
    """One call, as the bridge saw it."""

    def __init__(self, faults: Faults, signs: Signs) -> None:
        self.faults = faults
        self._signs = signs
        self.fault: TertuliaError | None = None
        self.has_events = False
        self.has_begun = False
        self.has_ended = False
        self._lines: list[Crossing] = []

    def lets_pass(self, event: Event) -> bool:
        """Whether the client behind us may see this event; raises what it would overlook."""
        if event.data == "[DONE]":
            return True
        content = self._loads(event)
        self.has_events = True
        if self._signs.is_error(content):
            raise self.faults.error_object(content, has_begun=self.has_begun)
        is_text = self._signs.is_text(content)
        if is_text and self.has_ended:
            return False  # Nobody speaks after the last word.
        self.has_begun = self.has_begun or is_text
        self.has_ended = self.has_ended or self._signs.is_last_word(content)
        return True

    def is_keep_alive(self, event: Event) -> bool:
        """Keeps a model alive that thinks in silence, and not one that fell silent in mid-sentence."""
        return event.name == self._signs.keep_alive and self.has_begun

    def open(self, line: Crossing) -> Crossing:
        self._lines.append(line)
        return line

    async def leave(self) -> None:
        """Closes what is still open: not every client does when it is left in mid-sentence."""
        for line in self._lines:
            await line.aclose()

    def bare_end(self) -> ProviderFault:
        return self.faults.cut() if self.has_events else self.faults.empty()

    def _loads(self, event: Event) -> dict[str, Any]:
        try:
            content = json.loads(event.data)
        except (ValueError, RecursionError):
            raise self.faults.malformed(event.data) from None
        if not isinstance(content, dict):
            raise self.faults.malformed(event.data)
        return content


WATCH: ContextVar[Watch] = ContextVar("watch")
"""Who watches the request that is being opened in this context."""


class Bridge(httpx2.AsyncBaseTransport):
    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        watch = WATCH.get()
        headers = {name: value for name, value in request.headers.items() if name not in OWN_HEADERS}
        asked = Request(str(request.url), await request.aread(), headers)
        block = self._wire.ask(asked, watch.faults, watch.is_keep_alive)
        try:
            answer = await block.__aenter__()
        except TertuliaError as fault:
            watch.fault = fault
            raise httpx2.ConnectError(fault.message, request=request) from None
        line = watch.open(Crossing(block, answer, watch))
        return httpx2.Response(200, headers=STREAM, stream=line, request=request)


TURN = 16
"""So many events at a time: the clients behind us take a tenth of a millisecond and more for each."""
OWN_HEADERS = frozenset({"host", "connection", "content-length", "transfer-encoding", "accept-encoding"})
STREAM = {"Content-Type": "text/event-stream"}


class Crossing(httpx2.AsyncByteStream):
    """The events of an answer on their way to someone else's client, each whole and each looked at."""

    def __init__(self, block: AbstractAsyncContextManager[Answer], answer: Answer, watch: Watch) -> None:
        self._block = block
        self._answer = answer
        self._watch = watch
        self._is_open = True

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        try:
            while (events := await self._answer.read()) is not None:
                for number, event in enumerate(events, start=1):
                    if self._watch.lets_pass(event):
                        yield _rendered(event)
                    if number % TURN == 0:
                        await asyncio.sleep(0)
                if self._watch.has_ended:
                    self._answer.expect_the_end()
        except ProviderFault as fault:
            if self._watch.has_ended:
                return  # It had said its last word; only its silence afterwards is odd.
            self._watch.fault = fault
            raise httpx2.ReadError(fault.message) from None
        if not self._watch.has_ended:
            self._watch.fault = self._watch.bare_end()

    async def aclose(self) -> None:
        if self._is_open:
            self._is_open = False
            await self._block.__aexit__(None, None, None)


def _rendered(event: Event) -> bytes:
    name = f"event: {event.name}\n" if event.name else ""
    data = "\n".join(f"data: {line}" for line in event.data.split("\n"))
    return f"{name}{data}\n\n".encode("utf-8", "replace")
