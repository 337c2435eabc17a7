"""Token budget: the most tokens of a prompt, and the number of rounds a model is shown."""

from __future__ import annotations

from tertulia.core.models import WORKING_ROUNDS, Model, Tier
from tertulia.core.projects import ContextStrategy
from tertulia.core.receipts import Receipt

PER_MESSAGE = 4
"""Tokens that a provider adds for each message."""

PER_JOIN = 1
"""Tokens of the empty line between two segments of one message."""

OUTPUT_SHARE = 4
"""A reply may use at most one part in this many of the window, so that the prompt has space."""

MIN_CACHED_TOKENS = 1_024
"""Tokens; no provider caches a shorter prompt."""

RETRIEVED_SHARE = 0.2
"""The part of the budget that search results may use."""

_STEPS = {ContextStrategy.SMART: 0, ContextStrategy.BALANCED: 1, ContextStrategy.MINIMAL: len(Tier) - 1}
_TIERS = tuple(Tier)


def output_limit(model: Model) -> int:
    """The tokens reserved for the answer; `providers` decides whether the request states them as a limit."""
    return min(model.max_output_tokens, model.context_window // OUTPUT_SHARE)


def budget_tokens(model: Model, max_output_tokens: int, max_context_tokens: int) -> int:
    """The window, minus the tokens for the answer, minus a margin for errors of our token count.

    Some models accept less input than their window, however short the answer is.
    """
    margin = max(64, model.context_window // 50)
    available = min(model.context_window - max_output_tokens, model.input_limit)
    return max(0, min(available - margin, max_context_tokens))


def request_tokens(receipt: Receipt) -> int:
    """The tokens that a provider will count: the segments, the lines between them, and its own framing."""
    has_system = any(segment.role == "system" for segment in receipt.segments)
    chat_messages = sum(segment.starts_message for segment in receipt.segments if segment.role != "system")
    messages = chat_messages + has_system
    return receipt.tokens + messages * PER_MESSAGE + (len(receipt.segments) - messages) * PER_JOIN


def cacheable_tokens(receipt: Receipt) -> int:
    """The tokens that the provider should cache: the system prompt, and everything up to the mark after the
    rounds."""
    ends = [
        end
        for end, segment in enumerate(receipt.segments, 1)
        if segment.role == "system" or segment.ends_cacheable
    ]
    tokens = sum(segment.tokens for segment in receipt.segments[: max(ends, default=0)])
    return tokens if tokens >= MIN_CACHED_TOKENS else 0


def tier_for(model: Model, strategy: ContextStrategy) -> Tier:
    """The model's tier, lowered by the project's context strategy."""
    return _TIERS[min(_TIERS.index(model.tier) + _STEPS[strategy], len(_TIERS) - 1)]


def window_start(round_count: int, working_rounds: int) -> int:
    """The number of earliest rounds outside the window.

    The window grows to one and a half times its size at most, and then drops back to its size. So the start
    of the prompt stays the same for several turns, and the provider's cache stays valid.
    """
    if round_count <= working_rounds:
        return 0
    step = max(1, working_rounds // 2)
    return (round_count - working_rounds) // step * step


def budget_step(fitting: int) -> int:
    """The step in which rounds are dropped: if the budget holds less than the window, the first round shown
    has a number divisible by this.

    A power of two, at most half of the rounds that fit. If that number changes a little, the first round
    usually stays: a number divisible by the larger step is divisible by the smaller one too.
    """
    return 1 << (max(2, fitting) // 2).bit_length() - 1


def widest_window(model: Model) -> int:
    """The most rounds that a prompt of this model can need."""
    working = WORKING_ROUNDS[model.tier]
    return working + max(1, working // 2)


TILE_PIXELS = 512
PICTURE_FIT = 2048
"""Pixels a side; providers scale larger images down."""


def picture_tokens(width: int | None, height: int | None) -> int:
    """An estimate on the safe side for every provider: a fixed number for the image, and one for each
    tile."""
    wide, high = width or PICTURE_FIT, height or PICTURE_FIT
    scale = min(1.0, PICTURE_FIT / max(wide, high))
    tiles = -(-wide * scale // TILE_PIXELS) * -(-high * scale // TILE_PIXELS)
    return 85 + 170 * max(1, int(tiles))
