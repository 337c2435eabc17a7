"""What was looked up: where each piece is from, how much of it is shown, and rounds from long ago."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tertulia.context.assemble import assemble
from tertulia.context.budget import PER_MESSAGE
from tertulia.context.material import TAKEN_OUT
from tertulia.core.models import Tier
from tertulia.core.projects import ContextStrategy
from tertulia.core.receipts import Layer
from tests.context.materials import WIDE, count, hit, material, rounds


def test_looked_up_text_says_where_it_is_from_and_why():
    found = (
        hit("k1", "def brew(): ...", 0.91, path="tea.py", start_line=4, end_line=9),
        hit(
            "k2",
            "Green tea at 80 degrees.",
            0.5,
            conversation_id="other",
            round_number=3,
            speaker="agent:gpt",
        ),
    )
    assembled = assemble(material(hits=found), count)
    last = assembled.prompt.messages[-1].content
    assert "From tea.py [tea.py:4-9]:\n```\ndef brew(): ...\n```" in last
    assert 'From the conversation "Other talk", round 3, gpt:\n```\nGreen tea at 80 degrees.\n```' in last
    assert [s.reason for s in assembled.receipt.segments if s.source_id == "k1:4-9"] == ["match"]


def test_the_best_hits_are_kept_and_the_receipt_names_the_rest():
    found = tuple(
        hit(f"k{i}", f"text {i}", 1 - i / 20, path="a.py", start_line=1, end_line=2) for i in range(6)
    )
    receipt = assemble(material(hits=found, model=replace(WIDE, tier=Tier.CHEAP)), count).receipt
    kept = [s.source_id for s in receipt.segments if s.layer is Layer.RETRIEVED and s.source_id]
    assert kept == ["k0:1-2", "k1:1-2", "k2:1-2"]
    assert [left.source_id for left in receipt.left_out] == ["k3:1-2", "k4:1-2", "k5:1-2"]


def test_looked_up_text_fills_a_fifth_of_the_budget_and_not_more_however_much_room_there_is():
    found = tuple(
        hit(f"k{i}", "x" * 4 * 900, 1 - i / 20, path="a.py", start_line=i, end_line=i) for i in range(10)
    )
    receipt = assemble(material(hits=found, max_context_tokens=10_000), count).receipt
    shown = sum(s.tokens for s in receipt.segments if s.layer is Layer.RETRIEVED)
    assert 1_800 < shown <= 2_000
    assert {left.reason for left in receipt.left_out} == {"over the limit for search results"}


@pytest.mark.parametrize("size", range(150, 200))
def test_what_announces_the_looked_up_text_is_in_its_share(size):
    found = (hit("k", "x" * 4 * size, path="a.py", start_line=1, end_line=1),)
    receipt = assemble(material(hits=found, max_context_tokens=1_000), count).receipt
    shown = [s for s in receipt.segments if s.layer is Layer.RETRIEVED]
    assert sum(s.tokens + PER_MESSAGE for s in shown) <= 200


@pytest.mark.parametrize(
    ("strategy", "most", "shown"),
    [("smart", 10, 10), ("balanced", 10, 5), ("minimal", 10, 3), ("smart", 4, 4)],
)
def test_a_project_that_wants_little_context_has_less_looked_up(strategy, most, shown):
    found = tuple(hit(f"k{i}", f"text {i}", path="a.py", start_line=i, end_line=i) for i in range(12))
    given = material(hits=found, context_strategy=ContextStrategy(strategy), max_results=most)
    segments = assemble(given, count).receipt.segments
    assert sum(s.layer is Layer.RETRIEVED and s.source_id is not None for s in segments) == shown


def test_a_round_outside_the_window_is_recalled_whole_when_a_hit_lies_in_it():
    talk = rounds(40)
    found = (hit("k", "Bert says 2", source_id="m2Bert", conversation_id="c", round_number=2),)
    given = material(talk, hits=found, recalled=talk[:3], model=replace(WIDE, tier=Tier.FAST))
    last = assemble(given, count).prompt.messages[-1].content
    assert "Earlier in this conversation [round 2]:\n[User]: question 2\n[Anna]: Anna says 2\n[Bert]:" in last


def test_a_recalled_round_that_a_person_took_out_stays_out_whichever_of_its_messages_is_found():
    talk = rounds(40)
    for found in ("m2", "m2Bert"):
        hits = (hit("k", "says 2", source_id=found, conversation_id="c", round_number=2),)
        given = material(talk, hits=hits, recalled=talk[:3], without=frozenset(["m2Bert"]))
        receipt = assemble(given, count).receipt
        assert [s for s in receipt.segments if s.layer is Layer.RETRIEVED] == []
        assert (TAKEN_OUT, 2) in [(left.reason, left.round_number) for left in receipt.left_out]
