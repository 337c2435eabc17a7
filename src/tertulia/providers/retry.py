"""Retry: repeats a failed call until its first output, never after.

A call that may succeed later is repeated with back-off, but not while the provider's circuit breaker is open
(`circuit_breaker.py`). A call whose output limit is more than the key allows is repeated at once with a
smaller limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from tertulia.providers.circuit_breaker import CircuitBreaker
from tertulia.providers.interface import (
    Completed,
    ModelRequest,
    Provider,
    ProviderError,
    RetryPending,
    StreamItem,
)
from tertulia.providers.limits import Limits

FIRST_WAIT_S = 0.75

MAX_REPEATS = 2
"""How many times a call is repeated with a smaller output limit."""

FindClient = Callable[[], Awaitable[Provider]]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    limits: Limits
    sleep: Callable[[float], Awaitable[object]]
    random: Callable[[], float]

    async def stream_with_retries(
        self, call: ModelRequest, find_client: FindClient, breaker: CircuitBreaker
    ) -> AsyncGenerator[StreamItem, None]:
        has_begun = False
        for retry in range(1, self.limits.retries + 2):
            breaker.raise_if_open()
            try:
                async with aclosing(_stream_with_smaller_limit(await find_client(), call)) as items:
                    async for item in items:
                        if not has_begun:
                            has_begun = True
                            breaker.record_success()
                        yield item
                return
            except ProviderError as error:
                if has_begun:
                    raise
                if retry > self.limits.retries or not error.is_retryable:
                    breaker.record_failure(error)
                    raise
                pending = RetryPending(self._wait_s(error, retry), retry, self.limits.retries, error.message)
            yield pending
            await self._sleep_or_skip(pending)

    async def _sleep_or_skip(self, retry: RetryPending) -> None:
        sleep_task = asyncio.ensure_future(self.sleep(retry.seconds))
        skip_task = asyncio.create_task(retry.skipped.wait())
        try:
            await asyncio.wait((sleep_task, skip_task), return_when=asyncio.FIRST_COMPLETED)
            if sleep_task.done():
                sleep_task.result()
        finally:
            sleep_task.cancel()
            skip_task.cancel()

    def _wait_s(self, error: ProviderError, retry: int) -> float:
        """The wait that the provider asked for, else exponential back-off; with jitter, so that clients
        refused together do not return together."""
        if error.retry_after_s is not None:
            seconds = error.retry_after_s * (1 + self.random() / 10)
        else:
            seconds = FIRST_WAIT_S * 2 ** (retry - 1) * (0.5 + self.random())
        return min(seconds, self.limits.longest_retry_wait_s)


async def _stream_with_smaller_limit(
    provider: Provider, call: ModelRequest
) -> AsyncGenerator[StreamItem, None]:
    """Repeats a call whose output limit is more than the key allows.

    OpenRouter refuses a request that the balance does not cover ("can only afford 3919"), Groq one that
    exceeds the limit per minute, and other servers one whose limit is above the model's own, all before they
    run it. Each names a limit that would work. A call is repeated once with it. Groq may need two repeats: it
    may first name the limit of a whole minute, and then what remains of it.
    """
    reason: str | None = None
    for repeats in range(MAX_REPEATS + 1):
        try:
            async with aclosing(provider.stream(call)) as items:
                async for item in items:
                    yield _with_reason(item, reason, call) if isinstance(item, Completed) else item
            return
        except ProviderError as error:
            may_repeat = repeats == 0 or (error.is_retryable and repeats < MAX_REPEATS)
            if error.affordable_tokens is None or not may_repeat:
                raise
            call, reason = replace(call, affordable_tokens=error.affordable_tokens), error.detail


def _with_reason(end: Completed, message: str | None, call: ModelRequest) -> Completed:
    """Adds the provider's message to a reply that ends at the smaller limit."""
    if end.finish != "length" or call.affordable_tokens is None:
        return end
    return replace(end, reason=message or f"There is room for {call.affordable_tokens:,} tokens.")
