"""Ratings: Bradley–Terry strengths from votes, and their confidence intervals."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.core.ratings import PairwiseResult
from tertulia.library.ratings import MIDDLE, rate

NAMES = tuple("abcdef")


@st.composite
def random_votes(draw: st.DrawFn) -> PairwiseResult:
    contenders = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6))
    return PairwiseResult(tuple(contenders), draw(st.one_of(st.none(), st.sampled_from(contenders))))


def wins(best: str, other: str, times: int = 1) -> list[PairwiseResult]:
    return [PairwiseResult((best, other), best)] * times


def test_no_votes_give_no_ratings() -> None:
    assert rate([]) == {}


def test_winning_ten_to_one_is_worth_about_four_hundred_points() -> None:
    rated = rate([*wins("a", "b", 1000), *wins("b", "a", 100)])
    assert rated["a"].rating - rated["b"].rating == pytest.approx(400, abs=5)


def test_contenders_with_ties_alone_all_have_the_mean_rating() -> None:
    rated = rate([PairwiseResult(("a", "b", "c"), None)] * 5)
    assert [rating.rating for rating in rated.values()] == pytest.approx([MIDDLE] * 3)


def test_a_tie_counts_as_half_a_win_for_each() -> None:
    tied, halves = [PairwiseResult(("a", "b"), None)] * 2, [*wins("a", "b"), *wins("b", "a")]
    assert rate(wins("a", "c") + tied) == rate(wins("a", "c") + halves)


def test_many_votes_recover_the_strengths_that_produced_them() -> None:
    true_strengths = {"a": 0.8, "b": 0.2, "c": -1.0}
    random_source = random.Random(7)
    votes = []
    for _ in range(3000):
        first, second = random_source.sample(sorted(true_strengths), 2)
        is_first = random_source.random() < 1 / (1 + math.exp(true_strengths[second] - true_strengths[first]))
        votes.append(PairwiseResult((first, second), first if is_first else second))
    rated = rate(votes)
    assert rated["a"].rating - rated["c"].rating == pytest.approx(400 / math.log(10) * 1.8, abs=35)
    assert rated["a"].low > rated["b"].high > rated["b"].low > rated["c"].high


@pytest.mark.parametrize("times", [1, 10, 10_000])
def test_a_contender_that_wins_every_vote_has_a_finite_rating(times: int) -> None:
    rated = rate(wins("a", "b", times) + wins("b", "c", times))
    assert rated["a"].rating > rated["b"].rating > rated["c"].rating
    assert all(math.isfinite(value) for rating in rated.values() for value in (rating.low, rating.high))


@given(st.lists(random_votes(), max_size=30))
def test_every_rating_is_finite_and_inside_its_interval(votes: list[PairwiseResult]) -> None:
    rated = rate(votes)
    assert rated.keys() == {key for vote in votes for key in vote.contenders}
    for rating in rated.values():
        assert math.isfinite(rating.rating)
        assert rating.low < rating.rating < rating.high


@given(st.lists(random_votes(), max_size=20), st.randoms(use_true_random=False))
def test_ratings_do_not_depend_on_the_order_of_votes_or_on_names(
    votes: list[PairwiseResult], shuffler: random.Random
) -> None:
    new_names = list(NAMES)
    shuffler.shuffle(new_names)
    renamed = dict(zip(NAMES, new_names, strict=True))
    shuffled = [
        PairwiseResult(
            tuple(renamed[key] for key in vote.contenders), renamed[vote.winner] if vote.winner else None
        )
        for vote in votes
    ]
    shuffler.shuffle(shuffled)
    rated, again = rate(votes), rate(shuffled)
    for key, rating in rated.items():
        assert again[renamed[key]].rating == pytest.approx(rating.rating, abs=1e-3)
        assert again[renamed[key]].low == pytest.approx(rating.low, abs=1e-3)


@given(st.lists(st.permutations(NAMES[:3]).map(lambda order: wins(order[0], order[1])[0]), max_size=20))
def test_reversing_every_vote_mirrors_the_ratings(votes: list[PairwiseResult]) -> None:
    reversed_votes = [
        PairwiseResult(vote.contenders, next(k for k in vote.contenders if k != vote.winner))
        for vote in votes
    ]
    rated, mirrored = rate(votes), rate(reversed_votes)
    for key, rating in rated.items():
        assert rating.rating - MIDDLE == pytest.approx(MIDDLE - mirrored[key].rating, abs=1e-3)


@given(st.lists(random_votes(), max_size=20), st.sampled_from(NAMES), st.sampled_from(NAMES))
def test_one_more_win_raises_the_winner_and_lowers_the_loser(
    votes: list[PairwiseResult], best: str, other: str
) -> None:
    if best == other:
        return
    before = rate([*votes, PairwiseResult((best, other), None)])
    after = rate([*votes, PairwiseResult((best, other), best)])
    assert after[best].rating > before[best].rating
    assert after[other].rating < before[other].rating


@given(st.integers(0, 20), st.integers(0, 20))
def test_of_two_contenders_the_one_with_more_wins_is_rated_higher(first: int, second: int) -> None:
    rated = rate([*wins("a", "b", first), *wins("b", "a", second), PairwiseResult(("a", "b"), None)])
    ahead = rated["a"].rating - rated["b"].rating
    assert ahead == pytest.approx(0, abs=1e-6) if first == second else (ahead > 0) == (first > second)


def test_intervals_shrink_with_more_votes() -> None:
    widths = []
    for times in (1, 4, 16, 64, 256):
        rated = rate([*wins("a", "b", 3 * times), *wins("b", "a", 2 * times)])
        widths.append(rated["a"].high - rated["a"].low)
    assert all(after < before for before, after in pairwise(widths))


def test_a_contender_twice_in_one_round_does_not_compete_with_itself() -> None:
    assert rate([PairwiseResult(("a", "a", "b"), "a")]) == rate([PairwiseResult(("a", "b"), "a")])
    assert rate([PairwiseResult(("a", "a"), "a")])["a"].rating == MIDDLE
