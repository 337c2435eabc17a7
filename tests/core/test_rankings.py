"""Ranking parser: reads an order in many forms, and combines several rankings by mean place."""

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
def test_an_order_of_three_answers_is_parsed_in_many_forms(text):
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
def test_an_order_of_two_answers_is_parsed_in_many_forms(text):
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
def test_answers_that_are_not_ordered_against_each_other_tie(text, order):
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
def test_a_text_without_a_place_for_every_answer_is_no_ranking(text):
    assert parse_order(text, THREE) is None


def test_a_single_answer_has_no_ranking():
    assert parse_order("Ranking: A", ("A",)) is None


LETTERS = st.lists(st.sampled_from("ABCDEFG"), min_size=2, max_size=7, unique=True)


@given(
    LETTERS,
    st.sampled_from([" > ", ">", " ≻ ", " -> ", ", "]),
    st.sampled_from(["", "**", "`"]),
    st.sampled_from(["", "Answer ", "Response ", "Antwort "]),
    st.text("xyz .\n", max_size=80),
)
def test_every_order_in_the_requested_form_is_parsed(order, sign, mark, word, before):
    text = f"{before}\nRanking: {sign.join(f'{mark}{word}{letter}{mark}' for letter in order)}"
    assert parse_order(text, sorted(order)) == tuple((letter,) for letter in order)


@given(LETTERS)
def test_every_order_in_json_is_parsed(order):
    groups = tuple((letter,) for letter in order)
    assert parse_order(json.dumps({"ranking": order}), sorted(order)) == groups
    assert parse_order(json.dumps({letter: n for n, letter in enumerate(order, 1)}), sorted(order)) == groups


@given(st.text(max_size=400) | st.text("AB >=<1.\n:*[]{}\"',rankibest", max_size=400), LETTERS)
def test_every_parsed_order_contains_each_letter_once(text, letters):
    order = parse_order(text, letters)
    if order is not None:
        assert sorted(itertools.chain(*order)) == sorted(letters)


def test_the_ranking_at_the_end_of_a_long_review_is_parsed():
    assert parse_order("Ranking: A > B > C\n" + "x" * LONGEST + "\nRanking: B > A > C", THREE) == B_A_C


# ── several orders


def ranking(order):
    return ranking_of(tuple(map(tuple, order)), {letter: letter.lower() for letter in "ABCD"})


def test_tied_answers_share_the_mean_of_their_places():
    tied = ranking([["B"], ["A", "C"], ["D"]])
    assert tied == Ranking(("b", "a", "c", "d"), (1, 2, 2, 4))
    assert [mean_place(tied, message_id) for message_id in "bacd"] == [1, Fraction(5, 2), Fraction(5, 2), 4]
    assert mean_place(tied, "x") is None


def test_answers_are_sorted_by_mean_place_and_equal_means_share_a_place():
    combined = standings("abcd", [ranking("AB"), ranking("BA"), ranking("C")])
    assert [(row.message_id, row.place, row.mean, row.rankings) for row in combined] == [
        ("c", 1, 1, 1),
        ("a", 2, Fraction(3, 2), 2),
        ("b", 2, Fraction(3, 2), 2),
    ]


def test_a_ranking_without_places_counts_from_one():
    assert mean_place(Ranking(("b", "a")), "a") == 2


@given(st.lists(st.permutations("ABCD"), min_size=1, max_size=8))
def test_mean_places_do_not_depend_on_the_order_of_reviewers_and_keep_their_sum(orders):
    rankings = [ranking(order) for order in orders]
    combined = standings("abcd", rankings)
    assert {row.message_id: row.mean for row in combined} == {
        row.message_id: row.mean for row in standings("dcba", rankings[::-1])
    }
    assert sum(row.mean for row in combined) == 1 + 2 + 3 + 4
    assert all(row.place == 1 + sum(other.mean < row.mean for other in combined) for row in combined)
