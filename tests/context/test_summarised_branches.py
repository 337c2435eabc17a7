"""Branch summaries: the rounds of a branch in the prompt of the voice that summarises it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tertulia.context.assemble import assemble, rebuild
from tertulia.context.budget import budget_tokens
from tertulia.core.receipts import Layer, SegmentReason
from tests.context.materials import WIDE, count, make_inputs, round_, rounds


def test_the_rounds_of_a_branch_carry_every_voices_name():
    """Even the name of the summarising voice, which is not part of the branch."""
    last = (
        assemble(make_inputs(rounds(2), branch_rounds=(round_(2, "what if?"),)), count)
        .prompt.messages[-1]
        .content
    )
    assert "[User, round 2 of the branch]: what if?\n\n[Anna]: Anna says 2\n\n[Bert]: Bert says 2" in last
    assert last.index("what if?") < last.index("And now?")


def test_deleted_rounds_are_not_counted_as_hidden():
    remaining = tuple(round_ for round_ in rounds(4) if round_.number != 2)
    messages = assemble(make_inputs(remaining), count).prompt.messages
    assert "not shown here" not in messages[-1].content
    assert [message.content for message in messages if message.role == "assistant"] == [
        "Anna says 1",
        "Anna says 3",
        "Anna says 4",
    ]


@given(
    sizes=st.lists(st.integers(1, 4_000), min_size=1, max_size=12),
    window=st.integers(9_000, 40_000),
)
def test_the_newest_complete_rounds_of_a_branch_that_fit_are_shown_and_the_rest_is_counted(sizes, window):
    model = replace(WIDE, context_window=window)
    branch = tuple(round_(number, "x" * size * 4) for number, size in enumerate(sizes, start=5))
    inputs = make_inputs(rounds(4), branch_rounds=branch, model=model)
    assembled = assemble(inputs, count)
    receipt = assembled.receipt
    assert receipt.tokens <= budget_tokens(model, inputs.max_output_tokens, inputs.project.max_context_tokens)
    assert rebuild(receipt) == assembled.prompt
    segment_rounds = [s.round_number for s in receipt.segments if s.reason is SegmentReason.BRANCH_ROUND]
    shown = sorted(set(segment_rounds))
    assert shown == [round_.number for round_ in branch][len(branch) - len(shown) :]
    assert all(segment_rounds.count(number) == 4 for number in shown)
    missing = [item.round_number for item in receipt.left_out if item.layer is Layer.QUESTION]
    assert missing == [round_.number for round_ in branch][: len(branch) - len(shown)]
    note = f"(There is no room for the first {len(missing)} rounds of the branch.)"
    assert (note in assembled.prompt.messages[-1].content) == bool(missing)
