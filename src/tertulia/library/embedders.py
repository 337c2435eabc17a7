"""Embedders: turn texts into unit vectors, in a local process or at an OpenAI-compatible endpoint.

The local process starts with the first text, stops after it has been idle for a while, and dies with the
server. It receives texts in small batches, and search queries go before indexing: a query waits for at most
one batch.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import json
import math
import struct
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Protocol

from tertulia.core.errors import TertuliaError
from tertulia.core.models import cost_micros
from tertulia.processes.child import ChildProcess, Program, Spawn, allowed_environment, spawn
from tertulia.processes.timers import GetClock, IdleTimer
from tertulia.providers import model_downloads, transport
from tertulia.providers.egress import Egress
from tertulia.providers.embeddings import EmbeddingClient, EmbeddingEndpoint
from tertulia.providers.interface import ProviderError
from tertulia.providers.limits import Limits

BATCH = 8
ENDPOINT_BATCH = 32
QUERY_S = 5.0
"""How long a search query waits for the endpoint; after that only the full-text search answers it."""
QUERY_PAUSE_S = 15.0
"""After a query timed out, further queries fail at once for this long."""
RETRY_S = 60.0
REPAIR_S = 3600.0
"""Wait before the next try when a person must repair the endpoint first, for example a wrong key."""
IDLE_S = 300.0
START_S = 60.0
ANSWER_S = 60.0
MODEL_FILE = "minilm"
TOO_SLOW = "The embedding endpoint did not answer in time, so the search used words only."


@dataclass(frozen=True, slots=True)
class EmbeddingCharge:
    """The tokens, the cost and the duration of one call to an endpoint."""

    model: str
    tokens: int
    cost_micros: int | None
    """None if the price is unknown."""
    latency_ms: int


OnCharge = Callable[[EmbeddingCharge], None]


def not_charged(bill: EmbeddingCharge) -> None:
    """The default listener, for callers that record no usage."""


class EmbeddingFailed(TertuliaError):
    """The texts could not be embedded now. Full-text search still works."""

    def __init__(self, message: str, again_in_s: float = RETRY_S) -> None:
        super().__init__(message)
        self.again_in_s = again_in_s


class Embedder(Protocol):
    model: str
    """Identifies how the vectors are made; vectors of different models cannot be compared."""
    dimensions: int

    def unavailable_reason(self) -> str | None:
        """A message for a person that says why embedding does not work; None if it works."""

    async def embed(
        self, texts: Sequence[str], *, is_query: bool = False, billed: OnCharge = not_charged
    ) -> tuple[bytes, ...]:
        """A unit vector of half floats for each text, in order.

        Calls `billed` for each paid call. Raises EmbeddingFailed, even after some calls were billed.
        """

    async def close(self) -> None: ...


class LocalEmbedder:
    """Embeds with MiniLM in a process on this machine; no text leaves the machine."""

    model = "all-MiniLM-L6-v2 int8, headers 1"
    dimensions = 384

    def __init__(
        self,
        home: Path,
        environ: Mapping[str, str],
        idle_s: float = IDLE_S,
        *,
        get_clock: GetClock = asyncio.get_running_loop,
        spawn: Spawn = spawn,
    ) -> None:
        self._home = home
        self._program = Program(
            "tertulia.library.embed_worker",
            (str(model_downloads.folder(home)),),
            allowed_environment(environ),
        )
        self._get_clock = get_clock
        self._spawn = spawn
        self._lock = _PriorityLock()
        self._child: ChildProcess | None = None
        self._idle_timer = IdleTimer(idle_s, self._stop, get_clock)
        self._is_closed = False
        self._is_installed = False
        self.starts = 0
        """How many processes were started so far."""

    def unavailable_reason(self) -> str | None:
        self._is_installed = self._is_installed or model_downloads.is_installed(
            model_downloads.get(MODEL_FILE), self._home
        )
        if self._is_installed:
            return None
        return f"Run `tertulia models pull {MODEL_FILE}` to search by meaning too."

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    async def embed(
        self, texts: Sequence[str], *, is_query: bool = False, billed: OnCharge = not_charged
    ) -> tuple[bytes, ...]:
        if (reason := self.unavailable_reason()) is not None:
            raise EmbeddingFailed(reason)
        vectors: dict[int, bytes] = {}
        # Texts of similar length share a batch, because every text in a batch is padded to the longest.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            async with self._lock.hold(is_urgent=is_query):
                vectors |= zip(batch, await self._embed_batch([texts[index] for index in batch]), strict=True)
        return tuple(vectors[index] for index in range(len(texts)))

    async def close(self) -> None:
        self._is_closed = True
        self._stop()

    async def _embed_batch(self, batch: list[str]) -> list[bytes]:
        """Embeds one batch; restarts the process once if it has died."""
        for _ in range(2):
            if self._is_closed:
                break
            try:
                child = await self._running_child()
                joined = await child.within(ANSWER_S, partial(_embed, child, batch))
            except (OSError, EOFError):
                self._stop()
                continue
            except asyncio.CancelledError:
                self._stop()  # its late answer would be read as the answer to the next batch
                raise
            self._idle_timer.restart()
            size = self.dimensions * 2
            return [joined[start : start + size] for start in range(0, len(joined), size)]
        raise EmbeddingFailed(
            "The process that embeds texts stopped. It is started again with the next search."
        )

    async def _running_child(self) -> ChildProcess:
        if self._child is None or self._child.has_ended:
            self._stop()
            self.starts += 1
            self._child = child = ChildProcess(self._program, self._get_clock, self._spawn)
            await child.within(START_S, partial(_start, child))
            return child
        return self._child

    def _stop(self) -> None:
        self._idle_timer.cancel()
        if self._child:
            self._child.stop()
        self._child = None


def _start(child: ChildProcess) -> None:
    """Starts the process and blocks until it is ready; raises EOFError if it ends before that."""
    child.start()
    _receive(child.stdout)


def _embed(child: ChildProcess, texts: list[str]) -> bytes:
    """Blocks until the process has embedded the texts; returns their vectors joined."""
    child.stdin.write(json.dumps(texts).encode() + b"\n")
    child.stdin.flush()
    return _receive(child.stdout)


def _receive(stdout: IO[bytes]) -> bytes:
    return _exactly(stdout, int.from_bytes(_exactly(stdout, 4), "big"))


def _exactly(stdout: IO[bytes], size: int) -> bytes:
    try:
        content = stdout.read(size)
    except ValueError:  # another thread has closed the pipe
        raise EOFError("the process was stopped") from None
    if len(content) < size:
        raise EOFError("the process ended")
    return content


class _PriorityLock:
    """A priority lock: urgent waiters get it before the others, and within each group in order of arrival."""

    def __init__(self) -> None:
        self._is_held = False
        self._waiting: list[tuple[bool, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()

    @asynccontextmanager
    async def hold(self, is_urgent: bool) -> AsyncIterator[None]:
        if self._is_held:
            ticket: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (not is_urgent, next(self._numbers), ticket))
            try:
                await ticket
            except asyncio.CancelledError:
                if ticket.done() and not ticket.cancelled():
                    self._release()
                raise
        self._is_held = True
        try:
            yield
        finally:
            self._release()

    def _release(self) -> None:
        while self._waiting:
            ticket = heapq.heappop(self._waiting)[2]
            if not ticket.done():
                ticket.set_result(None)
                return  # the lock passes to this waiter and stays held
        self._is_held = False


class EndpointEmbedder:
    """Embeds at an OpenAI-compatible endpoint that the operator configured; texts leave this machine."""

    def __init__(
        self,
        endpoint: EmbeddingEndpoint,
        egress: Egress,
        limits: Limits | None = None,
        query_s: float = QUERY_S,
        query_pause_s: float = QUERY_PAUSE_S,
    ) -> None:
        self.model = f"{endpoint.model} at {endpoint.base_url}, headers 1"
        self.dimensions = endpoint.dimensions
        self._endpoint = endpoint
        self._client = EmbeddingClient(endpoint, egress, limits)
        self._question_s = query_s
        self._rest_s = query_pause_s
        self._queries_fail_until = 0.0

    def unavailable_reason(self) -> str | None:
        return None

    async def embed(
        self, texts: Sequence[str], *, is_query: bool = False, billed: OnCharge = not_charged
    ) -> tuple[bytes, ...]:
        clock = transport.running_clock()
        if is_query and clock.time() < self._queries_fail_until:
            raise EmbeddingFailed(TOO_SLOW)
        try:
            async with transport.within(self._question_s, clock) if is_query else nullcontext():
                vectors = await self._embed(texts, billed)
        except ProviderError as error:
            raise EmbeddingFailed(error.message, _retry_in_s(error)) from error
        except TimeoutError:
            self._queries_fail_until = clock.time() + self._rest_s
            raise EmbeddingFailed(TOO_SLOW) from None
        self._queries_fail_until = 0.0
        return vectors

    async def _embed(self, texts: Sequence[str], billed: OnCharge) -> tuple[bytes, ...]:
        loop = asyncio.get_running_loop()
        vectors: list[bytes] = []
        for start in range(0, len(texts), ENDPOINT_BATCH):
            began = loop.time()
            answer = await self._client.embed(texts[start : start + ENDPOINT_BATCH])
            cost = cost_micros(answer.count, self._endpoint.prices)
            latency_ms = round((loop.time() - began) * 1000)
            billed(EmbeddingCharge(self._endpoint.model, answer.count.input_tokens, cost, latency_ms))
            vectors += [_unit(vector) for vector in answer.vectors]
        return tuple(vectors)

    async def close(self) -> None:
        await self._client.close()


def _retry_in_s(error: ProviderError) -> float:
    if error.retry_after_s is None and not error.is_retryable:
        return REPAIR_S
    return max(RETRY_S, error.retry_after_s or 0.0)


def _unit(vector: Sequence[float]) -> bytes:
    """The vector scaled to length one, as half floats."""
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return struct.pack(f"<{len(vector)}e", *(value / length for value in vector))


def embedder_for(
    endpoint: EmbeddingEndpoint | None, environ: Mapping[str, str], home: Path, egress: Egress
) -> Embedder:
    return LocalEmbedder(home, environ) if endpoint is None else EndpointEmbedder(endpoint, egress)
