"""Properties of every prompt, checked with random conversations, files, hits and budgets."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from tertulia.context.assemble import assemble, rebuild
from tertulia.context.budget import PER_MESSAGE, budget_tokens, picture_tokens, window_start
from tertulia.context.fences import fenced
from tertulia.context.prompt_inputs import PromptInputs
from tertulia.core.conversations import Visibility
from tertulia.core.messages import Message, Round
from tertulia.core.receipts import Layer, LeftOutReason, SegmentReason, SourceLocation
from tests.context.materials import ANNA, consecutive_turns, count, random_inputs


@given(random_inputs())
def test_a_prompt_is_never_over_its_budget(inputs):
    prompt = assemble(inputs, count).prompt
    text_size = count(prompt.system) + sum(count(m.content) + PER_MESSAGE for m in prompt.messages)
    questions = [inputs.conversation.question, *(round_.question for round_ in inputs.conversation.rounds)]
    attachments = [attachment for question in questions for attachment in question.attachments]
    sizes = {item.content_hash: picture_tokens(item.width, item.height) for item in attachments}
    image_size = sum(sizes[picture.content_hash] for m in prompt.messages for picture in m.pictures)
    budget = budget_tokens(inputs.model, 200, inputs.project.max_context_tokens)
    assert text_size + image_size <= budget


@given(random_inputs())
def test_the_receipt_rebuilds_the_request_exactly(inputs):
    assembled = assemble(inputs, count)
    assert rebuild(assembled.receipt) == assembled.prompt


@given(random_inputs())
def test_the_same_inputs_give_the_same_prompt(inputs):
    assert assemble(inputs, count) == assemble(inputs, count)


@given(random_inputs())
def test_a_round_is_shown_completely_or_not_at_all(inputs):
    receipt = assemble(inputs, count).receipt
    for number in {s.round_number for s in receipt.segments if s.layer is Layer.ROUNDS}:
        round_ = inputs.conversation.rounds[number - 1]
        shown = [s for s in receipt.segments if s.layer is Layer.ROUNDS]
        sources = [
            s.source_id for s in shown if s.round_number == number and s.reason is SegmentReason.RECENT
        ]
        visible = [round_.question, *visible_replies(round_, inputs)]
        assert sorted(sources) == sorted(m.id for m in visible)
        reported_ids = [item.source_id for item in receipt.left_out if item.reason in BY_VISIBILITY]
        hidden_ids = {reply.id for reply in round_.replies if reply.content} - {m.id for m in visible}
        assert hidden_ids <= set(reported_ids)
        assert not set(reported_ids) & set(sources)


BY_VISIBILITY = (LeftOutReason.HIDDEN_BY_OWN_LANE, LeftOutReason.HIDDEN_BY_CHOSEN)


def visible_replies(round_: Round, inputs: PromptInputs) -> list[Message]:
    """The replies that the visibility lets Anna see, in a second, simpler implementation."""
    replies = [reply for reply in round_.replies if reply.content]
    match inputs.conversation.visibility:
        case Visibility.OPEN:
            return replies
        case Visibility.OWN_LANE:
            return [reply for reply in replies if reply.voice is ANNA]
        case Visibility.CHOSEN:
            return [reply for reply in replies if reply.id in inputs.conversation.best_reply_ids] or replies


@given(random_inputs())
def test_search_results_take_at_most_a_fifth_and_repeat_no_round_of_the_window(inputs):
    receipt = assemble(inputs, count).receipt
    results = [s for s in receipt.segments if s.layer is Layer.RETRIEVED]
    assert sum(s.tokens for s in results) <= receipt.budget_tokens * 0.2
    window = {s.round_number for s in receipt.segments if s.layer is Layer.ROUNDS}
    assert not window & {s.round_number for s in results if s.round_number}


@given(random_inputs())
def test_a_recalled_round_appears_once_with_the_visible_replies_only(inputs):
    receipt = assemble(inputs, count).receipt
    recalled = [s for s in receipt.segments if s.layer is Layer.RETRIEVED and s.round_number]
    assert len({s.round_number for s in recalled}) == len(recalled)
    for segment in recalled:
        round_ = inputs.conversation.rounds[segment.round_number - 1]
        assert round_.question.content in segment.text
        visible = visible_replies(round_, inputs)
        for reply in round_.replies:
            if reply in visible:
                assert f"[{reply.voice.name}]: {reply.content}" in segment.text
            elif all(other.voice is not reply.voice for other in visible):
                rest = segment.text
                for shown in (round_.question, *visible):
                    rest = rest.replace(shown.content, "")
                assert f"[{reply.voice.name}]:" not in rest


@given(random_inputs())
def test_search_results_are_dropped_before_any_round(inputs):
    receipt = assemble(inputs, count).receipt
    with_nothing = assemble(replace(inputs, search=replace(inputs.search, hits=())), count).receipt
    rounds_shown = [s.source_id for s in receipt.segments if s.layer is Layer.ROUNDS]
    assert rounds_shown == [s.source_id for s in with_nothing.segments if s.layer is Layer.ROUNDS]


@given(random_inputs())
def test_roles_alternate_and_the_question_comes_last(inputs):
    prompt = assemble(inputs, count).prompt
    roles = [m.role for m in prompt.messages]
    assert roles[0] == roles[-1] == "user"
    assert all(a != b for a, b in zip(roles, roles[1:], strict=False))
    assert prompt.messages[-1].content.endswith(inputs.conversation.question.content)


@given(consecutive_turns())
def test_the_next_prompt_starts_with_the_same_bytes_unless_rounds_were_dropped(turns):
    first, second = (assemble(turn, count).receipt for turn in turns)
    stable = [s for s in first.segments if s.layer in (Layer.SYSTEM, Layer.ROUNDS)]
    window_moved = window_has_moved(turns)
    over_budget = any(item.reason is LeftOutReason.OVER_BUDGET for item in second.left_out)
    assert bytes_of(second.segments[: len(stable)]) == bytes_of(stable) or window_moved or over_budget


@given(random_inputs())
def test_at_least_half_of_the_rounds_that_fit_are_shown(inputs):
    receipt = assemble(inputs, count).receipt
    dropped_too = [
        item.round_number for item in receipt.left_out if item.reason is LeftOutReason.WITH_OLDER_ROUNDS
    ]
    dropped = [
        item.round_number
        for item in receipt.left_out
        if item.layer is Layer.ROUNDS and item.reason is LeftOutReason.OVER_BUDGET and not item.source_id
    ]
    shown = sorted({s.round_number for s in receipt.segments if s.layer is Layer.ROUNDS})
    assert len(dropped_too) <= len(shown)
    assert dropped or not dropped_too
    in_order = [*dropped, *dropped_too, *shown]
    assert in_order == sorted(in_order)


@given(consecutive_turns())
def test_the_cacheable_part_is_sent_again_with_the_same_bytes(turns):
    first, second = (assemble(turn, count) for turn in turns)
    ends = [index for index, m in enumerate(first.prompt.messages) if m.ends_cacheable]
    assert len(ends) <= 1
    if (
        ends
        and not window_has_moved(turns)
        and not any(item.reason is LeftOutReason.OVER_BUDGET for item in second.receipt.left_out)
    ):
        length = ends[0] + 1
        assert [m.content for m in second.prompt.messages[:length]] == [
            m.content for m in first.prompt.messages[:length]
        ]


@given(consecutive_turns())
def test_attachments_and_references_keep_their_bytes_in_the_next_turn(turns):
    first, second = (assemble(turn, count).receipt for turn in turns)
    number = turns[0].conversation.question.round_number
    as_question = [s for s in first.segments if s.layer is Layer.QUESTION and s.round_number == number]
    as_history = [s for s in second.segments if s.layer is Layer.ROUNDS and s.round_number == number]
    over_budget = any(
        item.reason is LeftOutReason.OVER_BUDGET for item in (*first.left_out, *second.left_out)
    )
    assert bytes_of(as_history[: len(as_question)]) == bytes_of(as_question) or over_budget


def window_has_moved(turns: tuple[PromptInputs, PromptInputs]) -> bool:
    """Whether the window dropped back between the two turns."""
    first, second = (window_start(len(turn.conversation.rounds), 20) for turn in turns)
    return first != second


def bytes_of(segments) -> list:
    return [(s.text, s.picture) for s in segments]


@given(random_inputs())
def test_every_attachment_is_shown_completely_or_left_out_with_a_reason(inputs):
    receipt = assemble(inputs, count).receipt
    shown = {s.source_id: s for s in receipt.segments if s.reason is SegmentReason.ATTACHED}
    left_out = {item.source_id: item for item in receipt.left_out if (item.source_id or "").startswith("a")}
    rounds_shown = {s.round_number for s in receipt.segments if s.layer is Layer.ROUNDS}
    questions = [round_.question for round_ in inputs.conversation.rounds if round_.number in rounds_shown]
    texts = attachment_texts(inputs)
    for attachment in (
        item for question in (*questions, inputs.conversation.question) for item in question.attachments
    ):
        id = attachment.id
        assert (id in shown) != (id in left_out)
        if id in left_out:
            assert left_out[id].location == SourceLocation(file_name=attachment.name)
        elif attachment.is_picture:
            assert shown[id].picture.content_hash == attachment.content_hash
        else:
            assert shown[id].text.endswith(":\n" + fenced(texts[id]))


def attachment_texts(inputs: PromptInputs) -> dict[str, str]:
    return {attachment.id: attachment.text for attachment in inputs.files.attachment_texts}
