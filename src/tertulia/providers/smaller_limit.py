"""Smaller limit: a call that asks for a longer answer than its key has room for is made again for less.

OpenRouter refuses what the balance does not cover ("can only afford 3919"), and Groq what a minute has no
room for, both before they run it. Both say how much would do. A balance is asked once more; Groq may first
name what a whole minute has room for, and then what is left of this one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from tertulia.providers.seam import Call, End, Piece, Provider, ProviderFault

MOST_TIMES = 2


async def stream(provider: Provider, call: Call) -> AsyncGenerator[Piece, None]:
    said: str | None = None
    for times in range(MOST_TIMES + 1):
        try:
            async with aclosing(provider.stream(call)) as pieces:
                async for piece in pieces:
                    yield _explained(piece, said, call) if isinstance(piece, End) else piece
            return
        except ProviderFault as fault:
            may_ask = times == 0 or (fault.is_retryable and times < MOST_TIMES)
            if fault.affordable_tokens is None or not may_ask:
                raise
            call, said = replace(call, affordable_tokens=fault.affordable_tokens), fault.detail


def _explained(end: End, said: str | None, call: Call) -> End:
    """An answer that ends at the smaller limit says who set it."""
    if end.finish != "length" or call.affordable_tokens is None:
        return end
    return replace(end, reason=said or f"There is room for {call.affordable_tokens:,} tokens.")
