"""Usage parsing: reads token counts from a provider's response, and estimates missing or implausible ones."""

from __future__ import annotations

import math

from tertulia.core.models import TokenCount
from tertulia.core.prompts import Prompt

COUNT_LIMIT = 100_000_000
PICTURE_TOKENS = 1_500
"""About the tokens of a large picture; providers count between 250 and 5,000."""


def number(value: object) -> int | None:
    """A plausible token count, or None."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= COUNT_LIMIT:
        return value
    return None


def estimated(prompt: Prompt, output_bytes: int) -> TokenCount:
    """An estimate for a call whose count is missing, because such a call is not free."""
    prompt_bytes = size_bytes(prompt.system) + sum(size_bytes(message.content) for message in prompt.messages)
    pictures = sum(len(message.pictures) for message in prompt.messages)
    input_tokens = math.ceil(prompt_bytes / 4) + pictures * PICTURE_TOKENS
    return TokenCount(input_tokens, 0, math.ceil(output_bytes / 4), is_estimated=True)


def size_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
