"""Patience: a call is tried again while nothing has been said, and never after.

It ends at once where the provider has been failing everyone (`rest.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

from tertulia.providers.limits import Limits
from tertulia.providers.rest import Rest
from tertulia.providers.seam import Piece, ProviderFault, Wait

FIRST_WAIT_S = 0.75

Attempt = Callable[[], Awaitable[AsyncGenerator[Piece, None]]]


@dataclass(frozen=True, slots=True)
class Patience:
    limits: Limits
    sleep: Callable[[float], Awaitable[object]]
    random: Callable[[], float]

    async def keep_trying(self, attempt: Attempt, rest: Rest) -> AsyncGenerator[Piece, None]:
        has_begun = False
        for retry in range(1, self.limits.retries + 2):
            rest.check()
            try:
                async with aclosing(await attempt()) as pieces:
                    async for piece in pieces:
                        if not has_begun:
                            has_begun = True
                            rest.answered()
                        yield piece
                return
            except ProviderFault as fault:
                if has_begun:
                    raise
                if retry > self.limits.retries or not fault.is_retryable:
                    rest.failed(fault)
                    raise
                wait = Wait(self._seconds(fault, retry), retry, self.limits.retries, fault.message)
            yield wait
            await self._sit_through(wait)

    async def _sit_through(self, wait: Wait) -> None:
        sleeping = asyncio.ensure_future(self.sleep(wait.seconds))
        skipped = asyncio.create_task(wait.skipped.wait())
        try:
            await asyncio.wait((sleeping, skipped), return_when=asyncio.FIRST_COMPLETED)
            if sleeping.done():
                sleeping.result()
        finally:
            sleeping.cancel()
            skipped.cancel()

    def _seconds(self, fault: ProviderFault, retry: int) -> float:
        """What the provider asked for, else doubling; never the same for all who were refused together."""
        if fault.retry_after_s is not None:
            seconds = fault.retry_after_s * (1 + self.random() / 10)
        else:
            seconds = FIRST_WAIT_S * 2 ** (retry - 1) * (0.5 + self.random())
        return min(seconds, self.limits.retry_after_s)
