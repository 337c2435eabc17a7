"""Retry with a smaller output limit: repeats a call whose output limit is more than the key allows.

OpenRouter refuses a request that the balance does not cover ("can only afford 3919"), Groq one that exceeds
the limit per minute, and other servers one whose limit is above the model's own, all before they run it. Each
names a limit that would work. A call is repeated once with it. Groq may need two repeats: it may first name
the limit of a whole minute, and then what remains of it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from tertulia.providers.interface import Completed, ModelRequest, Provider, ProviderError, StreamItem

MAX_REPEATS = 2


async def stream(provider: Provider, call: ModelRequest) -> AsyncGenerator[StreamItem, None]:
    reason: str | None = None
    for repeats in range(MAX_REPEATS + 1):
        try:
            async with aclosing(provider.stream(call)) as items:
                async for item in items:
                    yield _with_reason(item, reason, call) if isinstance(item, Completed) else item
            return
        except ProviderError as error:
            may_repeat = repeats == 0 or (error.is_retryable and repeats < MAX_REPEATS)
            if error.affordable_tokens is None or not may_repeat:
                raise
            call, reason = replace(call, affordable_tokens=error.affordable_tokens), error.detail


def _with_reason(end: Completed, message: str | None, call: ModelRequest) -> Completed:
    """Adds the provider's message to a reply that ends at the smaller limit."""
    if end.finish != "length" or call.affordable_tokens is None:
        return end
    return replace(end, reason=message or f"There is room for {call.affordable_tokens:,} tokens.")
