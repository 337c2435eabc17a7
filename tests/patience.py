"""How long a test waits for what must come: long, for it costs nothing when all is well.

What is waited for comes at once on a machine of its own; on one that is shared it may take many times as long
and be right all the same. A test waits for a thing and never for a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 60.0


PAUSE_S = 0.005


def soon() -> asyncio.Timeout:
    return asyncio.timeout(PATIENCE_S)


async def until(found: Callable[[], T]) -> T:
    """Looks again and again, for what nobody announces; what it found when that is something."""
    async with soon():
        while not (result := found()):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(PAUSE_S)
        return result
