"""What a model is shown besides its own line: the rounds of a branch that comes back."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tertulia.context.assemble import assemble, rebuild
from tertulia.context.budget import budget_tokens
from tertulia.core.receipts import Layer
from tests.context.materials import WIDE, count, material, round_, rounds


def test_a_branch_is_retold_with_every_voice_by_its_name():
    """Also the one that tells it: it was not there."""
    told = assemble(material(rounds(2), brought=(round_(2, "what if?"),)), count).prompt.messages[-1].content
    assert "[User, round 2 of the branch]: what if?\n\n[Anna]: Anna says 2\n\n[Bert]: Bert says 2" in told
    assert told.index("what if?") < told.index("And now?")


def test_rounds_that_were_deleted_are_not_counted_as_hidden():
    left = tuple(one for one in rounds(4) if one.number != 2)
    told = assemble(material(left), count).prompt.messages
    assert "not shown here" not in told[-1].content
    assert [m.content for m in told if m.role == "assistant"] == ["Anna says 1", "Anna says 3", "Anna says 4"]


@given(
    sizes=st.lists(st.integers(1, 4_000), min_size=1, max_size=12),
    window=st.integers(9_000, 40_000),
)
def test_of_a_branch_the_newest_whole_rounds_that_fit_are_told_and_the_rest_is_named(sizes, window):
    model = replace(WIDE, context_window=window)
    brought = tuple(round_(number, "x" * size * 4) for number, size in enumerate(sizes, start=5))
    given = material(rounds(4), brought=brought, model=model)
    assembled = assemble(given, count)
    receipt = assembled.receipt
    assert receipt.tokens <= budget_tokens(model, given.max_output_tokens, given.max_context_tokens)
    assert rebuild(receipt) == assembled.prompt
    told = [s.round_number for s in receipt.segments if s.reason == "brought back"]
    kept = sorted(set(told))
    assert kept == [one.number for one in brought][len(brought) - len(kept) :]
    assert all(told.count(number) == 4 for number in kept)
    missing = [left.round_number for left in receipt.left_out if left.layer is Layer.QUESTION]
    assert missing == [one.number for one in brought][: len(brought) - len(kept)]
    said = f"(There is no room for the first {len(missing)} rounds of the branch.)"
    assert (said in assembled.prompt.messages[-1].content) == bool(missing)
