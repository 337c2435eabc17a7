"""The wire: one guarded request, and the events of its answer as they arrive.

Every limit of an answer is kept here: time to the first byte, silence, total time, the size of a line and of
the whole. What the events mean is the dialect's business.
"""

from __future__ import annotations

import asyncio
import io
import json
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol, Self

import aiohttp

from tertulia.providers.egress import keep_inside
from tertulia.providers.faults import Faults
from tertulia.providers.limits import Limits
from tertulia.providers.seam import ProviderFault
from tertulia.providers.sse import Event, EventReader, LineTooLong

SLICE_BYTES = 32 << 10
"""A flood is taken in slices, so that others get their turn on the loop."""
LARGE_BYTES = 256 << 10
DRAIN_S = 1.0
USER_AGENT = "tertulia"


@dataclass(frozen=True, slots=True)
class Request:
    url: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


class Wire:
    def __init__(
        self, limits: Limits, *, now: Callable[[], float] = time.time, stays_inside: bool = False
    ) -> None:
        self._limits = limits
        self._now = now
        self._stays_inside = stays_inside
        self._session: aiohttp.ClientSession | None = None
        self._drains: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def ask(
        self, request: Request, faults: Faults, is_keep_alive: Callable[[Event], bool] | None = None
    ) -> AsyncGenerator[Answer, None]:
        """Sends the request; the line is closed at once when the block is left before the last word."""
        if self._stays_inside:
            keep_inside(request.url)
        response = await self._send(request, faults)
        is_ending = False
        try:
            if not 200 <= response.status < 300:
                body = await self._refusal(response)
                raise faults.refused(response.status, response.headers, body, self._now())
            with Answer(response.content, self._limits, faults, is_keep_alive) as answer:
                yield answer
                is_ending = answer.is_ending
        finally:
            if is_ending:
                self._hang_up(response)
            else:
                response.close()

    async def close(self) -> None:
        for drain in tuple(self._drains):
            drain.cancel()
        if self._session is not None:
            await self._session.close()

    async def _send(self, request: Request, faults: Faults) -> aiohttp.ClientResponse:
        try:
            async with within(min(self._limits.silence_s, self._limits.total_s), running_clock()):
                return await self._connected().post(
                    request.url, data=_sent(request.body), headers=request.headers, allow_redirects=False
                )
        except aiohttp.ConnectionTimeoutError:
            raise faults.no_connection_in_time() from None
        except TimeoutError:
            is_patient = self._limits.silence_s > self._limits.total_s
            raise (faults.overtime() if is_patient else faults.silent()) from None
        except (aiohttp.ClientConnectorCertificateError, ssl.SSLError) as error:
            raise faults.untrusted(str(error)) from None
        except aiohttp.ClientResponseError as error:
            # Not HTTP, headers beyond all bounds, or a compression we did not ask for.
            raise faults.malformed(error.message) from None
        except (aiohttp.ClientError, OSError) as error:
            raise faults.unreachable(str(error)) from None

    def _connected(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=60),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._limits.connect_s),
                # Compression would hold back small events; a proxy variable was set for something else.
                headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
                trust_env=False,
            )
        return self._session

    async def _refusal(self, response: aiohttp.ClientResponse) -> bytes:
        """As much of an error page as is worth reading."""
        body = bytearray()
        try:
            async with asyncio.timeout(min(self._limits.idle_s, 5.0)):
                while len(body) < self._limits.refusal_bytes and (chunk := await response.content.readany()):
                    body += chunk
        except (TimeoutError, aiohttp.ClientError, OSError):
            pass
        return bytes(body[: self._limits.refusal_bytes])

    def _hang_up(self, response: aiohttp.ClientResponse) -> None:
        """Keeps the connection for the next call if its last bytes come soon; nobody waits for them."""
        if response.content.at_eof():
            response.release()
            return
        drain = asyncio.create_task(_drain(response))
        self._drains.add(drain)
        drain.add_done_callback(self._drains.discard)


def _sent(body: bytes) -> bytes | io.BytesIO:
    """A large body is taken in pieces, so that others get their turn on the loop."""
    return io.BytesIO(body) if len(body) > LARGE_BYTES else body


class Clock(Protocol):
    """An event loop is one."""

    def time(self) -> float: ...

    def call_at(self, when: float, callback: Callable[[], object]) -> asyncio.TimerHandle: ...

    def call_later(self, delay: float, callback: Callable[[], object]) -> asyncio.TimerHandle: ...


def running_clock() -> Clock:
    return asyncio.get_running_loop()


@asynccontextmanager
async def within(seconds: float, clock: Clock) -> AsyncGenerator[None, None]:
    """Raises TimeoutError when the block takes longer by this clock."""
    async with asyncio.timeout(None) as bound:
        timer = clock.call_later(seconds, lambda: bound.reschedule(asyncio.get_running_loop().time()))
        try:
            yield
        finally:
            timer.cancel()


class Bytes(Protocol):
    """The body of a response, as it arrives."""

    async def readany(self) -> bytes: ...

    def set_exception(self, exc: BaseException) -> None: ...


