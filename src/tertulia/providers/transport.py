"""Transport: sends one HTTP request and yields the events of the response as they arrive.

Enforces every limit of a reply: time to the first byte, silence, total time, the size of a line and of the
whole. The dialects interpret the events.
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

from tertulia.providers.egress import Egress
from tertulia.providers.errors import ErrorFactory
from tertulia.providers.interface import ProviderError
from tertulia.providers.limits import Limits
from tertulia.providers.sse import LineTooLong, SseDecoder, SseEvent

SLICE_BYTES = 32 << 10
"""Large chunks are read in slices, so that other tasks get their turn on the event loop."""
LARGE_BYTES = 256 << 10
DRAIN_S = 1.0
USER_AGENT = "tertulia"


@dataclass(frozen=True, slots=True)
class Request:
    url: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


class Transport:
    def __init__(self, limits: Limits, egress: Egress, *, now: Callable[[], float] = time.time) -> None:
        self._limits = limits
        self._egress = egress
        self._now = now
        self._session: aiohttp.ClientSession | None = None
        self._drains: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def post(
        self, request: Request, errors: ErrorFactory, is_keep_alive: Callable[[SseEvent], bool] | None = None
    ) -> AsyncGenerator[EventStream, None]:
        """Sends the request. Leaving the block before the finish reason closes the connection at once."""
        self._egress.check(request.url)
        response = await self._send(request, errors)
        is_ending = False
        try:
            if not 200 <= response.status < 300:
                body = await self._read_error_body(response)
                raise errors.http_error(response.status, response.headers, body, self._now())
            with EventStream(response.content, self._limits, errors, is_keep_alive) as stream:
                yield stream
                is_ending = stream.is_ending
        finally:
            if is_ending:
                self._release_soon(response)
            else:
                response.close()

    async def close(self) -> None:
        for drain in tuple(self._drains):
            drain.cancel()
        if self._session is not None:
            await self._session.close()

    async def _send(self, request: Request, errors: ErrorFactory) -> aiohttp.ClientResponse:
        try:
            async with within(min(self._limits.silence_s, self._limits.total_s), running_clock()):
                return await self._client_session().post(
                    request.url,
                    data=_request_body(request.body),
                    headers=request.headers,
                    allow_redirects=False,
                )
        except aiohttp.ConnectionTimeoutError:
            raise errors.connect_timeout() from None
        except TimeoutError:
            is_total_time_shorter = self._limits.silence_s > self._limits.total_s
            raise (errors.total_timeout() if is_total_time_shorter else errors.first_byte_timeout()) from None
        except (aiohttp.ClientConnectorCertificateError, ssl.SSLError) as error:
            raise errors.bad_certificate(str(error)) from None
        except aiohttp.ClientResponseError as error:
            # Not HTTP, oversized headers, or a compression that was not requested.
            raise errors.malformed(error.message) from None
        except (aiohttp.ClientError, OSError) as error:
            raise errors.unreachable(str(error)) from None

    def _client_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=60),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._limits.connect_s),
                # Compression would delay small events; proxy variables are set for other programs.
                headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
                trust_env=False,
            )
        return self._session

    async def _read_error_body(self, response: aiohttp.ClientResponse) -> bytes:
        """The first bytes of an error response."""
        body = bytearray()
        try:
            async with asyncio.timeout(min(self._limits.idle_s, 5.0)):
                while len(body) < self._limits.error_body_bytes and (
                    chunk := await response.content.readany()
                ):
                    body += chunk
        except (TimeoutError, aiohttp.ClientError, OSError):
            pass
        return bytes(body[: self._limits.error_body_bytes])

    def _release_soon(self, response: aiohttp.ClientResponse) -> None:
        """Keeps the connection for the next call if its last bytes come soon. Nothing waits for them."""
        if response.content.at_eof():
            response.release()
            return
        drain = asyncio.create_task(_drain(response))
        self._drains.add(drain)
        drain.add_done_callback(self._drains.discard)


def _request_body(body: bytes) -> bytes | io.BytesIO:
    """A large body is sent in pieces, so that other tasks get their turn on the event loop."""
    return io.BytesIO(body) if len(body) > LARGE_BYTES else body


class LoopClock(Protocol):
    """The parts of an event loop that a timeout needs; an event loop is one."""

    def time(self) -> float: ...

    def call_at(self, when: float, callback: Callable[[], object]) -> asyncio.TimerHandle: ...

    def call_later(self, delay: float, callback: Callable[[], object]) -> asyncio.TimerHandle: ...


def running_clock() -> LoopClock:
    return asyncio.get_running_loop()


@asynccontextmanager
async def within(seconds: float, clock: LoopClock) -> AsyncGenerator[None, None]:
    """Raises TimeoutError if the block takes longer by this clock."""
    async with asyncio.timeout(None) as timeout:
        timer = clock.call_later(seconds, lambda: timeout.reschedule(asyncio.get_running_loop().time()))
        try:
            yield
        finally:
            timer.cancel()


class Bytes(Protocol):
    """The body of a response, as it arrives."""

    async def readany(self) -> bytes: ...

    def set_exception(self, exc: BaseException) -> None: ...


class EventStream:
    """Yields the events of one response and enforces the limits."""

    def __init__(
        self,
        content: Bytes,
        limits: Limits,
        errors: ErrorFactory,
        is_keep_alive: Callable[[SseEvent], bool] | None = None,
        clock: LoopClock | None = None,
    ) -> None:
        self._content = content
        self._is_keep_alive = is_keep_alive
        self._limits = limits
        self._errors = errors
        self._clock: LoopClock = clock or running_clock()
        self._reader: SseDecoder | None = None
        self._first_bytes = bytearray()
        self._unread = b""
        self._bytes = 0
        self._events = 0
        self._is_over = False
        self.is_ending = False
        """True after the finish reason. Only a token count, or nothing, may follow."""
        self._has_new_events = False
        self._has_new_bytes = False
        self._has_text = False
        self._silence_limit_s = max(limits.silence_s, limits.idle_s)
        self._total_deadline = self._clock.time() + limits.total_s
        self._last_event_at = self._clock.time()
        self._silence_deadline = self._last_event_at + self._silence_limit_s
        self._is_receiving = False
        self._timer = self._clock.call_at(
            min(self._silence_deadline, self._total_deadline), self._check_deadline
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._timer.cancel()

    async def read(self) -> list[SseEvent] | None:
        """The events since the last call, at least one; None at the end of the stream."""
        while not self._is_over:
            chunk = await self._next_chunk()
            self._is_over = not chunk
            events = self._parse(chunk) if chunk else self._final_events()
            if events:
                self._count_events(events)
                return events
        return None

    def expect_text(self) -> None:
        """Called after the first text. From now on the limit for silence between events applies."""
        if not self._has_text:
            self._has_text = True
            self._set_silence_limit(self._limits.idle_s)

    def expect_end(self) -> None:
        """Called after the finish reason. Anything that may still come is worth only a short wait."""
        self.is_ending = True
        self._set_silence_limit(self._limits.after_finish_s)

    def _set_silence_limit(self, silence_limit_s: float) -> None:
        self._silence_limit_s = silence_limit_s
        self._timer.cancel()
        self._timer = self._clock.call_later(silence_limit_s, self._check_deadline)

    def _count_events(self, events: list[SseEvent]) -> None:
        self._events += len(events)
        if self._events > self._limits.reply_events:
            raise self._errors.too_large()
        if self._is_keep_alive is not None and all(map(self._is_keep_alive, events)):
            return
        self._has_new_events = True

    async def _next_chunk(self) -> bytes:
        if self._unread:
            await asyncio.sleep(0)
            chunk = self._unread
        else:
            chunk = await self._receive()
        if len(chunk) > SLICE_BYTES:
            chunk, self._unread = chunk[:SLICE_BYTES], chunk[SLICE_BYTES:]
        else:
            self._unread = b""
        return chunk

    async def _receive(self) -> bytes:
        self._extend_deadline()
        if self._clock.time() >= self._total_deadline:
            raise self._errors.total_timeout()
        self._is_receiving = True
        try:
            chunk = await self._content.readany()
        except TimeoutError:
            raise self._timeout_error() from None
        except (aiohttp.ClientError, OSError):
            raise self._errors.connection_lost() from None
        finally:
            self._is_receiving = False
        self._has_new_bytes = True
        self._bytes += len(chunk)
        if self._bytes > self._limits.reply_bytes:
            raise self._errors.too_large()
        return chunk

    def _extend_deadline(self) -> None:
        """The time of silence starts when the next read starts, not while a slow consumer handles earlier
        events.

        Before the first text every byte restarts it. Afterwards keep-alive signals extend the wait, but not
        for ever.
        """
        now = self._clock.time()
        if self._has_new_events:
            self._last_event_at = now
        if self._has_new_events or (self._has_new_bytes and not self.is_ending):
            self._silence_deadline = min(now + self._silence_limit_s, self._latest_deadline())
        self._has_new_events = self._has_new_bytes = False

    def _latest_deadline(self) -> float:
        if not self._has_text:
            return self._total_deadline
        return self._last_event_at + self._limits.idle_s * self._limits.keep_alive_factor

    def _timeout_error(self) -> ProviderError:
        now = self._clock.time()
        if now >= self._total_deadline:
            return self._errors.total_timeout()
        if not self._events:
            return self._errors.first_byte_timeout()
        is_kept_alive = self._has_text and self._silence_deadline >= self._latest_deadline()
        factor = self._limits.keep_alive_factor if is_kept_alive else 1
        return self._errors.idle_timeout(self._silence_limit_s * factor)

    def _check_deadline(self) -> None:
        """Breaks the read off when a deadline has passed. One timer serves the whole reply and is set again
        when it fires: one timer for each chunk would cost as much as reading it."""
        now, deadline = self._clock.time(), min(self._silence_deadline, self._total_deadline)
        if self._is_receiving and now >= deadline:
            self._content.set_exception(TimeoutError())
        else:
            self._timer = self._clock.call_at(
                deadline if now < deadline else now + self._silence_limit_s, self._check_deadline
            )

    def _parse(self, chunk: bytes) -> list[SseEvent]:
        try:
            return self._reader.feed(chunk) if self._reader is not None else self._detect_format(chunk)
        except LineTooLong:
            raise self._errors.too_large() from None

    def _detect_format(self, chunk: bytes) -> list[SseEvent]:
        """Some servers answer a request for a stream with a single JSON object or a page, whatever their
        headers say."""
        self._first_bytes += chunk
        if len(self._first_bytes) > self._limits.line_bytes:
            raise self._errors.too_large()
        if bytes(self._first_bytes.lstrip()[:1]) in (b"", b"{", b"[", b"<"):
            return []
        self._reader = SseDecoder(self._limits.line_bytes)
        return self._reader.feed(bytes(self._first_bytes))

    def _final_events(self) -> list[SseEvent]:
        if self._reader is not None:
            return [event for event in self._reader.close() if _is_complete(event.data)]
        body = bytes(self._first_bytes.strip())
        if body and not _is_complete(body.decode("utf-8", "replace")):
            raise self._errors.not_a_stream(body)
        return [SseEvent("", body.decode("utf-8", "replace"))] if body else []


def _is_complete(data: str) -> bool:
    """Whether an event without its closing empty line is complete."""
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
