"""What holds for every prompt, over random conversations, files, hits and budgets."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from tertulia.context.assemble import WITH_THE_OLDEST, assemble, rebuild
from tertulia.context.budget import PER_MESSAGE, budget_tokens, picture_tokens, window_start
from tertulia.context.fences import fenced
from tertulia.context.material import Material
from tertulia.core.conversations import Visibility
from tertulia.core.messages import Message, Round
from tertulia.core.receipts import Layer
from tests.context.materials import ANNA, count, materials, talks


@given(materials())
def test_a_prompt_is_never_over_its_budget(given_material):
    prompt = assemble(given_material, count).prompt
    size = count(prompt.system) + sum(count(m.content) + PER_MESSAGE for m in prompt.messages)
    said = [given_material.question, *(r.question for r in given_material.rounds)]
    sizes = {a.content_hash: picture_tokens(a.width, a.height) for m in said for a in m.attachments}
    seen = sum(sizes[picture.content_hash] for m in prompt.messages for picture in m.pictures)
    budget = budget_tokens(given_material.model, 200, given_material.max_context_tokens)
    assert size + seen <= budget


@given(materials())
def test_the_receipt_rebuilds_the_request_exactly(given_material):
    assembled = assemble(given_material, count)
    assert rebuild(assembled.receipt) == assembled.prompt


@given(materials())
def test_the_same_material_gives_the_same_prompt(given_material):
    assert assemble(given_material, count) == assemble(given_material, count)


@given(materials())
def test_a_round_is_shown_whole_or_not_at_all(given_material):
    receipt = assemble(given_material, count).receipt
    for number in {s.round_number for s in receipt.segments if s.layer is Layer.ROUNDS}:
        here = given_material.rounds[number - 1]
        shown = [s for s in receipt.segments if s.layer is Layer.ROUNDS]
        sources = [s.source_id for s in shown if s.round_number == number and s.reason == "recent"]
        seen = [here.question, *allowed(here, given_material)]
        assert sorted(sources) == sorted(m.id for m in seen)
        hidden = [left.source_id for left in receipt.left_out if left.reason.startswith("visibility ")]
        kept_back = {r.id for r in here.replies if r.content} - {m.id for m in seen}
        assert kept_back <= set(hidden)
        assert not set(hidden) & set(sources)


def allowed(here: Round, given_material: Material) -> list[Message]:
    """What the visibility lets Anna see, said once more and in the plainest way."""
    said = [reply for reply in here.replies if reply.content]
    match given_material.visibility:
        case Visibility.OPEN:
            return said
        case Visibility.OWN_LANE:
            return [reply for reply in said if reply.voice is ANNA]
        case Visibility.CHOSEN:
            return [reply for reply in said if reply.id in given_material.chosen] or said


@given(materials())
def test_what_was_looked_up_takes_at_most_a_fifth_and_repeats_nothing_in_the_window(given_material):
    receipt = assemble(given_material, count).receipt
    found = [s for s in receipt.segments if s.layer is Layer.RETRIEVED]
    assert sum(s.tokens for s in found) <= receipt.budget_tokens * 0.2
    window = {s.round_number for s in receipt.segments if s.layer is Layer.ROUNDS}
    assert not window & {s.round_number for s in found if s.round_number}


@given(materials())
def test_a_recalled_round_comes_once_whole_and_only_as_far_as_it_may_be_seen(given_material):
    receipt = assemble(given_material, count).receipt
    found = [s for s in receipt.segments if s.layer is Layer.RETRIEVED and s.round_number]
    assert len({s.round_number for s in found}) == len(found)
    for segment in found:
        here = given_material.rounds[segment.round_number - 1]
        assert here.question.content in segment.text
        seen = allowed(here, given_material)
        for reply in here.replies:
            if reply in seen:
                assert f"[{reply.voice.name}]: {reply.content}" in segment.text
            elif all(other.voice is not reply.voice for other in seen):
                rest = segment.text
                for shown in (here.question, *seen):
                    rest = rest.replace(shown.content, "")
                assert f"[{reply.voice.name}]:" not in rest


@given(materials())
def test_looked_up_text_is_given_up_before_any_round(given_material):
    receipt = assemble(given_material, count).receipt
    with_nothing = assemble(replace(given_material, hits=()), count).receipt
    rounds_shown = [s.source_id for s in receipt.segments if s.layer is Layer.ROUNDS]
    assert rounds_shown == [s.source_id for s in with_nothing.segments if s.layer is Layer.ROUNDS]


@given(materials())
def test_roles_alternate_and_the_question_is_last(given_material):
    prompt = assemble(given_material, count).prompt
    roles = [m.role for m in prompt.messages]
    assert roles[0] == roles[-1] == "user"
    assert all(a != b for a, b in zip(roles, roles[1:], strict=False))
    assert prompt.messages[-1].content.endswith(given_material.question.content)


@given(talks())
def test_the_next_turns_prompt_begins_as_this_one_did_unless_the_receipt_says_why(talk):
    before, after = (assemble(turn, count).receipt for turn in talk)
    stable = [s for s in before.segments if s.layer in (Layer.SYSTEM, Layer.ROUNDS)]
    moved = has_moved(talk)
    full = any(left.reason == "over the budget" for left in after.left_out)
    assert bytes_of(after.segments[: len(stable)]) == bytes_of(stable) or moved or full


@given(materials())
def test_of_the_rounds_for_which_there_is_room_more_than_half_are_shown(given_material):
    receipt = assemble(given_material, count).receipt
    going = [left.round_number for left in receipt.left_out if left.reason == WITH_THE_OLDEST]
    gone = [
        left.round_number
        for left in receipt.left_out
        if left.layer is Layer.ROUNDS and left.reason == "over the budget" and not left.source_id
    ]
    shown = sorted({s.round_number for s in receipt.segments if s.layer is Layer.ROUNDS})
    assert len(going) <= len(shown)
    assert gone or not going
    in_order = [*gone, *going, *shown]
    assert in_order == sorted(in_order)


@given(talks())
def test_what_is_marked_to_stay_is_sent_again_in_the_same_bytes(talk):
    before, after = (assemble(turn, count) for turn in talk)
    ends = [place for place, m in enumerate(before.prompt.messages) if m.ends_cacheable]
    assert len(ends) <= 1
    if (
        ends
        and not has_moved(talk)
        and not any(left.reason == "over the budget" for left in after.receipt.left_out)
    ):
        kept = ends[0] + 1
        assert [m.content for m in after.prompt.messages[:kept]] == [
            m.content for m in before.prompt.messages[:kept]
        ]


@given(talks())
def test_what_a_question_brought_along_and_refers_to_has_the_same_bytes_once_it_is_history(talk):
    asked, later = (assemble(turn, count).receipt for turn in talk)
    number = talk[0].question.round_number
    then = [s for s in asked.segments if s.layer is Layer.QUESTION and s.round_number == number]
    now = [s for s in later.segments if s.layer is Layer.ROUNDS and s.round_number == number]
    full = any(left.reason == "over the budget" for left in (*asked.left_out, *later.left_out))
    assert bytes_of(now[: len(then)]) == bytes_of(then) or full


def has_moved(talk: tuple[Material, Material]) -> bool:
    """Whether the window dropped back between the two turns."""
    first, then = (window_start(len(turn.rounds), 20) for turn in talk)
    return first != then


def bytes_of(segments) -> list:
    return [(s.text, s.picture) for s in segments]


@given(materials())
def test_everything_brought_along_is_shown_whole_or_named_with_its_reason(given_material):
    receipt = assemble(given_material, count).receipt
    shown = {s.source_id: s for s in receipt.segments if s.reason == "attached"}
    left = {one.source_id: one for one in receipt.left_out if (one.source_id or "").startswith("a")}
    rounds_shown = {s.round_number for s in receipt.segments if s.layer is Layer.ROUNDS}
    in_sight = [r.question for r in given_material.rounds if r.number in rounds_shown]
    texts = {one.id: one.text for one in given_material.attached}
    for one in (a for m in (*in_sight, given_material.question) for a in m.attachments):
        assert (one.id in shown) != (one.id in left)
        if one.id in left:
            assert (left[one.id].name, bool(left[one.id].reason)) == (one.name, True)
        elif one.is_picture:
            assert shown[one.id].picture.content_hash == one.content_hash
        else:
            assert shown[one.id].text.endswith(":\n" + fenced(texts[one.id]))
