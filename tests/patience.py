"""Timeouts of tests: one long limit for every wait, so that a test fails instead of hanging.

A test waits for an event and never for a duration, and a shared machine may need many times as long as a fast
one. The limit is long because it costs nothing when the test passes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal, TypeVar

T = TypeVar("T")

PATIENCE_S = 60.0
PAUSE_S = 0.005


def soon() -> asyncio.Timeout:
    """A block that fails after the limit."""
    return asyncio.timeout(PATIENCE_S)


class TimedEvent(asyncio.Event):
    """An event whose `wait` fails after the limit."""

    async def wait(self) -> Literal[True]:
        async with soon():
            return await super().wait()


async def until(condition: Callable[[], T]) -> T:
    """Polls a condition until its result is true, and returns the result."""
    async with soon():
        while not (result := condition()):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(PAUSE_S)
        return result
