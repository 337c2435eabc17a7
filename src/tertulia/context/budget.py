"""The budget: how many tokens a prompt may have, and how many rounds a model is shown."""

from __future__ import annotations

from tertulia.core.models import WORKING_ROUNDS, Model, Tier
from tertulia.core.projects import ContextStrategy
from tertulia.core.receipts import Receipt

PER_MESSAGE = 4
"""Tokens that a provider's own framing of one message takes."""

PER_JOIN = 1
"""Tokens of the empty line between two segments of one message."""

OUTPUT_SHARE = 4
"""A reply may take at most this fraction of the window, so that there is room for what is asked."""

LEAST_KEPT = 1_024
"""Tokens: no provider puts less into its cache."""

RETRIEVED_SHARE = 0.2
"""The part of the budget that looked-up text may take."""

_STEPS = {ContextStrategy.SMART: 0, ContextStrategy.BALANCED: 1, ContextStrategy.MINIMAL: len(Tier) - 1}
_LADDER = tuple(Tier)


def output_limit(model: Model) -> int:
    """The room that is kept for the answer; `providers` decides whether it is sent as a limit."""
    return min(model.max_output_tokens, model.context_window // OUTPUT_SHARE)


def budget_tokens(model: Model, max_output_tokens: int, max_context_tokens: int) -> int:
    """Window, less the room the answer needs, less a margin for what our count gets wrong.

    Some models take less input than their window holds, however short the answer.
    """
    margin = max(64, model.context_window // 50)
    room = min(model.context_window - max_output_tokens, model.input_limit)
    return max(0, min(room - margin, max_context_tokens))


def request_tokens(receipt: Receipt) -> int:
    """All that a provider will count: the segments, what stands between them, and its own framing."""
    system = any(segment.role == "system" for segment in receipt.segments)
    spoken = sum(segment.starts_message for segment in receipt.segments if segment.role != "system")
    messages = spoken + system
    return receipt.tokens + messages * PER_MESSAGE + (len(receipt.segments) - messages) * PER_JOIN


def cacheable_tokens(receipt: Receipt) -> int:
    """The beginning that a provider is to keep: the system prompt, and up to the mark after the rounds."""
    ends = [i for i, one in enumerate(receipt.segments, 1) if one.role == "system" or one.ends_cacheable]
    kept = sum(segment.tokens for segment in receipt.segments[: max(ends, default=0)])
    return kept if kept >= LEAST_KEPT else 0


def tier_for(model: Model, strategy: ContextStrategy) -> Tier:
    """The model's tier, moved down by what the project asks for."""
    return _LADDER[min(_LADDER.index(model.tier) + _STEPS[strategy], len(_LADDER) - 1)]


def window_start(history: int, working_rounds: int) -> int:
    """How many of the earliest rounds are outside the window.

    The window grows by up to half past its size and then drops back to it, so that the start of the prompt
    stays the same for several turns and the provider's cache holds.
    """
    if history <= working_rounds:
        return 0
    step = max(1, working_rounds // 2)
    return (history - working_rounds) // step * step


def budget_step(fitting: int) -> int:
    """Where the budget ends before the window does, the first round shown has a number divisible by this.

    A power of two, and at most half of what fits: where the number that fits changes a little, what is
    divisible by the larger step is divisible by the smaller one too, and the first round stays.
    """
    return 1 << (max(2, fitting) // 2).bit_length() - 1


def widest_window(model: Model) -> int:
    """The most rounds that can be needed for the model: what to gather."""
    working = WORKING_ROUNDS[model.tier]
    return working + max(1, working // 2)


TILE = 512
PICTURE_FIT = 2048
"""Pixels a side; providers scale down what is larger before they look at it."""


def picture_tokens(width: int | None, height: int | None) -> int:
    """A rule of thumb, generous for every provider: so much for the picture, and so much for each tile."""
    wide, high = width or PICTURE_FIT, height or PICTURE_FIT
    scale = min(1.0, PICTURE_FIT / max(wide, high))
    tiles = -(-wide * scale // TILE) * -(-high * scale // TILE)
    return 85 + 170 * max(1, int(tiles))
