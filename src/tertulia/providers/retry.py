"""Retry with back-off: repeats a failed call until its first output, never after.

It does not retry while the circuit breaker of the provider is open (`circuit_breaker.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

from tertulia.providers.circuit_breaker import CircuitBreaker
from tertulia.providers.interface import ProviderError, RetryPending, StreamItem
from tertulia.providers.limits import Limits

FIRST_WAIT_S = 0.75

Attempt = Callable[[], Awaitable[AsyncGenerator[StreamItem, None]]]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    limits: Limits
    sleep: Callable[[float], Awaitable[object]]
    random: Callable[[], float]

    async def keep_trying(
        self, attempt: Attempt, breaker: CircuitBreaker
    ) -> AsyncGenerator[StreamItem, None]:
        has_begun = False
        for retry in range(1, self.limits.retries + 2):
            breaker.check()
            try:
                async with aclosing(await attempt()) as items:
                    async for item in items:
                        if not has_begun:
                            has_begun = True
                            breaker.answered()
                        yield item
                return
            except ProviderError as error:
                if has_begun:
                    raise
                if retry > self.limits.retries or not error.is_retryable:
                    breaker.failed(error)
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
        return min(seconds, self.limits.retry_after_s)
