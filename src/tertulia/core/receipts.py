"""Receipts: the segments of a prompt, the reason for each, and the parts left out. The request can be
rebuilt from a receipt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import Literal

from tertulia.core.prompts import Picture
from tertulia.core.thinking import Effort


class Layer(StrEnum):
    SYSTEM = "system"
    ALWAYS = "always"
    ROUNDS = "rounds"
    RETRIEVED = "retrieved"
    TOOLS = "tools"
    QUESTION = "question"


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of the prompt; the segments keep the order of the prompt."""

    layer: Layer
    role: Literal["system", "user", "assistant"]
    text: str
    reason: str
    tokens: int
    source_id: str | None = None
    """The message, file, attachment or chunk it came from."""
    round_number: int | None = None
    ends_cacheable: bool = False
    starts_message: bool = True
    """False if it joins the message of the segment before it."""
    picture: Picture | None = None
    """An image that is shown with the text."""
    name: str = ""
    """The name that people know: a file's path and lines, an attachment's name, a round."""

    def joined(self) -> Segment:
        """This segment as a part of the message before it. Written out instead of `replace`, because every
        prompt calls it for most segments."""
        return Segment(
            self.layer,
            self.role,
            self.text,
            self.reason,
            self.tokens,
            self.source_id,
            self.round_number,
            self.ends_cacheable,
            False,
            self.picture,
            self.name,
        )


@dataclass(frozen=True, slots=True)
class LeftOut:
    layer: Layer
    reason: str
    tokens: int
    source_id: str | None = None
    round_number: int | None = None
    name: str = ""
    """The name that people know, as in a segment."""


@dataclass(frozen=True, slots=True)
class Receipt:
    model: str
    budget_tokens: int
    segments: tuple[Segment, ...]
    left_out: tuple[LeftOut, ...] = ()
    effort: Effort | None = None
    """The thinking effort of the request; None: the request named none."""
    cached_segments: int = 0
    """How many of the first segments came from the provider's cache, estimated from its token count."""

    @property
    def tokens(self) -> int:
        return sum(segment.tokens for segment in self.segments)


def cached_segments(segments: Sequence[Segment], cached_share: float) -> int:
    """How many leading segments the provider served from its cache, given the cached share of tokens."""
    sizes = accumulate(segment.tokens for segment in segments)
    reach = cached_share * sum(segment.tokens for segment in segments) * (1 + CACHE_TOLERANCE)
    return sum(end <= reach for end in sizes) if cached_share else 0


CACHE_TOLERANCE = 0.02
"""Allows for providers' own token counts, and for caches that store whole blocks only."""
