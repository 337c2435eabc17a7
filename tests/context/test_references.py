"""References: the messages that a question replies to and quotes come before it, in this turn and in later
ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tertulia.context.assemble import assemble
from tertulia.core.attachments import Attachment
from tertulia.core.messages import Message, Quote, Round
from tertulia.core.models import Tier
from tertulia.core.receipts import Layer, LeftOutReason, SegmentReason, SourceLocation
from tests.context.materials import BERT, TEXT, WIDE, count, hit, make_inputs, message, round_, rounds

BERTS_REPLY = message(1, BERT, "Bert says 1")
QUOTES = (Quote(BERTS_REPLY.id, "half a truth"), Quote("gone", "from what is gone"))


def question_about(number: int, text: str = "And now?", **more) -> Message:
    """A question that replies to Bert, quotes him, and quotes a deleted message."""
    return message(number, None, text, reply_to_id=BERTS_REPLY.id, quotes=QUOTES, **more)


REFERENCES = (
    '[Replying to Bert: "Bert says 1"]\n\n[Quoting Bert: "half a truth"]\n\n[Quoting: "from what is gone"]'
)


def test_a_long_message_that_is_replied_to_is_cut_to_three_hundred_characters():
    reply = message(1, BERT, "b" * 500)
    question = message(2, None, "And now?", reply_to_id=reply.id)
    last = (
        assemble(make_inputs(rounds(1), question, referenced_messages=(reply,)), count)
        .prompt.messages[-1]
        .content
    )
    assert f'[Replying to Bert: "{"b" * 300}…"]' in last
    assert "b" * 301 not in last


@pytest.mark.parametrize("length", [0, 1, 299, 300])
def test_a_short_message_that_is_replied_to_is_shown_completely_without_ellipsis(length):
    reply = message(1, BERT, "b" * length)
    question = message(2, None, "And now?", reply_to_id=reply.id)
    last = (
        assemble(make_inputs(rounds(1), question, referenced_messages=(reply,)), count)
        .prompt.messages[-1]
        .content
    )
    assert f'[Replying to Bert: "{"b" * length}"]' in last


def test_replied_to_and_quoted_messages_come_before_the_question_in_this_order():
    assembled = assemble(make_inputs(rounds(1), question_about(2), referenced_messages=(BERTS_REPLY,)), count)
    assert assembled.prompt.messages[-1].content.endswith(f"{REFERENCES}\n\nAnd now?")
    sources = [(s.reason, s.source_id, s.round_number) for s in assembled.receipt.segments if s.source_id]
    assert sources[-4:-1] == [
        (SegmentReason.REPLIED_TO, BERTS_REPLY.id, 2),
        (SegmentReason.QUOTED, BERTS_REPLY.id, 2),
        (SegmentReason.QUOTED, "gone", 2),
    ]


REFERENCE_REASONS = (SegmentReason.REPLIED_TO, SegmentReason.QUOTED)


def test_a_question_in_the_history_keeps_its_references_with_the_same_bytes():
    attachment = Attachment("a", "plan.md", TEXT, 8, "hash")
    question = question_about(2, attachments=(attachment,))
    this_turn = assemble(make_inputs(rounds(1), question, referenced_messages=(BERTS_REPLY,)), count)
    [_, end] = this_turn.prompt.messages[-1].content.split('(Round 2 of "Tea".)\n\n')
    history = (round_(1), Round(2, (question, *round_(2).messages[1:])))
    next_turn = assemble(make_inputs(history, referenced_messages=(BERTS_REPLY,)), count)
    assert end.endswith(f"{REFERENCES}\n\nAnd now?")
    assert next_turn.prompt.messages[2].content.endswith(end)
    segments = [s for s in next_turn.receipt.segments if s.reason in REFERENCE_REASONS]
    assert [(s.layer, s.round_number) for s in segments] == [(Layer.ROUNDS, 2)] * 3


def test_references_to_a_removed_message_are_left_out_as_well():
    history = (round_(1), Round(2, (question_about(2), *round_(2).messages[1:])))
    removed_ids = frozenset([BERTS_REPLY.id])
    assembled = assemble(
        make_inputs(
            history, question_about(3, "Then?"), referenced_messages=(BERTS_REPLY,), excluded_ids=removed_ids
        ),
        count,
    )
    everything = "".join(sent.content for sent in assembled.prompt.messages)
    assert "Bert says 1" not in everything
    assert "half a truth" not in everything
    assert everything.count("from what is gone") == 2
    removed = [
        (item.round_number, item.location, item.reference)
        for item in assembled.receipt.left_out
        if item.reason is LeftOutReason.REMOVED_BY_USER
    ]
    assert removed == [
        (1, SourceLocation(speaker="Bert"), None),
        (2, None, SegmentReason.REPLIED_TO),
        (2, None, SegmentReason.QUOTED),
        (3, None, SegmentReason.REPLIED_TO),
        (3, None, SegmentReason.QUOTED),
    ]


def test_a_recalled_round_names_referenced_voices_without_their_text():
    """The recalled round is one segment, and the referenced messages may be deleted before it."""
    history = rounds(40)
    recalled = Round(2, (question_about(2, "question 2"), *history[1].messages[1:]))
    hits = (hit("k", "Bert says 2", source_id="m2Bert", conversation_id="c", round_number=2),)
    fast_model = replace(WIDE, tier=Tier.FAST)
    inputs = make_inputs(
        history, hits=hits, recalled_rounds=(recalled,), referenced_messages=(BERTS_REPLY,), model=fast_model
    )
    last = assemble(inputs, count).prompt.messages[-1].content
    assert "[round 2]:\n(Replies to Bert, round 1.)\n(Quotes Bert, round 1.)\n[User]: question 2\n" in last
    assert "half a truth" not in last


def test_a_round_of_a_summarised_branch_keeps_its_references():
    branch = (Round(2, (question_about(2, "what if?"), *round_(2).messages[1:])),)
    last = (
        assemble(make_inputs(rounds(1), branch_rounds=branch, referenced_messages=(BERTS_REPLY,)), count)
        .prompt.messages[-1]
        .content
    )
    assert f"{REFERENCES}\n\n[User, round 2 of the branch]: what if?" in last
