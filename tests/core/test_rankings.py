"""Rankings: an order is read however it is written, and several are added up fairly."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.core.findings import Ranking
from tertulia.core.rankings import LONGEST, mean_place, parse_order, ranking_of, standings

THREE, TWO = ("A", "B", "C"), ("B", "C")
B_A_C = (("B",), ("A",), ("C",))


@pytest.mark.parametrize(
    "text",
    [
        "Ranking: B > A > C",
        "**Ranking:** **B** > **A** > **C**",
        "**Ranking: Answer B > Answer A > Answer C**",
        "Ranking - b>a>c.",
        "Ranking: B, A, C",
        "Final ranking (best to worst): B, then A, then C.",
        "Ranking:\n1. Answer B\n2. Answer A\n3. Answer C",
        "1) **Response B** – clear\n2) **Response A** – long\n3) **Response C** – wrong",
        "#1 B, #2 A, #3 C",
        "1. B 2. A 3. C",
        "B: 1st, A: 2nd, C: 3rd",
        "| Answer | Rank |\n|---|---|\n| A | 2 |\n| B | 1 |\n| C | 3 |",
        '{"ranking": ["B", "A", "C"]}',
        '```json\n{"A": 2, "B": 1, "C": 3}\n```',
        '[{"answer": "Answer C", "rank": 3}, {"answer": "Answer B", "rank": 1}, {"answer": "A", "rank": 2}]',
        '{"final_ranking": "B > A > C"}',
        "C < A < B",
        "B beats A, A clear case. Ranking: B > A > C",
        "First: B. Second: A. Third: C.",
        "I put B first, A second and C last.",
        "The best answer is B; the weakest is C.",
        "Response B is clearly the best and Response C the worst.",
        "Rangliste: Antwort B > Antwort A > Antwort C",
        "Classement : B > A > C",
        "排名：B＞A＞C",
        "最終順位: 1位 B、2位 A、3位 C",
        "Ranking: B > A > C > D",
        "The ranking was hard. Ranking: B > A > C. This ranking weighs use above all.",
        "Ranking: A > B > C\n\nOn reflection:\n\nRanking: B > A > C",
        "1. Answer A: right.\n2. Answer B: better.\n3. Answer C: wrong.\n\nRanking: B > A > C",
        "\\boxed{B > A > C}",
        "Ranking: B (clear) > A (long) > C (wrong)",
    ],
)
def test_an_order_of_three_is_read_in_whatever_form(text):
    assert parse_order(text, THREE) == B_A_C


@pytest.mark.parametrize(
    "text",
    [
        "B > C",
        "1. B 2. C",
        "Response B is best",
        "B is better than C.",
        "**B** is the better one",
        "Winner: B",
        "Antwort B ist die beste.",
        "La réponse B est la meilleure.",
        "答案B最好",
        "C is the weakest",
        '["B", "C"]',
    ],
)
def test_an_order_of_two_is_read_in_whatever_form(text):
    assert parse_order(text, TWO) == (("B",), ("C",))


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("Ranking: A = B > C", (("A", "B"), ("C",))),
        ("Ranking: B > A = C", (("B",), ("A", "C"))),
        ('{"B": 1, "A": 2, "C": 2}', (("B",), ("A", "C"))),
        ('{"ranking": [["A", "B"], "C"]}', (("A", "B"), ("C",))),
        ("Response B is best.", (("B",), ("A", "C"))),
    ],
)
def test_those_who_are_not_told_apart_tie(text, order):
    assert parse_order(text, THREE) == order


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Ranking: B",
        "Ranking: B > A",
        "Ranking: B > A >",
        "Both are fine.",
        "B is not the best.",
        "A > B < C",
        "Ranking: B > A > B",
        "Answer A: 8/10. Answer B: 9/10. Answer C: 3/10.",
        "Answer B is best on tone. Answer C is best on facts.",
        "1. Answer A: it is right, answers all that was asked and can be used at once.\n"
        "2. Answer B: it is wrong in most of what it says, and it cannot be used.\n"
        "3. Answer C: it says nothing that anyone could go on with, at great length.",
    ],
)
def test_a_text_that_does_not_place_everyone_is_no_ranking(text):
    assert parse_order(text, THREE) is None


def test_one_answer_alone_has_no_ranking():
    assert parse_order("Ranking: A", ("A",)) is None


LETTERS = st.lists(st.sampled_from("ABCDEFG"), min_size=2, max_size=7, unique=True)


@given(
    LETTERS,
    st.sampled_from([" > ", ">", " ≻ ", " -> ", ", "]),
    st.sampled_from(["", "**", "`"]),
    st.sampled_from(["", "Answer ", "Response ", "Antwort "]),
    st.text("xyz .\n", max_size=80),
)
def test_every_order_that_is_written_as_asked_is_read_back(order, sign, mark, word, before):
    text = f"{before}\nRanking: {sign.join(f'{mark}{word}{letter}{mark}' for letter in order)}"
    assert parse_order(text, sorted(order)) == tuple((letter,) for letter in order)


@given(LETTERS)
def test_every_order_in_json_is_read_back(order):
    groups = tuple((letter,) for letter in order)
    assert parse_order(json.dumps({"ranking": order}), sorted(order)) == groups
    assert parse_order(json.dumps({letter: n for n, letter in enumerate(order, 1)}), sorted(order)) == groups


@given(st.text(max_size=400) | st.text("AB >=<1.\n:*[]{}\"',rankibest", max_size=400), LETTERS)
def test_whatever_is_read_places_every_letter_once(text, letters):
    order = parse_order(text, letters)
    if order is not None:
        assert sorted(itertools.chain(*order)) == sorted(letters)


def test_of_a_long_review_the_end_is_read():
    assert parse_order("Ranking: A > B > C\n" + "x" * LONGEST + "\nRanking: B > A > C", THREE) == B_A_C


# ── several orders


def ranking(order):
    return ranking_of(tuple(map(tuple, order)), {letter: letter.lower() for letter in "ABCD"})


def test_those_who_tie_share_the_places_they_take_up():
    tied = ranking([["B"], ["A", "C"], ["D"]])
    assert tied == Ranking(("b", "a", "c", "d"), (1, 2, 2, 4))
    assert [mean_place(tied, one) for one in "bacd"] == [1, Fraction(5, 2), Fraction(5, 2), 4]
    assert mean_place(tied, "x") is None


def test_standings_are_means_and_equal_means_share_a_place():
    found = standings("abcd", [ranking("AB"), ranking("BA"), ranking("C")])
    assert [(one.message_id, one.place, one.mean, one.rankings) for one in found] == [
        ("c", 1, 1, 1),
        ("a", 2, Fraction(3, 2), 2),
        ("b", 2, Fraction(3, 2), 2),
    ]


def test_an_old_ranking_without_places_counts_from_one():
    assert mean_place(Ranking(("b", "a")), "a") == 2


@given(st.lists(st.permutations("ABCD"), min_size=1, max_size=8))
def test_the_order_of_reviewers_does_not_matter_and_places_add_up(orders):
    rankings = [ranking(order) for order in orders]
    found = standings("abcd", rankings)
    assert {one.message_id: one.mean for one in found} == {
        one.message_id: one.mean for one in standings("dcba", rankings[::-1])
    }
    assert sum(one.mean for one in found) == 1 + 2 + 3 + 4
    assert all(one.place == 1 + sum(other.mean < one.mean for other in found) for one in found)
