"""Embedding: texts become unit vectors, in a process of its own or at an endpoint; nearness is likeness.

The process starts with the first text, ends when it has had nothing to do for a while, and dies with the
server. Texts go to it in small batches, and whoever searches goes before whoever indexes: a question waits
for one batch at most.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import json
import math
import os
import struct
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tertulia.core.errors import TertuliaError
from tertulia.core.models import cost_micros
from tertulia.providers import assets, wire
from tertulia.providers.embeddings import EmbeddingClient, EmbeddingEndpoint
from tertulia.providers.limits import Limits
from tertulia.providers.seam import ProviderFault

BATCH = 8
ENDPOINT_BATCH = 32
QUESTION_S = 5.0
"""How long a question waits for an endpoint; then it is looked for by its words alone."""
REST_S = 15.0
"""How long no other question is kept waiting, once one has waited in vain."""
LATER_S = 60.0
MUCH_LATER_S = 3600.0
"""Before an endpoint is asked again that a person must mend first."""
IDLE_S = 300.0
START_S = 60.0
ANSWER_S = 60.0
INHERITED = ("PATH", "LANG", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH")
"""All the process learns of our environment: the keys in it are not its business."""
ASSET = "minilm"
TOO_SLOW = "The embedding endpoint did not answer in time, so the search used words only."


@dataclass(frozen=True, slots=True)
class Bill:
    """What one call of an endpoint took."""

    model: str
    tokens: int
    cost_micros: int | None
    """None: the price is not known."""
    latency_ms: int


Billed = Callable[[Bill], None]


def for_nothing(bill: Bill) -> None:
    """For who keeps no account."""


class EmbeddingFailed(TertuliaError):
    """There are no vectors for these texts now; what can be found by words still is."""

    def __init__(self, message: str, again_in_s: float = LATER_S) -> None:
        super().__init__(message)
        self.again_in_s = again_in_s


class Embedder(Protocol):
    model: str
    """What the vectors are made by: vectors of two models cannot be compared."""
    dimensions: int

    def unavailable_reason(self) -> str | None:
        """Why nothing can be embedded, in words for a person; None when it can."""

    async def embed(
        self, texts: Sequence[str], *, is_query: bool = False, billed: Billed = for_nothing
    ) -> tuple[bytes, ...]:
        """A unit vector of half floats for each text; raises EmbeddingFailed, also when a part is billed."""

    async def close(self) -> None: ...


class LocalEmbedder:
    """MiniLM, on this machine: no text leaves it."""

    model = "all-MiniLM-L6-v2 int8, headers 1"
    dimensions = 384

    def __init__(self, home: Path, environ: Mapping[str, str], idle_s: float = IDLE_S) -> None:
        self._home = home
        self._environ = {name: environ[name] for name in INHERITED if name in environ}
        self._idle_s = idle_s
        self._line = _Line()
        self._child: Child | None = None
        self._ending: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._is_installed = False
        self.starts = 0
        """How many processes there have been."""

    def unavailable_reason(self) -> str | None:
        self._is_installed = self._is_installed or assets.is_installed(assets.get(ASSET), self._home)
        if self._is_installed:
            return None
        return f"Run `tertulia models pull {ASSET}` to search by meaning too."

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    async def embed(
        self, texts: Sequence[str], *, is_query: bool = False, billed: Billed = for_nothing
    ) -> tuple[bytes, ...]:
        if (reason := self.unavailable_reason()) is not None:
            raise EmbeddingFailed(reason)
        found: dict[int, bytes] = {}
        # Those of like length together: within a batch all are as long as the longest.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            async with self._line.turn(is_first=is_query):
                found |= zip(batch, await self._ask([texts[index] for index in batch]), strict=True)
        return tuple(found[index] for index in range(len(texts)))

    async def close(self) -> None:
        self._is_closed = True
        self._rest()

    async def _ask(self, batch: list[str]) -> list[bytes]:
        """A process that died meanwhile is replaced once."""
        for _ in range(2):
            if self._is_closed:
                break
            try:
                child = await self._living()
                joined = await asyncio.to_thread(child.ask, batch)
            except (OSError, EOFError):
                self._rest()
                continue
            except asyncio.CancelledError:
                self._rest()  # or what it still says would be taken for the answer to the next
                raise
            self._rest_later()
            size = self.dimensions * 2
            return [joined[start : start + size] for start in range(0, len(joined), size)]
        raise EmbeddingFailed(
            "The process that embeds texts stopped. It is started again with the next search."
        )

    async def _living(self) -> Child:
        if self._child is None or not self._child.is_alive:
            self._rest()
            self.starts += 1
            self._child = child = Child()
            await asyncio.to_thread(child.start, assets.folder(self._home), self._environ)
            return child
        return self._child

    def _rest_later(self) -> None:
        if self._ending:
            self._ending.cancel()
        self._ending = asyncio.get_running_loop().call_later(self._idle_s, self._rest)

    def _rest(self) -> None:
        if self._ending:
            self._ending.cancel()
        if self._child:
            self._child.stop()
        self._child = None


class Child:
    """A process with the weights in it; it may be stopped at any time, also while it starts."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False
        self._lock = threading.Lock()

    def start(self, folder: Path, environ: Mapping[str, str]) -> None:
        """Blocks until it is ready; raises EOFError when it ends before."""
        command = [sys.executable, "-m", "tertulia.library.embed_worker", str(folder), str(os.getpid())]
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        with self._lock:
            if self._is_stopped:
                raise EOFError("it is not wanted any more")
            self._process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=nowhere, env=dict(environ)
            )
        self._within(START_S, self._receive)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def ask(self, texts: list[str]) -> bytes:
        stdin = self._running.stdin
        assert stdin is not None
        stdin.write(json.dumps(texts).encode() + b"\n")
        stdin.flush()
        return self._within(ANSWER_S, self._receive)

    def stop(self) -> None:
        """It has nothing to lose."""
        with self._lock:
            self._is_stopped = True
            process = self._process
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:  # what was still to be sent cannot be, and nobody waits for it
                    continue

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise EOFError("the process was not started")
        return self._process

    def _within(self, seconds: float, work: Callable[[], bytes]) -> bytes:
        too_late = threading.Timer(seconds, self._running.kill)
        too_late.start()
        try:
            return work()
        finally:
            too_late.cancel()

    def _receive(self) -> bytes:
        return self._exactly(int.from_bytes(self._exactly(4), "big"))

    def _exactly(self, size: int) -> bytes:
        stdout = self._running.stdout
        assert stdout is not None
        try:
            found = stdout.read(size)
        except ValueError:  # it was closed under our hands
            raise EOFError("the process was stopped") from None
        if len(found) < size:
            raise EOFError("the process ended")
        return found


