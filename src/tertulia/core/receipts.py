"""The receipt: what a model was shown, why, and what was left out; the request can be rebuilt from it."""

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
    """One piece of the request, in its order."""

    layer: Layer
    role: Literal["system", "user", "assistant"]
    text: str
    reason: str
    tokens: int
    source_id: str | None = None
    """The message, file, attachment or piece it came from."""
    round_number: int | None = None
    ends_cacheable: bool = False
    starts_message: bool = True
    """False: joined to the segment before it within one message."""
    picture: Picture | None = None
    """Shown with the text."""
    name: str = ""
    """What a person knows it by: a file's path and lines, an attachment's name, a round."""

    def joined(self) -> Segment:
        """The same, as a part of the message before it; written out, because every prompt asks it of most."""
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
    """What a person knows it by."""


@dataclass(frozen=True, slots=True)
class Receipt:
    model: str
    budget_tokens: int
    segments: tuple[Segment, ...]
    left_out: tuple[LeftOut, ...] = ()
    effort: Effort | None = None
    """How much the model was told to think; None: nothing was said of it."""
    cached_segments: int = 0
    """How many of the first segments came out of the provider's cache, as far as its count tells."""

    @property
    def tokens(self) -> int:
        return sum(segment.tokens for segment in self.segments)


def cached_segments(segments: Sequence[Segment], cached_share: float) -> int:
    """A cache holds the beginning: so many whole segments as make up this share of what was sent."""
    sizes = accumulate(segment.tokens for segment in segments)
    reach = cached_share * sum(segment.tokens for segment in segments) * (1 + CACHE_TOLERANCE)
    return sum(end <= reach for end in sizes) if cached_share else 0


CACHE_TOLERANCE = 0.02
"""Providers count in their own way, and keep whole blocks only."""
