"""Turn plans by example: the mode, the voices and the chair of a turn, and which replies it may reuse."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tertulia import council
from tertulia.core.conversations import Visibility
from tertulia.core.messages import Message, ReadReply, Role, Round, Status, Step
from tertulia.core.step_instructions import ANSWER, ShownReply, StepInstructions
from tertulia.core.turns import Purpose, Turn, TurnState
from tertulia.core.voices import SeatRequest, Voice, assign_seats
from tertulia.council.plan import TurnPlan, placeholder, slot, slot_of

ADA, BEA, CLEO = assign_seats(SeatRequest(f"v:{name}", name) for name in ("Ada", "Bea", "Cleo"))
OTHER_BEA = replace(BEA, id="v:Gil:0", model="v:Gil", name="Gil")
ASKED = Turn(
    id="T1", conversation_id="C", round_number=1, purpose=Purpose.ASK, mode="brain_trust",
    table=(ADA, BEA), visibility=Visibility.OPEN, state=TurnState.COMPLETE, created_by="U", created_at=1,
    brief="Two sentences.",
)  # fmt: skip
QUESTION = Message("Q", "C", 1, "T1", "user", Role.USER, "Tea?", Status.COMPLETE, "U", 1)
SYNTHESIS, OUTLINE, REVIEW = (StepInstructions(step) for step in (Step.SYNTHESIS, Step.OUTLINE, Step.REVIEW))


def reply(voice: Voice, step: Step = Step.ANSWER, text: str = "Yes.", **more: object) -> Message:
    fields = {"id": f"{voice.name} {step}", "speaker": "agent", "content": text, "voice": voice, "step": step}
    return replace(QUESTION, role=Role.ADVISOR, **(fields | more))  # type: ignore[arg-type]


FAILED = reply(BEA, text="", status=Status.FAILED)
HERE = Round(1, (QUESTION, reply(ADA), FAILED, reply(ADA, Step.SYNTHESIS)))


def later(purpose: Purpose, target: Message | None, voice: Voice, mode: str = "brain_trust") -> TurnPlan:
    """The plan of a later turn in the round, for one voice."""
    turn = replace(ASKED, id="T2", purpose=purpose, table=(voice,), brief="")
    return TurnPlan(turn, replace(ASKED, mode=mode), HERE, target)


def test_a_question_follows_its_own_mode_and_asks_its_table_for_everything():
    plan = TurnPlan(ASKED)
    assert (plan.mode, plan.voices, plan.runs_later_steps) == (council.get("brain_trust"), (ADA, BEA), True)


@pytest.mark.parametrize(
    ("plan", "mode"),
    [
        (later(Purpose.RETRY, FAILED, BEA), council.get("brain_trust")),
        (later(Purpose.SYNTHESIS, None, ADA), council.SYNTHESIS),
        (later(Purpose.RETRY, reply(ADA, Step.SYNTHESIS), ADA, "parallel"), council.SYNTHESIS),
        (later(Purpose.RETRY, FAILED, BEA, "parallel"), council.get("parallel")),
        (TurnPlan(replace(ASKED, purpose=Purpose.SUMMARY, mode="quick")), council.SUMMARY),
    ],
    ids=["retry", "synthesis", "retry of an added synthesis", "retry in parallel", "summary"],
)
def test_a_later_turn_follows_the_mode_of_its_round_unless_it_adds_a_synthesis(plan, mode):
    assert plan.mode is mode


def test_a_retry_with_another_model_takes_the_seat_of_the_voice_it_replaces():
    assert later(Purpose.RETRY, FAILED, OTHER_BEA).voices == [ADA, OTHER_BEA]


def test_a_synthesis_is_written_about_the_voices_that_sit_at_the_table_now():
    here = Round(1, (QUESTION, reply(ADA), reply(OTHER_BEA)))
    plan = replace(later(Purpose.SYNTHESIS, None, CLEO), here=here)
    assert plan.voices == [ADA, OTHER_BEA]


def test_the_first_voice_with_an_answer_is_in_the_chair_if_nobody_is_named():
    assert TurnPlan(ASKED).chair([FAILED]) is ADA
    assert TurnPlan(ASKED).chair([reply(ADA, text="", status=Status.FAILED), reply(BEA)]) is BEA


def test_a_named_chair_stays_in_the_chair_when_the_round_is_retried():
    plan = later(Purpose.RETRY, FAILED, BEA)
    assert replace(plan, opening_turn=replace(ASKED, chair=CLEO)).chair([reply(ADA)]) is CLEO


def test_the_voice_that_retries_a_synthesis_is_in_the_chair():
    assert later(Purpose.RETRY, reply(ADA, Step.SYNTHESIS), CLEO).chair([reply(ADA)]) is CLEO


def test_a_later_turn_without_a_brief_follows_the_brief_of_its_round():
    assert later(Purpose.RETRY, FAILED, BEA).brief == "Two sentences."


@pytest.mark.parametrize(
    ("target", "has_company", "runs_later_steps"),
    [
        (FAILED, False, False),
        (reply(ADA, Step.SYNTHESIS), False, True),
        (reply(ADA, Step.SYNTHESIS), True, False),
    ],
)
def test_a_retry_asks_for_what_follows_only_after_the_answers_and_without_company(
    target, has_company, runs_later_steps
):
    plan = replace(later(Purpose.RETRY, target, BEA), has_company=has_company)
    assert plan.runs_later_steps is runs_later_steps


def test_an_outline_belongs_to_the_retry_of_its_synthesis():
    plan = later(Purpose.RETRY, reply(ADA, Step.SYNTHESIS), ADA)
    assert plan.is_target(None, OUTLINE)
    assert not later(Purpose.RETRY, FAILED, BEA).is_target(None, OUTLINE)
    assert not TurnPlan(ASKED).is_target(None, OUTLINE)


@pytest.mark.parametrize(
    ("target", "standing", "step", "can_reuse"),
    [
        (FAILED, reply(ADA), ANSWER, True),
        (FAILED, FAILED, ANSWER, False),
        (reply(ADA), FAILED, ANSWER, True),
        (FAILED, reply(ADA, Step.SYNTHESIS), SYNTHESIS, True),
        (FAILED, reply(ADA, Step.SYNTHESIS, ""), SYNTHESIS, False),
        (reply(ADA, Step.SYNTHESIS), reply(ADA, Step.OUTLINE), OUTLINE, False),
    ],
    ids=[
        "other answer", "target", "other failed answer", "synthesis", "empty synthesis",
        "outline of the target",
    ],
)  # fmt: skip
def test_a_retry_reuses_answers_and_later_steps_with_text(target, standing, step, can_reuse):
    assert later(Purpose.RETRY, target, BEA).can_reuse(standing, step, set()) is can_reuse


def test_a_reply_that_the_turn_has_written_itself_is_reused():
    assert later(Purpose.RETRY, FAILED, BEA).can_reuse(FAILED, ANSWER, {FAILED.id})


def test_a_turn_that_adds_a_synthesis_reuses_no_earlier_synthesis():
    plan = later(Purpose.SYNTHESIS, None, ADA)
    assert not plan.can_reuse(reply(ADA, Step.SYNTHESIS), SYNTHESIS, set())
    assert plan.can_reuse(reply(ADA), ANSWER, set())


def test_a_review_is_reused_for_a_new_synthesis_only_if_it_read_the_same_answers():
    plan = later(Purpose.RETRY, reply(ADA, Step.SYNTHESIS), ADA)
    shown = ShownReply("Answer A", reply(BEA))
    review = reply(ADA, Step.REVIEW, read_replies=(shown.as_read(),))
    assert plan.can_reuse(review, replace(REVIEW, shown=(shown,)), set())
    newer = replace(shown, message=replace(shown.message, id="newer"))
    assert not plan.can_reuse(review, replace(REVIEW, shown=(newer,)), set())


def test_an_answer_missing_from_a_later_turn_was_deleted_if_the_mode_asks_all_at_once():
    assert later(Purpose.RETRY, FAILED, BEA).was_deleted(ANSWER)
    assert not later(Purpose.RETRY, FAILED, BEA).was_deleted(SYNTHESIS)
    assert not later(Purpose.RETRY, FAILED, BEA, "relay").was_deleted(ANSWER)
    assert not TurnPlan(ASKED).was_deleted(ANSWER)


def test_a_continued_reply_reads_what_its_beginning_read_under_the_same_names():
    read = (ReadReply("Ada answer", 1, "Ada", "Answer A"), ReadReply("deleted", 3, "Cleo"))
    target = reply(BEA, Step.REVIEW, "Half a rev", read_replies=read, status=Status.STOPPED)
    plan = later(Purpose.CONTINUE, target, BEA)
    begun = plan.as_begun(REVIEW, target)
    assert [(shown.name, shown.message.id) for shown in begun.shown] == [("Answer A", "Ada answer")]
    assert plan.partial_reply(target) == "Half a rev"
    assert (plan.as_begun(REVIEW, reply(ADA)), plan.partial_reply(reply(ADA))) == (REVIEW, "")


def test_a_retried_reply_reads_what_is_shown_now_and_begins_anew():
    read = (ReadReply("Ada answer", 1, "Ada"),)
    target = reply(BEA, Step.REVIEW, "A review", read_replies=read)
    plan = later(Purpose.RETRY, target, BEA)
    assert (plan.as_begun(REVIEW, target), plan.partial_reply(target)) == (REVIEW, "")


def test_a_mode_may_go_on_if_it_has_a_chair_or_asks_in_steps_or_left_something():
    assert later(Purpose.RETRY, FAILED, BEA).may_go_on(has_left=False)
    assert later(Purpose.RETRY, FAILED, BEA, "relay").may_go_on(has_left=False)
    assert not later(Purpose.RETRY, FAILED, BEA, "parallel").may_go_on(has_left=False)
    assert later(Purpose.RETRY, FAILED, BEA, "parallel").may_go_on(has_left=True)


def test_a_round_has_one_slot_for_the_synthesis_whoever_writes_it():
    assert slot(ADA, Step.SYNTHESIS) == slot_of(reply(BEA, Step.SYNTHESIS))
    assert slot(ADA, Step.ANSWER) != slot_of(reply(BEA))


def test_a_placeholder_is_a_failed_reply_without_text_or_id():
    missing = placeholder(QUESTION, ASKED, BEA)
    assert (missing.id, missing.content, missing.status, missing.voice) == ("", "", Status.FAILED, BEA)
