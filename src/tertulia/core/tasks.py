"""Tasks: awaits work that a cancellation must not leave half done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def to_completion(work: Awaitable[T]) -> T:
    """Awaits the work. A cancellation is raised only when the work has ended."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):  # the one that came first is raised below
                await asyncio.wait([task])
        _retrieve(task)
        raise


def _retrieve(task: asyncio.Future[T]) -> None:
    """An error that nobody asks for would be logged as one that was never retrieved."""
    if not task.cancelled():
        task.exception()