class Answer:
    """The events of one answer, under watch."""

    def __init__(
        self,
        content: Bytes,
        limits: Limits,
        faults: Faults,
        is_keep_alive: Callable[[Event], bool] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._content = content
        self._is_keep_alive = is_keep_alive
        self._limits = limits
        self._faults = faults
        self._time: Clock = clock or running_clock()
        self._reader: EventReader | None = None
        self._page = bytearray()
        self._rest = b""
        self._bytes = 0
        self._events = 0
        self._is_over = False
        self.is_ending = False
        """The last word was said; what follows is a count, or nothing."""
        self._has_news = False
        self._has_signs = False
        self._has_words = False
        self._patience_s = max(limits.silence_s, limits.idle_s)
        self._until = self._time.time() + limits.total_s
        self._last_news = self._time.time()
        self._deadline = self._last_news + self._patience_s
        self._is_listening = False
        self._clock = self._time.call_at(min(self._deadline, self._until), self._look)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._clock.cancel()

    async def read(self) -> list[Event] | None:
        """The events that came since the last look, at least one; None at the end of the stream."""
        while not self._is_over:
            chunk = await self._next()
            self._is_over = not chunk
            events = self._parse(chunk) if chunk else self._last()
            if events:
                self._note(events)
                return events
        return None

    def expect_words(self) -> None:
        """The first word was said; from now on silence counts."""
        if not self._has_words:
            self._has_words = True
            self._wait_for(self._limits.idle_s)

    def expect_the_end(self) -> None:
        """The provider said its last word; what may still come is worth only a short wait."""
        self.is_ending = True
        self._wait_for(self._limits.farewell_s)

    def _wait_for(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._clock.cancel()
        self._clock = self._time.call_later(patience_s, self._look)

    def _note(self, events: list[Event]) -> None:
        self._events += len(events)
        if self._events > self._limits.answer_events:
            raise self._faults.too_large()
        if self._is_keep_alive is not None and all(map(self._is_keep_alive, events)):
            return
        self._has_news = True

    async def _next(self) -> bytes:
        if self._rest:
            await asyncio.sleep(0)
            chunk = self._rest
        else:
            chunk = await self._receive()
        if len(chunk) > SLICE_BYTES:
            chunk, self._rest = chunk[:SLICE_BYTES], chunk[SLICE_BYTES:]
        else:
            self._rest = b""
        return chunk

    async def _receive(self) -> bytes:
        self._set_deadline()
        if self._time.time() >= self._until:
            raise self._faults.overtime()
        self._is_listening = True
        try:
            chunk = await self._content.readany()
        except TimeoutError:
            raise self._too_slow() from None
        except (aiohttp.ClientError, OSError):
            raise self._faults.cut() from None
        finally:
            self._is_listening = False
        self._has_signs = True
        self._bytes += len(chunk)
        if self._bytes > self._limits.answer_bytes:
            raise self._faults.too_large()
        return chunk

    def _set_deadline(self) -> None:
        """The clock of silence starts when we listen again, not while someone reads what was said.

        Before the first word every byte starts it anew. After it a provider that only keeps the connection
        open is waited for longer than a silent one, and not for ever.
        """
        now = self._time.time()
        if self._has_news:
            self._last_news = now
        if self._has_news or (self._has_signs and not self.is_ending):
            self._deadline = min(now + self._patience_s, self._longest())
        self._has_news = self._has_signs = False

    def _longest(self) -> float:
        if not self._has_words:
            return self._until
        return self._last_news + self._limits.idle_s * self._limits.keep_alive_times

    def _too_slow(self) -> ProviderFault:
        now = self._time.time()
        if now >= self._until:
            return self._faults.overtime()
        if not self._events:
            return self._faults.silent()
        is_held_open = self._has_words and self._deadline >= self._longest()
        times = self._limits.keep_alive_times if is_held_open else 1
        return self._faults.idle(self._patience_s * times)

    def _look(self) -> None:
        """Whether it was silent for too long. One clock for all of an answer, set anew when it rings: one for
        each piece would cost as much as reading it."""
        now, ends = self._time.time(), min(self._deadline, self._until)
        if self._is_listening and now >= ends:
            self._content.set_exception(TimeoutError())
        else:
            self._clock = self._time.call_at(ends if now < ends else now + self._patience_s, self._look)

    def _parse(self, chunk: bytes) -> list[Event]:
        try:
            return self._reader.feed(chunk) if self._reader is not None else self._begin(chunk)
        except LineTooLong:
            raise self._faults.too_large() from None

    def _begin(self, chunk: bytes) -> list[Event]:
        """Some servers answer a request for a stream with one object or a page, whatever they call it."""
        self._page += chunk
        if len(self._page) > self._limits.line_bytes:
            raise self._faults.too_large()
        if bytes(self._page.lstrip()[:1]) in (b"", b"{", b"[", b"<"):
            return []
        self._reader = EventReader(self._limits.line_bytes)
        return self._reader.feed(bytes(self._page))

    def _last(self) -> list[Event]:
        if self._reader is not None:
            return [event for event in self._reader.close() if _is_whole(event.data)]
        page = bytes(self._page.strip())
        if page and not _is_whole(page.decode("utf-8", "replace")):
            raise self._faults.not_an_answer(page)
        return [Event("", page.decode("utf-8", "replace"))] if page else []


def _is_whole(data: str) -> bool:
    """Whether an event that nothing closed may still be believed."""
    if data.strip() == "[DONE]":
        return True
    try:
        return isinstance(json.loads(data), dict)
    except (ValueError, RecursionError):
        return False


async def _drain(response: aiohttp.ClientResponse) -> None:
    try:
        async with asyncio.timeout(DRAIN_S):
            while await response.content.readany():
                pass
        response.release()
    except (TimeoutError, aiohttp.ClientError, OSError):
        response.close()
    except asyncio.CancelledError:
        response.close()
        raise
