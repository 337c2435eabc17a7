"""Ratings: what votes say about strength, and how sure one can be of it."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.core.ratings import MIDDLE, Match, rate

NAMES = tuple("abcdef")


@st.composite
def matches(draw: st.DrawFn) -> Match:
    there = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6))
    return Match(tuple(there), draw(st.one_of(st.none(), st.sampled_from(there))))


def won(best: str, other: str, times: int = 1) -> list[Match]:
    return [Match((best, other), best)] * times


def test_nobody_voted_nobody_rated() -> None:
    assert rate([]) == {}


def test_ten_to_one_is_about_four_hundred_points() -> None:
    rated = rate([*won("a", "b", 1000), *won("b", "a", 100)])
    assert rated["a"].rating - rated["b"].rating == pytest.approx(400, abs=5)


def test_ties_alone_leave_everyone_in_the_middle() -> None:
    rated = rate([Match(("a", "b", "c"), None)] * 5)
    assert [one.rating for one in rated.values()] == pytest.approx([MIDDLE] * 3)


def test_a_tie_counts_as_half_a_win_for_each() -> None:
    tied, halves = [Match(("a", "b"), None)] * 2, [*won("a", "b"), *won("b", "a")]
    assert rate(won("a", "c") + tied) == rate(won("a", "c") + halves)


def test_strengths_are_found_again_from_many_votes() -> None:
    true = {"a": 0.8, "b": 0.2, "c": -1.0}
    dice = random.Random(7)
    votes = []
    for _ in range(3000):
        one, other = dice.sample(sorted(true), 2)
        is_first = dice.random() < 1 / (1 + math.exp(true[other] - true[one]))
        votes.append(Match((one, other), one if is_first else other))
    rated = rate(votes)
    assert rated["a"].rating - rated["c"].rating == pytest.approx(400 / math.log(10) * 1.8, abs=35)
    assert rated["a"].low > rated["b"].high > rated["b"].low > rated["c"].high


@pytest.mark.parametrize("times", [1, 10, 10_000])
def test_whoever_always_wins_is_strong_but_not_endlessly(times: int) -> None:
    rated = rate(won("a", "b", times) + won("b", "c", times))
    assert rated["a"].rating > rated["b"].rating > rated["c"].rating
    assert all(math.isfinite(value) for one in rated.values() for value in (one.low, one.high))


@given(st.lists(matches(), max_size=30))
def test_every_figure_is_finite_and_within_its_interval(votes: list[Match]) -> None:
    rated = rate(votes)
    assert rated.keys() == {key for vote in votes for key in vote.contenders}
    for one in rated.values():
        assert math.isfinite(one.rating)
        assert one.low < one.rating < one.high


@given(st.lists(matches(), max_size=20), st.randoms(use_true_random=False))
def test_neither_the_order_of_votes_nor_anyones_name_matters(votes: list[Match], dice: random.Random) -> None:
    others = list(NAMES)
    dice.shuffle(others)
    renamed = dict(zip(NAMES, others, strict=True))
    mixed = [
        Match(tuple(renamed[key] for key in vote.contenders), renamed[vote.winner] if vote.winner else None)
        for vote in votes
    ]
    dice.shuffle(mixed)
    rated, again = rate(votes), rate(mixed)
    for key, one in rated.items():
        assert again[renamed[key]].rating == pytest.approx(one.rating, abs=1e-3)
        assert again[renamed[key]].low == pytest.approx(one.low, abs=1e-3)


@given(st.lists(st.permutations(NAMES[:3]).map(lambda order: won(order[0], order[1])[0]), max_size=20))
def test_were_every_vote_the_other_way_round_so_were_the_ratings(votes: list[Match]) -> None:
    turned = [Match(vote.contenders, next(k for k in vote.contenders if k != vote.winner)) for vote in votes]
    rated, mirrored = rate(votes), rate(turned)
    for key, one in rated.items():
        assert one.rating - MIDDLE == pytest.approx(MIDDLE - mirrored[key].rating, abs=1e-3)


@given(st.lists(matches(), max_size=20), st.sampled_from(NAMES), st.sampled_from(NAMES))
def test_one_more_win_never_costs_the_winner(votes: list[Match], best: str, other: str) -> None:
    if best == other:
        return
    before = rate([*votes, Match((best, other), None)])
    after = rate([*votes, Match((best, other), best)])
    assert after[best].rating > before[best].rating
    assert after[other].rating < before[other].rating


@given(st.integers(0, 20), st.integers(0, 20))
def test_between_two_whoever_won_more_often_stands_higher(first: int, second: int) -> None:
    rated = rate([*won("a", "b", first), *won("b", "a", second), Match(("a", "b"), None)])
    ahead = rated["a"].rating - rated["b"].rating
    assert ahead == pytest.approx(0, abs=1e-6) if first == second else (ahead > 0) == (first > second)


def test_intervals_shrink_as_votes_come_in() -> None:
    widths = []
    for times in (1, 4, 16, 64, 256):
        rated = rate([*won("a", "b", 3 * times), *won("b", "a", 2 * times)])
        widths.append(rated["a"].high - rated["a"].low)
    assert all(after < before for before, after in pairwise(widths))


def test_the_same_contender_twice_in_a_round_does_not_meet_itself() -> None:
    assert rate([Match(("a", "a", "b"), "a")]) == rate([Match(("a", "b"), "a")])
    assert rate([Match(("a", "a"), "a")])["a"].rating == MIDDLE
