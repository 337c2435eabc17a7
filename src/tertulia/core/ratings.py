"""Ratings: Bradley–Terry strengths of the models and personas that were voted on, with confidence intervals.

Every contender also has one draw against an imaginary player of strength 0. This keeps the ratings finite
when a contender has won or lost every vote, and connects groups that never met.

strength θ    P(a beats b) = 1 / (1 + e^(θb − θa)), fitted by Newton's method
interval      ± 1.96 σ, σ² from the inverse of the information matrix
scale         1000 is the mean of all, and 400 points are odds of ten to one, as in chess
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SCALE = 400 / math.log(10)
MIDDLE = 1000.0
Z_95 = 1.96
PRIOR = 1.0
"""How many games the draw against the imaginary player counts as."""
MAX_STEPS = 100
TOLERANCE = 1e-9


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


Points = dict[tuple[int, int], float]
"""How often the first has beaten the second; a draw counts half for each."""
Matrix = list[list[float]]


def rate(matches: Iterable[PairwiseResult]) -> dict[str, Rating]:
    """The rating of every contender of these votes."""
    votes = tuple(matches)
    if not votes:
        return {}
    keys = sorted({key for match in votes for key in match.contenders})
    points = _points(votes, {key: index for index, key in enumerate(keys)})
    strengths = _fit(points, len(keys))
    sigmas = _sigmas(_inverse(_information(points, strengths)))
    mean = sum(strengths) / len(strengths)
    return {key: _rating(strengths[index] - mean, sigmas[index]) for index, key in enumerate(keys)}


def _points(votes: Sequence[PairwiseResult], indices: dict[str, int]) -> Points:
    """Counts wins per pair. A vote weighs as much as the winner has opponents, even without a winner."""
    points: Points = defaultdict(float)
    for match in votes:
        contenders = [indices[key] for key in dict.fromkeys(match.contenders)]
        if match.winner in indices:
            best = indices[match.winner]
            for other in contenders:
                if other != best:
                    points[best, other] += 1
        else:
            for first in contenders:
                for second in contenders:
                    if first != second:
                        points[first, second] += 1 / len(contenders)
    return points


def _fit(points: Points, count: int) -> list[float]:
    """The most likely strengths for these points; each Newton step is halved until it raises the
    likelihood."""
    strengths = [0.0] * count
    likelihood = _likelihood(points, strengths)
    for _ in range(MAX_STEPS):
        step = _solve(_information(points, strengths), _gradient(points, strengths))
        if max(map(abs, step)) < TOLERANCE:
            break
        fraction = 1.0
        while fraction > TOLERANCE:
            candidate = [
                strength + fraction * change for strength, change in zip(strengths, step, strict=True)
            ]
            candidate_likelihood = _likelihood(points, candidate)
            if candidate_likelihood >= likelihood:
                strengths, likelihood = candidate, candidate_likelihood
                break
            fraction /= 2
        else:
            break
    return strengths


def _likelihood(points: Points, strengths: Sequence[float]) -> float:
    played = sum(wins * _log_chance(strengths[a] - strengths[b]) for (a, b), wins in points.items())
    prior = sum(_log_chance(strength) + _log_chance(-strength) for strength in strengths)
    return played + PRIOR / 2 * prior


def _gradient(points: Points, strengths: Sequence[float]) -> list[float]:
    gradient = [PRIOR / 2 * (_chance(-strength) - _chance(strength)) for strength in strengths]
    for (a, b), wins in points.items():
        surprise = wins * _chance(strengths[b] - strengths[a])
        gradient[a] += surprise
        gradient[b] -= surprise
    return gradient


def _information(points: Points, strengths: Sequence[float]) -> Matrix:
    """The Fisher information matrix. It is never singular, because every contender has played the imaginary
    player."""
    size = len(strengths)
    matrix = [[0.0] * size for _ in range(size)]
    for index, strength in enumerate(strengths):
        matrix[index][index] = PRIOR * _chance(strength) * _chance(-strength)
    for (a, b), wins in points.items():
        information = wins * _chance(strengths[a] - strengths[b]) * _chance(strengths[b] - strengths[a])
        matrix[a][a] += information
        matrix[b][b] += information
        matrix[a][b] -= information
        matrix[b][a] -= information
    return matrix


def _chance(lead: float) -> float:
    """The chance of winning with this lead in strength."""
    if lead >= 0:
        return 1 / (1 + math.exp(-lead))
    return math.exp(lead) / (1 + math.exp(lead))


def _log_chance(lead: float) -> float:
    return min(lead, 0.0) - math.log1p(math.exp(-abs(lead)))


def _solve(matrix: Matrix, right: Sequence[float]) -> list[float]:
    inverse = _inverse(matrix)
    return [sum(factor * value for factor, value in zip(row, right, strict=True)) for row in inverse]


def _inverse(matrix: Matrix) -> Matrix:
    """Gauss–Jordan elimination. The matrix is diagonally dominant, so it needs no pivoting."""
    size = len(matrix)
    rows = [[*row, *(float(index == column) for column in range(size))] for index, row in enumerate(matrix)]
    for index in range(size):
        pivot = rows[index][index]
        rows[index] = [value / pivot for value in rows[index]]
        for other in range(size):
            if other != index and (factor := rows[other][index]):
                rows[other] = [
                    value - factor * pivot_value
                    for value, pivot_value in zip(rows[other], rows[index], strict=True)
                ]
    return [row[size:] for row in rows]


def _sigmas(covariance: Matrix) -> list[float]:
    """The standard deviation of each strength's distance from the mean; votes cannot tell where the mean
    itself lies."""
    size = len(covariance)
    if size == 1:
        return [math.sqrt(covariance[0][0])]
    row_means = [sum(row) / size for row in covariance]
    total_mean = sum(row_means) / size
    return [
        math.sqrt(max(0.0, covariance[index][index] - 2 * row_means[index] + total_mean))
        for index in range(size)
    ]


def _rating(strength: float, sigma: float) -> Rating:
    rating = MIDDLE + SCALE * strength
    return Rating(rating, rating - Z_95 * SCALE * sigma, rating + Z_95 * SCALE * sigma)
