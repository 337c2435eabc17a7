"""Counting: what a provider says a call took, believed when it can be true, and estimated when not."""

from __future__ import annotations

import math

from tertulia.core.models import TokenCount
from tertulia.core.prompts import Prompt

COUNT_LIMIT = 100_000_000
PICTURE_TOKENS = 1_500
"""About what a large picture takes; companies count from 250 to 5,000."""


def number(value: object) -> int | None:
    """A count of tokens; None for what cannot be one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= COUNT_LIMIT:
        return value
    return None


def estimated(prompt: Prompt, said_bytes: int) -> TokenCount:
    """A call without a count is not a free call."""
    shown_bytes = size_bytes(prompt.system) + sum(size_bytes(message.content) for message in prompt.messages)
    pictures = sum(len(message.pictures) for message in prompt.messages)
    sent = math.ceil(shown_bytes / 4) + pictures * PICTURE_TOKENS
    return TokenCount(sent, 0, math.ceil(said_bytes / 4), is_estimated=True)


def size_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
