"""Window and budget: the number of rounds shown, and the rounds that are dropped first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.context.assemble import DoesNotFit, assemble
from tertulia.context.budget import budget_tokens, cacheable_tokens, tier_for, window_start
from tertulia.core.models import WORKING_ROUNDS, Tier
from tertulia.core.projects import ContextStrategy
from tertulia.core.receipts import Layer, LeftOutReason
from tests.context.materials import WIDE, count, make_inputs, round_, rounds


@pytest.mark.parametrize(("tier", "working"), [("smart", 20), ("balanced", 10), ("fast", 5), ("cheap", 5)])
def test_the_window_has_the_rounds_of_its_tier_and_the_prompt_counts_hidden_rounds(tier, working):
    model = replace(WIDE, tier=Tier(tier))
    assembled = assemble(make_inputs(rounds(40), model=model), count)
    shown = {s.round_number for s in assembled.receipt.segments if s.layer is Layer.ROUNDS}
    assert working <= len(shown) < working * 1.5
    assert max(shown) == 40
    assert f"The first {40 - len(shown)} are not shown" in assembled.prompt.messages[-1].content
    outside = assembled.receipt.left_out[0]
    assert (outside.reason, outside.round_number) == (LeftOutReason.OUTSIDE_WINDOW, 40 - len(shown))


def test_a_minimal_context_strategy_lowers_a_smart_model_to_the_cheap_tier():
    assert tier_for(WIDE, ContextStrategy.MINIMAL) is Tier.CHEAP
    assert tier_for(WIDE, ContextStrategy.BALANCED) is Tier.BALANCED
    assert tier_for(WIDE, ContextStrategy.SMART) is Tier.SMART


def test_a_too_long_question_is_refused_with_both_token_counts():
    small = replace(WIDE, context_window=1_000)
    with pytest.raises(DoesNotFit, match=r"Anna has room for [\d,]+ tokens and this needs [\d,]+"):
        assemble(make_inputs(question="x" * 10_000, model=small, max_output_tokens=200), count)


LONG = "word " * 4_000


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({"question": LONG}, "Shorten the message, or ask a model with a larger window."),
        ({"instructions": LONG}, "Most of it is the project's instructions: shorten them, or ask"),
        ({"persona_instructions": LONG}, "Most of it is the persona's instructions: shorten them, or ask"),
        (
            {"partial_reply": LONG},
            "Most of it is the reply so far: regenerate it instead of continuing, or ask",
        ),
        ({"model": replace(WIDE, context_window=300)}, "Ask a model with a larger window."),
        (
            {"max_context_tokens": 0},
            "The project allows no more than 0: raise it under Instructions and models.",
        ),
        (
            {"max_context_tokens": 50},
            "The project allows no more than 50: raise it under Instructions and models.",
        ),
    ],
)
def test_a_prompt_that_cannot_fit_is_refused_with_advice(changes, advice):
    defaults = {"model": replace(WIDE, context_window=4_000), "max_output_tokens": 200}
    with pytest.raises(DoesNotFit) as error:
        assemble(make_inputs(**(defaults | changes)), count)
    assert advice in error.value.message


def test_the_oldest_rounds_are_dropped_first_and_listed_in_the_receipt():
    small = replace(WIDE, context_window=900)
    assembled = assemble(make_inputs(rounds(20), model=small, max_output_tokens=200), count)
    shown = sorted({s.round_number for s in assembled.receipt.segments if s.layer is Layer.ROUNDS})
    dropped = [item.round_number for item in assembled.receipt.left_out if item.round_number]
    assert shown == list(range(shown[0], 21))
    assert dropped == list(range(dropped[0], shown[0]))


def test_the_prompt_counts_hidden_rounds_even_when_the_budget_dropped_them():
    small = replace(WIDE, context_window=900)
    assembled = assemble(make_inputs(rounds(20), model=small, max_output_tokens=200), count)
    shown = {s.round_number for s in assembled.receipt.segments if s.layer is Layer.ROUNDS}
    assert 0 < len(shown) < 20
    last = assembled.prompt.messages[-1].content
    assert f"The first {20 - len(shown)} are not shown here." in last


@pytest.mark.parametrize(
    ("window", "project", "budget"),
    [(100_000, 128_000, 94_000), (200_000, 128_000, 128_000), (5_000, 128_000, 900), (2_000, 128_000, 0)],
)
def test_the_budget_is_the_window_minus_answer_and_margin_up_to_the_projects_limit(window, project, budget):
    assert budget_tokens(replace(WIDE, context_window=window), 4_000, project) == budget


@pytest.mark.parametrize(
    ("answer", "budget"), [(16_000, 264_000), (128_000, 264_000), (200_000, 192_000), (400_000, 0)]
)
def test_the_budget_respects_a_models_input_limit_even_for_short_answers(answer, budget):
    model = replace(WIDE, context_window=400_000, max_input_tokens=272_000)
    assert budget_tokens(model, answer, 1_000_000) == budget


@given(st.integers(0, 200), st.sampled_from(sorted(set(WORKING_ROUNDS.values()))))
def test_the_window_grows_by_up_to_half_its_size_and_then_drops_back(round_count, working):
    shown = round_count - window_start(round_count, working)
    assert (
        shown == round_count
        if round_count <= working
        else working <= shown < working + max(1, working // 2) + 1
    )


@pytest.mark.parametrize("working", sorted(set(WORKING_ROUNDS.values())))
def test_the_window_starts_at_the_same_round_for_half_its_size(working):
    starts = [window_start(history, working) for history in range(working, working + 40)]
    assert len(set(starts)) == -(-40 // (working // 2))


@pytest.mark.parametrize("tokens", [100, 150, 220, 400])
def test_with_a_small_budget_the_prompt_starts_at_the_same_round_for_several_turns(tokens):
    model = replace(WIDE, context_window=2_600)
    history = tuple(round_(number, "x" * tokens * 4) for number in range(1, 62))
    first_rounds = []
    for length in range(30, 60):
        receipt = assemble(make_inputs(history[:length], model=model, max_output_tokens=200), count).receipt
        assert receipt.left_out[-1].reason in (
            LeftOutReason.OVER_BUDGET,
            LeftOutReason.WITH_OLDER_ROUNDS,
        )
        first_rounds.append(next(s.round_number for s in receipt.segments if s.layer is Layer.ROUNDS))
    assert first_rounds == sorted(first_rounds)
    assert len(set(first_rounds)) <= len(first_rounds) // 2 + 1


def test_the_cacheable_tokens_are_system_prompt_and_marked_rounds_and_zero_if_short():
    long = "x" * 4 * 2_000
    receipt = assemble(make_inputs(rounds(2), instructions=long), count).receipt
    marked = next(i for i, s in enumerate(receipt.segments) if s.ends_cacheable)
    assert cacheable_tokens(receipt) == sum(s.tokens for s in receipt.segments[: marked + 1])
    without_rounds = assemble(make_inputs(instructions=long), count).receipt
    assert cacheable_tokens(without_rounds) == sum(
        s.tokens for s in without_rounds.segments if s.role == "system"
    )
    assert cacheable_tokens(assemble(make_inputs(rounds(2)), count).receipt) == 0
