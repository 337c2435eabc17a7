"""Lengths: how long a model's reply is expected to be, by how long its recent ones were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

RECENT = 50
"""How many of the last replies are looked at."""
ENOUGH = 5
"""Fewer replies say nothing about the next one."""


@dataclass(frozen=True, slots=True)
class ReplyLength:
    output_tokens: int
    """All that is paid for, thoughts included."""
    written_tokens: int
    """The part of it that others can read."""


DEFAULT = ReplyLength(500, 500)
"""Of a model whose replies nobody has seen yet."""


@dataclass(frozen=True, slots=True)
class RecentReplies:
    in_project: tuple[ReplyLength, ...] = ()
    everywhere: tuple[ReplyLength, ...] = ()
    """In all projects together."""

    def usual(self) -> ReplyLength | None:
        """The median, so that one very long reply changes little; None where there are too few replies."""
        for replies in (self.in_project, self.everywhere):
            if len(replies) >= ENOUGH:
                return ReplyLength(
                    median([reply.output_tokens for reply in replies]),
                    median([reply.written_tokens for reply in replies]),
                )
        return None


def median(values: Sequence[int]) -> int:
    """The middle value; of two in the middle their mean, rounded up. There is at least one value."""
    ordered = sorted(values)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return -(-(low + high) // 2)