class _Line:
    """One at a time; those who go first go before all others, each kind in its order."""

    def __init__(self) -> None:
        self._is_taken = False
        self._waiting: list[tuple[bool, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()

    @asynccontextmanager
    async def turn(self, is_first: bool) -> AsyncIterator[None]:
        if self._is_taken:
            ticket: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (not is_first, next(self._numbers), ticket))
            try:
                await ticket
            except asyncio.CancelledError:
                if ticket.done() and not ticket.cancelled():
                    self._next()
                raise
        self._is_taken = True
        try:
            yield
        finally:
            self._next()

    def _next(self) -> None:
        while self._waiting:
            ticket = heapq.heappop(self._waiting)[2]
            if not ticket.done():
                ticket.set_result(None)
                return  # it is taken still, by the one who was just called
        self._is_taken = False


class EndpointEmbedder:
    """An OpenAI-compatible endpoint an operator has named: texts leave this machine for it."""

    def __init__(
        self,
        endpoint: EmbeddingEndpoint,
        environ: Mapping[str, str],
        limits: Limits | None = None,
        question_s: float = QUESTION_S,
        rest_s: float = REST_S,
    ) -> None:
        self.model = f"{endpoint.model} at {endpoint.base_url}, headers 1"
        self.dimensions = endpoint.dimensions
        self._endpoint = endpoint
        self._client = EmbeddingClient(endpoint, environ, limits)
        self._question_s = question_s
        self._rest_s = rest_s
        self._rests_until = 0.0

    def unavailable_reason(self) -> str | None:
        return None

    async def embed(
        self, texts: Sequence[str], *, is_query: bool = False, billed: Billed = for_nothing
    ) -> tuple[bytes, ...]:
        clock = wire.running_clock()
        if is_query and clock.time() < self._rests_until:
            raise EmbeddingFailed(TOO_SLOW)
        try:
            async with wire.within(self._question_s, clock) if is_query else nullcontext():
                made = await self._embed(texts, billed)
        except ProviderFault as fault:
            raise EmbeddingFailed(fault.message, _again_in_s(fault)) from fault
        except TimeoutError:
            self._rests_until = clock.time() + self._rest_s
            raise EmbeddingFailed(TOO_SLOW) from None
        self._rests_until = 0.0
        return made

    async def _embed(self, texts: Sequence[str], billed: Billed) -> tuple[bytes, ...]:
        loop = asyncio.get_running_loop()
        found: list[bytes] = []
        for start in range(0, len(texts), ENDPOINT_BATCH):
            began = loop.time()
            made = await self._client.embed(texts[start : start + ENDPOINT_BATCH])
            cost = cost_micros(made.count, self._endpoint.prices)
            took_ms = round((loop.time() - began) * 1000)
            billed(Bill(self._endpoint.model, made.count.input_tokens, cost, took_ms))
            found += [_unit(vector) for vector in made.vectors]
        return tuple(found)

    async def close(self) -> None:
        await self._client.close()


def _again_in_s(fault: ProviderFault) -> float:
    if fault.retry_after_s is None and not fault.is_retryable:
        return MUCH_LATER_S
    return max(LATER_S, fault.retry_after_s or 0.0)


def _unit(vector: Sequence[float]) -> bytes:
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return struct.pack(f"<{len(vector)}e", *(value / length for value in vector))


def embedder_for(endpoint: EmbeddingEndpoint | None, environ: Mapping[str, str], home: Path) -> Embedder:
    return LocalEmbedder(home, environ) if endpoint is None else EndpointEmbedder(endpoint, environ)
