"""Ratings: Bradley–Terry strengths of the models and personas that were voted on, with confidence intervals.

Every contender also has one draw against an imaginary player of strength 0. This keeps the ratings finite
when a contender has won or lost every vote, and connects groups that never met.

strength θ    P(a beats b) = 1 / (1 + e^(θb − θa)), fitted by Newton's method
interval      ± 1.96 σ, σ² from the inverse of the information matrix
scale         1000 is the mean of all, and 400 points are odds of ten to one, as in chess
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tertulia.core.ratings import PairwiseResult, Rating

SCALE = 400 / math.log(10)
MIDDLE = 1000.0
Z_95 = 1.96
PRIOR = 1.0
"""How many games the draw against the imaginary player counts as."""
MAX_STEPS = 100
TOLERANCE = 1e-9

Array = NDArray[np.floating[Any]]


def rate(matches: Iterable[PairwiseResult]) -> dict[str, Rating]:
    """The rating of every contender of these votes."""
    votes = tuple(matches)
    if not votes:
        return {}
    keys = sorted({key for match in votes for key in match.contenders})
    wins = _wins(votes, {key: index for index, key in enumerate(keys)})
    strengths = _fit(wins)
    ratings = MIDDLE + SCALE * (strengths - strengths.mean())
    margins = Z_95 * SCALE * _sigmas(np.linalg.inv(_information(wins, strengths)))
    return {key: _rating(ratings[index], margins[index]) for index, key in enumerate(keys)}


def _wins(votes: Sequence[PairwiseResult], indices: dict[str, int]) -> Array:
    """How often the contender of a row has beaten that of a column; a draw counts half for each.

    A vote weighs as much as the winner has opponents, even without a winner.
    """
    wins = np.zeros((len(indices), len(indices)))
    for match in votes:
        contenders = [indices[key] for key in dict.fromkeys(match.contenders)]
        if match.winner in indices:
            wins[indices[match.winner], contenders] += 1
        else:
            wins[np.ix_(contenders, contenders)] += 1 / len(contenders)
    np.fill_diagonal(wins, 0)
    return wins


def _fit(wins: Array) -> Array:
    """The most likely strengths; each Newton step is halved until it raises the likelihood."""
    strengths = np.zeros(len(wins))
    likelihood = _likelihood(wins, strengths)
    for _ in range(MAX_STEPS):
        step = np.linalg.solve(_information(wins, strengths), _gradient(wins, strengths))
        if np.abs(step).max() < TOLERANCE:
            break
        while (candidate_likelihood := _likelihood(wins, strengths + step)) < likelihood:
            step /= 2
            if np.abs(step).max() < TOLERANCE:
                return strengths
        strengths, likelihood = strengths + step, candidate_likelihood
    return strengths


def _likelihood(wins: Array, strengths: Array) -> float:
    prior = PRIOR / 2 * (_log_chance(strengths) + _log_chance(-strengths)).sum()
    return float((wins * _log_chance(_leads(strengths))).sum() + prior)


def _gradient(wins: Array, strengths: Array) -> Array:
    surprises = wins * _chance(-_leads(strengths))
    prior = PRIOR / 2 * (_chance(-strengths) - _chance(strengths))
    gradient: Array = surprises.sum(axis=1) - surprises.sum(axis=0) + prior
    return gradient


def _information(wins: Array, strengths: Array) -> Array:
    """The Fisher information matrix. It is never singular, because every contender has played the imaginary
    player."""
    leads = _leads(strengths)
    games = (wins + wins.T) * _chance(leads) * _chance(-leads)
    prior = PRIOR * _chance(strengths) * _chance(-strengths)
    information: Array = np.diag(games.sum(axis=1) + prior) - games
    return information


def _leads(strengths: Array) -> Array:
    """By how much the contender of a row is stronger than that of a column."""
    return np.subtract.outer(strengths, strengths)


def _chance(leads: Array) -> Array:
    """The chance of winning with this lead in strength."""
    chances: Array = np.exp(_log_chance(leads))
    return chances


def _log_chance(leads: Array) -> Array:
    logarithms: Array = -np.logaddexp(0, -leads)
    return logarithms


def _sigmas(covariance: Array) -> Array:
    """The standard deviation of each strength's distance from the mean; votes cannot tell where the mean
    itself lies."""
    variances = covariance.diagonal()
    if len(covariance) > 1:
        variances = variances - 2 * covariance.mean(axis=1) + covariance.mean()
    sigmas: Array = np.sqrt(variances.clip(min=0))
    return sigmas


def _rating(rating: float, margin: float) -> Rating:
    return Rating(float(rating), float(rating - margin), float(rating + margin))
