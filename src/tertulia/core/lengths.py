"""Reply length estimates: predicts the length of a model's next reply from its recent replies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

RECENT = 50
"""An estimate uses at most this many recent replies."""
ENOUGH = 5
"""The fewest replies that allow an estimate."""


@dataclass(frozen=True, slots=True)
class ReplyLength:
    output_tokens: int
    """All tokens that are paid for, thinking included."""
    written_tokens: int
    """The tokens of the text, which the other voices can read."""


DEFAULT = ReplyLength(500, 500)
"""The estimate for a model without recent replies."""


@dataclass(frozen=True, slots=True)
class RecentReplies:
    in_project: tuple[ReplyLength, ...] = ()
    everywhere: tuple[ReplyLength, ...] = ()
    """The model's replies in all projects together."""

    def usual(self) -> ReplyLength | None:
        """The median, so that one very long reply changes little; the project's own replies first. None if
        there are too few replies."""
        for replies in (self.in_project, self.everywhere):
            if len(replies) >= ENOUGH:
                return ReplyLength(
                    median([reply.output_tokens for reply in replies]),
                    median([reply.written_tokens for reply in replies]),
                )
        return None


def median(values: Sequence[int]) -> int:
    """The median, rounded up if it falls between two values; the values must not be empty."""
    ordered = sorted(values)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return -(-(low + high) // 2)
