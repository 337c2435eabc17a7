"""Search results in prompts: their source, their share of the budget, and recalled rounds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tertulia.context.assemble import assemble
from tertulia.context.budget import PER_MESSAGE
from tertulia.core.chunks import Match
from tertulia.core.models import Tier
from tertulia.core.projects import ContextStrategy
from tertulia.core.receipts import Layer, LeftOutReason, MatchQuality, SourceLocation
from tests.context.materials import WIDE, count, hit, make_inputs, rounds


def test_a_search_result_states_its_source_and_its_reason():
    hits = (
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
    assembled = assemble(make_inputs(hits=hits), count)
    last = assembled.prompt.messages[-1].content
    assert "From tea.py [tea.py:4-9]:\n```\ndef brew(): ...\n```" in last
    assert 'From the conversation "Other talk", round 3, gpt:\n```\nGreen tea at 80 degrees.\n```' in last
    _, of_file, of_conversation = [s for s in assembled.receipt.segments if s.layer is Layer.RETRIEVED]
    assert of_file.location == SourceLocation("tea.py", 4, 9)
    assert of_file.match == MatchQuality(Match.GOOD, 0.91, "")
    assert of_conversation.location == SourceLocation(conversation_title="Other talk", round_number=3)
    assert of_conversation.round_number is None


def test_a_receipt_names_who_wrote_each_message_that_was_found():
    found = [
        replace(hit(f"k{i}", "x" * 40, conversation_id="other", round_number=3), heading=heading, title=title)
        for i, (title, heading) in enumerate(
            (
                ("Tea", "Sam, 16 November 2026"),
                ("Tea", "GPT-4o, 16 November 2026"),
                ("", "Voice A, 1 May 2026"),
            )
        )
    ]
    receipt = assemble(make_inputs(hits=tuple(found), max_results=2), count).receipt
    found_segments = [s for s in receipt.segments if s.layer is Layer.RETRIEVED and s.source_id]
    assert [(s.location.conversation_title, s.location.speaker) for s in found_segments] == [
        ("Tea", "Sam"),
        ("Tea", "GPT-4o"),
    ]
    assert [part.location.speaker for part in receipt.left_out] == ["Voice A"]


def test_the_best_hits_are_shown_and_the_receipt_lists_the_rest():
    hits = tuple(
        hit(f"k{i}", f"text {i}", 1 - i / 20, path="a.py", start_line=1, end_line=2) for i in range(6)
    )
    receipt = assemble(make_inputs(hits=hits, model=replace(WIDE, tier=Tier.CHEAP)), count).receipt
    shown = [s.source_id for s in receipt.segments if s.layer is Layer.RETRIEVED and s.source_id]
    assert shown == ["k0:1-2", "k1:1-2", "k2:1-2"]
    assert [item.source_id for item in receipt.left_out] == ["k3:1-2", "k4:1-2", "k5:1-2"]
    assert {(item.reason, item.limit) for item in receipt.left_out} == {(LeftOutReason.NOT_AMONG_BEST, 3)}


def test_search_results_fill_at_most_a_fifth_of_the_budget_even_with_free_space():
    hits = tuple(
        hit(f"k{i}", "x" * 4 * 900, 1 - i / 20, path="a.py", start_line=i, end_line=i) for i in range(10)
    )
    receipt = assemble(make_inputs(hits=hits, max_context_tokens=10_000), count).receipt
    shown = sum(s.tokens for s in receipt.segments if s.layer is Layer.RETRIEVED)
    assert 1_800 < shown <= 2_000
    assert {item.reason for item in receipt.left_out} == {LeftOutReason.OVER_SEARCH_SHARE}


@pytest.mark.parametrize("size", range(150, 200))
def test_the_heading_of_the_search_results_counts_towards_their_share(size):
    hits = (hit("k", "x" * 4 * size, path="a.py", start_line=1, end_line=1),)
    receipt = assemble(make_inputs(hits=hits, max_context_tokens=1_000), count).receipt
    shown = [s for s in receipt.segments if s.layer is Layer.RETRIEVED]
    assert sum(s.tokens + PER_MESSAGE for s in shown) <= 200


@pytest.mark.parametrize(
    ("strategy", "max_results", "shown"),
    [("smart", 10, 10), ("balanced", 10, 5), ("minimal", 10, 3), ("smart", 4, 4)],
)
def test_a_lower_context_strategy_shows_fewer_search_results(strategy, max_results, shown):
    hits = tuple(hit(f"k{i}", f"text {i}", path="a.py", start_line=i, end_line=i) for i in range(12))
    inputs = make_inputs(hits=hits, context_strategy=ContextStrategy(strategy), max_results=max_results)
    segments = assemble(inputs, count).receipt.segments
    assert sum(s.layer is Layer.RETRIEVED and s.source_id is not None for s in segments) == shown


def test_a_round_outside_the_window_with_a_hit_is_recalled_completely():
    history = rounds(40)
    hits = (hit("k", "Bert says 2", source_id="m2Bert", conversation_id="c", round_number=2),)
    inputs = make_inputs(history, hits=hits, recalled_rounds=history[:3], model=replace(WIDE, tier=Tier.FAST))
    last = assemble(inputs, count).prompt.messages[-1].content
    assert "Earlier in this conversation [round 2]:\n[User]: question 2\n[Anna]: Anna says 2\n[Bert]:" in last


def test_a_removed_message_keeps_its_whole_round_from_being_recalled():
    history = rounds(40)
    for source_id in ("m2", "m2Bert"):
        hits = (hit("k", "says 2", source_id=source_id, conversation_id="c", round_number=2),)
        inputs = make_inputs(
            history, hits=hits, recalled_rounds=history[:3], excluded_ids=frozenset(["m2Bert"])
        )
        receipt = assemble(inputs, count).receipt
        assert [s for s in receipt.segments if s.layer is Layer.RETRIEVED] == []
        assert (LeftOutReason.REMOVED_BY_USER, 2) in [
            (item.reason, item.round_number) for item in receipt.left_out
        ]
