"""The turnstile: of one person only so much is looked for at once; nobody keeps the others waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tertulia.core.errors import TooMany

AT_ONCE = 4
WAITING = 32
"""More than all tabs of a person ask for while they type; a program that asks faster is told to wait."""


@dataclass(slots=True)
class _UserSlots:
    at_work: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    inside: int = 0
    """At work or waiting."""


class PerUserLimiter:
    def __init__(self) -> None:
        self._gates: dict[str, _UserSlots] = {}

    @asynccontextmanager
    async def passed(self, user_id: str) -> AsyncIterator[None]:
        gate = self._gates.setdefault(user_id, _UserSlots())
        if gate.inside >= AT_ONCE + WAITING:
            raise TooMany("Too many searches or estimates at once. Wait a moment, then try again.")
        gate.inside += 1
        try:
            async with gate.at_work:
                yield
        finally:
            gate.inside -= 1
            if not gate.inside:
                del self._gates[user_id]
