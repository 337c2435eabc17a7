"""Timers: a clock for the timeouts of replies, which tests advance by hand."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from tertulia.providers import transport
from tests.patience import soon

HOUR = 3600.0
AGES = 1_000_000 * HOUR
"""A timeout so long that no test reaches it."""

T = TypeVar("T")


@dataclass
class Timers:
    """A clock with the timers of an event loop; advancing it calls the callbacks that are due."""

    now: float = 0.0
    due: list[tuple[float, int, Callable[[], object], asyncio.TimerHandle]] = field(default_factory=list)
    set: int = 0
    """The number of timers set so far."""

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
        return self.call_at(self.now + delay, callback)

    def call_at(self, when: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, (), asyncio.get_running_loop())
        heapq.heappush(self.due, (when, self.set, callback, handle))
        self.set += 1
        return handle

    def pass_until(self, end: float, is_over: Callable[[], bool] = lambda: False) -> None:
        while self.due and self.due[0][0] <= end and not is_over():
            when, _, callback, handle = heapq.heappop(self.due)
            self.now = max(self.now, when)
            if not handle.cancelled():
                callback()
        self.now = self.now if is_over() else end

    def move(self, seconds: float) -> None:
        self.pass_until(self.now + seconds)

    async def move_until_done(self, task: asyncio.Future[T], step: float = HOUR) -> T:
        """Advances the clock step by step until the task is done."""
        async with soon():
            while not task.done():
                self.move(step)
                await asyncio.sleep(0)
        return await task


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> Timers:
    """Stops the clock of all replies until the test advances it."""
    stopped_timers = Timers()
    monkeypatch.setattr(transport, "running_clock", lambda: stopped_timers)
    return stopped_timers
