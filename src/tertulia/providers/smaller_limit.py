"""Smaller limit: a call that asks for a longer answer than its key has room for is made once more for less.

OpenRouter refuses what the balance does not cover ("can only afford 3919"), and Groq what a minute has no
room for, both before they run it. Both say how much would do.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from tertulia.providers.seam import Call, End, Piece, Provider, ProviderFault


async def stream(provider: Provider, call: Call) -> AsyncGenerator[Piece, None]:
    try:
        async with aclosing(provider.stream(call)) as pieces:
            async for piece in pieces:
                yield piece
        return
    except ProviderFault as fault:
        if fault.affordable_tokens is None:
            raise
        smaller, said = replace(call, affordable_tokens=fault.affordable_tokens), fault.detail
    async with aclosing(provider.stream(smaller)) as pieces:
        async for piece in pieces:
            yield _explained(piece, said, smaller) if isinstance(piece, End) else piece


def _explained(end: End, said: str | None, smaller: Call) -> End:
    """An answer that ends at the smaller limit says who set it."""
    if end.finish != "length":
        return end
    return replace(end, reason=said or f"There is room for {smaller.affordable_tokens:,} tokens.")
