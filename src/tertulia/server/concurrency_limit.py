"""Concurrency limit: each user has so many searches and estimates at work or waiting; more are refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tertulia.core.errors import TooMany

AT_ONCE = 4
WAITING = 32
"""More than all tabs of a person send while the person types; a program that sends more gets an error."""


@dataclass(slots=True)
class _UserSlots:
    running: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    requests: int = 0
    """Running and waiting."""


class PerUserLimiter:
    def __init__(self) -> None:
        self._slots: dict[str, _UserSlots] = {}

    @asynccontextmanager
    async def slot(self, user_id: str) -> AsyncIterator[None]:
        """Waits for one of the user's slots and holds it; raises TooMany if too many requests wait."""
        slots = self._slots.setdefault(user_id, _UserSlots())
        if slots.requests >= AT_ONCE + WAITING:
            raise TooMany("Too many searches or estimates at once. Wait a moment, then try again.")
        slots.requests += 1
        try:
            async with slots.running:
                yield
        finally:
            slots.requests -= 1
            if not slots.requests:
                del self._slots[user_id]
