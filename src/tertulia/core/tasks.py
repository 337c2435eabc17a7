"""Task shielding: finishes work that a cancellation must not leave half done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def to_completion(work: Awaitable[T]) -> T:
    """Awaits the work; raises a cancellation only after the work has ended."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):  # the first cancellation is raised below
                await asyncio.wait([task])
        _mark_retrieved(task)
        raise


def _mark_retrieved(task: asyncio.Future[T]) -> None:
    """Marks the task's error as retrieved, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()
