"""Ratings: a vote between contenders, and the strength of a contender that many votes show."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PairwiseResult:
    """A vote: the contenders, and the best one; None if it was a tie or all were bad."""

    contenders: tuple[str, ...]
    winner: str | None


@dataclass(frozen=True, slots=True)
class Rating:
    rating: float
    low: float
    high: float
