"""Ratings: Bradley–Terry strengths of whoever was voted on, with an interval that says how sure they are.

Every contender has also drawn once with a player that nobody sees, of strength 0. That keeps the figures
finite where someone has won or lost everything, and holds groups together that never met.

strength θ    P(a beats b) = 1 / (1 + e^(θb − θa)), fitted by Newton's method
interval      ± 1.96 σ, σ² from the inverse of the information matrix
scale         1000 is the middle of all, and 400 points are ten to one, as in chess
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SCALE = 400 / math.log(10)
MIDDLE = 1000.0
SURE = 1.96
PRIOR = 1.0
"""How many games the draw with the unseen player counts."""
STEPS = 100
CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class Match:
    """One vote: who took part, and who was best; None when nobody was."""

    contenders: tuple[str, ...]
    winner: str | None


@dataclass(frozen=True, slots=True)
class Rating:
    rating: float
    low: float
    high: float


Points = dict[tuple[int, int], float]
"""How often the first has beaten the second; a draw is half for each."""
Matrix = list[list[float]]


def rate(matches: Iterable[Match]) -> dict[str, Rating]:
    votes = tuple(matches)
    if not votes:
        return {}
    keys = sorted({key for match in votes for key in match.contenders})
    points = _points(votes, {key: place for place, key in enumerate(keys)})
    strengths = _fit(points, len(keys))
    sigmas = _sigmas(_inverse(_information(points, strengths)))
    middle = sum(strengths) / len(strengths)
    return {key: _rating(strengths[place] - middle, sigmas[place]) for place, key in enumerate(keys)}


def _points(votes: Sequence[Match], places: dict[str, int]) -> Points:
    """One vote weighs as much as there were others to beat, whether someone won or not."""
    points: Points = defaultdict(float)
    for match in votes:
        there = [places[key] for key in dict.fromkeys(match.contenders)]
        if match.winner in places:
            best = places[match.winner]
            for other in there:
                if other != best:
                    points[best, other] += 1
        else:
            for one in there:
                for other in there:
                    if one != other:
                        points[one, other] += 1 / len(there)
    return points


def _fit(points: Points, count: int) -> list[float]:
    """The strengths that make what happened likeliest; each step is halved until it leads uphill."""
    strengths = [0.0] * count
    likely = _likelihood(points, strengths)
    for _ in range(STEPS):
        step = _solved(_information(points, strengths), _slope(points, strengths))
        if max(map(abs, step)) < CLOSE:
            break
        share = 1.0
        while share > CLOSE:
            tried = [strength + share * by for strength, by in zip(strengths, step, strict=True)]
            better = _likelihood(points, tried)
            if better >= likely:
                strengths, likely = tried, better
                break
            share /= 2
        else:
            break
    return strengths


def _likelihood(points: Points, strengths: Sequence[float]) -> float:
    met = sum(won * _log_chance(strengths[a] - strengths[b]) for (a, b), won in points.items())
    unseen = sum(_log_chance(strength) + _log_chance(-strength) for strength in strengths)
    return met + PRIOR / 2 * unseen


def _slope(points: Points, strengths: Sequence[float]) -> list[float]:
    slope = [PRIOR / 2 * (_chance(-strength) - _chance(strength)) for strength in strengths]
    for (a, b), won in points.items():
        surprise = won * _chance(strengths[b] - strengths[a])
        slope[a] += surprise
        slope[b] -= surprise
    return slope


def _information(points: Points, strengths: Sequence[float]) -> Matrix:
    """How much the games say about each strength; never singular, since everyone met the unseen player."""
    size = len(strengths)
    told = [[0.0] * size for _ in range(size)]
    for place, strength in enumerate(strengths):
        told[place][place] = PRIOR * _chance(strength) * _chance(-strength)
    for (a, b), won in points.items():
        by = won * _chance(strengths[a] - strengths[b]) * _chance(strengths[b] - strengths[a])
        told[a][a] += by
        told[b][b] += by
        told[a][b] -= by
        told[b][a] -= by
    return told


def _chance(ahead: float) -> float:
    """Of winning, for who is so much stronger."""
    if ahead >= 0:
        return 1 / (1 + math.exp(-ahead))
    return math.exp(ahead) / (1 + math.exp(ahead))


def _log_chance(ahead: float) -> float:
    return min(ahead, 0.0) - math.log1p(math.exp(-abs(ahead)))


def _solved(matrix: Matrix, right: Sequence[float]) -> list[float]:
    inverse = _inverse(matrix)
    return [sum(by * value for by, value in zip(row, right, strict=True)) for row in inverse]


def _inverse(matrix: Matrix) -> Matrix:
    """By elimination; the matrix is diagonally dominant, so its diagonal can be divided by as it stands."""
    size = len(matrix)
    rows = [[*row, *(float(place == column) for column in range(size))] for place, row in enumerate(matrix)]
    for place in range(size):
        pivot = rows[place][place]
        rows[place] = [value / pivot for value in rows[place]]
        for other in range(size):
            if other != place and (by := rows[other][place]):
                rows[other] = [value - by * own for value, own in zip(rows[other], rows[place], strict=True)]
    return [row[size:] for row in rows]


def _sigmas(spread: Matrix) -> list[float]:
    """Of each one's distance from the middle of all: where the middle itself lies, no vote can say."""
    size = len(spread)
    if size == 1:
        return [math.sqrt(spread[0][0])]
    shared = [sum(row) / size for row in spread]
    common = sum(shared) / size
    return [math.sqrt(max(0.0, spread[place][place] - 2 * shared[place] + common)) for place in range(size)]


def _rating(strength: float, sigma: float) -> Rating:
    middle = MIDDLE + SCALE * strength
    return Rating(middle, middle - SURE * SCALE * sigma, middle + SURE * SCALE * sigma)
