"""Wake-up: a signal from many writers to one waiting reader."""

from __future__ import annotations

import asyncio


class WakeUp:
    """Several calls of wake() before the reader waits count as one."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def wake(self) -> None:
        self._event.set()

    async def wait(self) -> None:
        await self._event.wait()
        self._event.clear()
