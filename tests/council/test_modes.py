"""Modes, run against a scripted table that records each ask: the voice, the step and the replies it read."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from tertulia import council
from tertulia.core.errors import Invalid
from tertulia.core.messages import Message, Role, Status, Step
from tertulia.core.reply_parsing import parse_reply
from tertulia.core.step_instructions import ANSWER, StepInstructions
from tertulia.core.voices import SEATS, SeatRequest, Voice, assign_seats
from tests.patience import soon


@dataclass(frozen=True)
class Asked:
    seat: int
    step: Step
    read: tuple[str, ...]
    """The names of the replies of this round that its prompt contained."""
    before: int
    """How many replies were complete at that time."""


class ScriptedTable:
    """A table whose voices answer with their name, with a scripted text, or fail."""

    brief = ""
    can_outline = True

    def __init__(
        self,
        voices: int,
        *,
        failing: tuple[int, ...] = (),
        lines: Mapping[Step, str] | None = None,
        conversation: str = "C",
    ) -> None:
        names = ("Ada", "Bea", "Cleo", "Dora", "Eva", "Fay", "Gil", "Hal")
        self.voices = assign_seats(SeatRequest(f"voices:{name}", name) for name in names[:voices])
        self.chair = self.voices[0]
        self.asked: list[Asked] = []
        self.answers: list[Message] = []
        self.tasks: dict[Step, str] = {}
        self.retried: dict[str, Message] = {}
        """The newer version of a reply, by the id of the older one."""
        self._texts: list[tuple[Step, list[str]]] = []
        self._conversation = conversation
        self._failing = failing
        self._lines = lines or {}

    async def ask(self, voice: Voice, step: StepInstructions = ANSWER) -> Message:
        shown = tuple(reply.name for reply in step.shown)
        self._texts.append((step.step, [reply.message.content for reply in step.shown]))
        self.asked.append(Asked(voice.seat, step.step, shown, len(self.answers)))
        self.tasks[step.step] = step.task
        await asyncio.sleep(0)
        is_failing = voice.seat in self._failing
        text = "" if is_failing else self._lines.get(step.step, f"{voice.name} on {step.step}.")
        message = Message(
            f"{len(self.answers):02}{voice.name}", self._conversation, 1, "T", "agent:alpha", step.role,
            text, Status.FAILED if is_failing else Status.COMPLETE, "U", 1, voice,
            critique_of_id=step.critique_of_id, step=step.step, findings=parse_reply(step, text),
        )  # fmt: skip
        self.answers.append(message)
        return message

    async def ask_all(
        self, voices: Sequence[Voice] | None = None, step: StepInstructions = ANSWER
    ) -> Sequence[Message]:
        return await asyncio.gather(
            *(self.ask(voice, step) for voice in (self.voices if voices is None else voices))
        )

    async def current(self, replies: Sequence[Message]) -> Sequence[Message]:
        return [self.retried.get(reply.id, reply) for reply in replies]

    def steps(self) -> list[tuple[int, Step]]:
        return [(ask.seat, ask.step) for ask in self.asked]

    def texts_shown(self, step: Step) -> list[list[str]]:
        return [texts for text_step, texts in self._texts if text_step is step]

    def asked_for(self, step: Step) -> list[Asked]:
        return [ask for ask in self.asked if ask.step is step]


async def run_mode(mode: str, table: ScriptedTable) -> ScriptedTable:
    async with soon():
        await council.get(mode).run(table)
    return table


async def test_quick_asks_the_first_voice_only():
    assert (await run_mode("quick", ScriptedTable(1))).steps() == [(1, Step.ANSWER)]


async def test_parallel_asks_all_voices_before_any_has_answered():
    table = await run_mode("parallel", ScriptedTable(SEATS))
    assert table.asked == [Asked(n, Step.ANSWER, (), 0) for n in range(1, SEATS + 1)]


async def test_parallel_gets_the_other_answers_if_one_voice_fails():
    table = await run_mode("parallel", ScriptedTable(3, failing=(2,)))
    assert [answer.status for answer in table.answers] == [Status.COMPLETE, Status.FAILED, Status.COMPLETE]


# ── second opinion


async def test_a_second_opinion_reads_the_answer_and_refers_to_it():
    table = await run_mode("second_opinion", ScriptedTable(3))
    answer, *critiques = table.answers
    assert table.steps() == [(1, Step.ANSWER), (2, Step.CRITIQUE), (3, Step.CRITIQUE)]
    assert [ask.read for ask in table.asked_for(Step.CRITIQUE)] == [("Ada",), ("Ada",)]
    assert {critique.critique_of_id for critique in critiques} == {answer.id}
    assert {critique.role for critique in critiques} == {Role.CRITIC}
    assert "Ada" in table.tasks[Step.CRITIQUE]


async def test_if_the_first_voice_fails_the_next_answers_and_the_rest_review_its_answer():
    table = await run_mode("second_opinion", ScriptedTable(3, failing=(1,)))
    assert table.steps() == [(1, Step.ANSWER), (2, Step.ANSWER), (3, Step.CRITIQUE)]
    assert table.asked[-1].read == ("Bea",)


# ── brain trust


async def test_brain_trust_voices_answer_independently_and_the_chair_reads_all():
    table = await run_mode("brain_trust", ScriptedTable(4))
    assert [(ask.read, ask.before) for ask in table.asked_for(Step.ANSWER)] == [((), 0)] * 4
    [synthesis] = table.asked_for(Step.SYNTHESIS)
    assert synthesis == Asked(1, Step.SYNTHESIS, ("Ada", "Bea", "Cleo", "Dora"), 4)
    assert table.answers[4].role is Role.SYNTHESIS


async def test_the_chair_learns_which_voices_are_absent_and_continues_without_them():
    table = await run_mode("brain_trust", ScriptedTable(4, failing=(3,)))
    [synthesis] = table.asked_for(Step.SYNTHESIS)
    assert synthesis.read == ("Ada", "Bea", "Dora")
    assert "Absent this round, because no answer came: Cleo." in table.tasks[Step.SYNTHESIS]


async def test_no_voice_is_called_absent_if_all_answered():
    table = await run_mode("brain_trust", ScriptedTable(3))
    assert "Absent" not in table.tasks[Step.SYNTHESIS]


async def test_the_synthesis_task_ends_with_the_persons_instructions():
    table = ScriptedTable(2)
    table.brief = "Two sentences, for a child."
    await run_mode("brain_trust", table)
    assert table.tasks[Step.SYNTHESIS].endswith(
        "The person asks of this synthesis: Two sentences, for a child."
    )


async def test_the_outline_follows_the_synthesis_and_reads_it():
    table = await run_mode("brain_trust", ScriptedTable(2))
    [outline] = table.asked_for(Step.OUTLINE)
    assert outline == Asked(1, Step.OUTLINE, ("Ada", "Bea", "Ada"), 3)


async def test_a_chair_that_cannot_write_json_is_not_asked_for_an_outline():
    table = ScriptedTable(2)
    table.can_outline = False
    assert not (await run_mode("brain_trust", table)).asked_for(Step.OUTLINE)


@pytest.mark.parametrize("mode", ["brain_trust", "debate", "peer_review"])
async def test_no_synthesis_is_written_if_every_voice_failed(mode):
    table = await run_mode(mode, ScriptedTable(3, failing=(1, 2, 3)))
    assert table.steps() == [(1, Step.ANSWER), (2, Step.ANSWER), (3, Step.ANSWER)]


# ── relay


async def test_each_voice_of_a_relay_reads_the_earlier_answers_with_text():
    table = await run_mode("relay", ScriptedTable(4, failing=(2,)))
    assert [ask.read for ask in table.asked] == [(), ("Ada",), ("Ada",), ("Ada", "Cleo")]
    assert [ask.before for ask in table.asked] == [0, 1, 2, 3]


# ── debate


async def test_debate_rebuttals_read_the_openings_and_the_synthesis_reads_both():
    table = await run_mode("debate", ScriptedTable(2))
    assert [ask.before for ask in table.asked_for(Step.ANSWER)] == [0, 0]
    assert [(ask.read, ask.before) for ask in table.asked_for(Step.REBUTTAL)] == [(("Ada", "Bea"), 2)] * 2
    [synthesis] = table.asked_for(Step.SYNTHESIS)
    assert synthesis.read == ("Ada", "Bea", "Ada", "Bea")


async def test_a_voice_without_an_opening_gives_no_rebuttal():
    table = await run_mode("debate", ScriptedTable(3, failing=(2,)))
    assert [ask.seat for ask in table.asked_for(Step.REBUTTAL)] == [1, 3]


async def test_a_single_opening_gets_a_synthesis_without_rebuttals():
    table = await run_mode("debate", ScriptedTable(2, failing=(2,)))
    assert table.steps() == [(1, Step.ANSWER), (2, Step.ANSWER), (1, Step.SYNTHESIS)]


# ── peer review


def reading_orders(table: ScriptedTable) -> list[list[str]]:
    """For each reviewer, the authors of the answers in the order it read them; the answers carry no names."""
    return [[author(text) for text in texts] for texts in table.texts_shown(Step.REVIEW)]


def author(text: str) -> str:
    return text.split()[0]


async def test_each_reviewer_ranks_the_anonymous_answers_of_the_others():
    table = await run_mode("peer_review", ScriptedTable(4))
    for review in table.asked_for(Step.REVIEW):
        assert review.read == ("Answer A", "Answer B", "Answer C")
    names = [voice.name for voice in table.voices]
    assert [sorted(order) for order in reading_orders(table)] == [
        [n for n in names if n != reviewer] for reviewer in names
    ]
    assert not any(name in table.tasks[Step.REVIEW] for name in names)


async def test_each_reviewer_reads_the_answers_in_an_order_of_its_own_that_never_changes():
    tables = [ScriptedTable(8), ScriptedTable(8), ScriptedTable(8, conversation="D")]
    first, repeated, other_conversation = [
        reading_orders(await run_mode("peer_review", table)) for table in tables
    ]
    assert first == repeated
    assert first != other_conversation
    sorted_by_seat = {tuple(sorted(order)) == tuple(order) for order in first}
    assert sorted_by_seat != {True}
    places = [order.index("Ada") for order in first if "Ada" in order]
    assert len(set(places)) > 1


async def test_a_voice_that_failed_is_neither_ranked_nor_asked_to_rank():
    table = await run_mode("peer_review", ScriptedTable(4, failing=(2,)))
    assert [ask.seat for ask in table.asked_for(Step.REVIEW)] == [1, 3, 4]
    assert {ask.read for ask in table.asked_for(Step.REVIEW)} == {("Answer A", "Answer B")}
    assert all("Bea" not in order for order in reading_orders(table))


async def test_two_answers_are_judged_but_not_ranked():
    table = await run_mode("peer_review", ScriptedTable(2, lines={Step.REVIEW: "Ranking: A"}))
    assert [ask.read for ask in table.asked_for(Step.REVIEW)] == [("Answer A",), ("Answer A",)]
    assert "Ranking" not in table.tasks[Step.REVIEW]
    assert "Mean place" not in table.tasks[Step.SYNTHESIS]


async def test_the_chair_is_told_the_mean_places_of_the_answers():
    table = await run_mode("peer_review", ScriptedTable(3, lines={Step.REVIEW: "Ranking: B > A"}))
    places: dict[str, list[int]] = {}
    for second, first in reading_orders(table):
        places.setdefault(first, []).append(1)
        places.setdefault(second, []).append(2)
    dependencies = sorted((sum(numbers) / len(numbers), name) for name, numbers in places.items())
    ranks = re.search(r"Mean place, 1 is best: (.+)\.$", table.tasks[Step.SYNTHESIS], re.MULTILINE)
    assert ranks is not None
    assert sorted(ranks[1].split(", ")) == sorted(f"{name} {mean:.1f}" for mean, name in dependencies)
    assert ranks[1].startswith(
        tuple(f"{name} {dependencies[0][0]:.1f}" for mean, name in dependencies if mean == dependencies[0][0])
    )


async def test_unreadable_rankings_are_left_out_of_the_synthesis_task():
    table = await run_mode("peer_review", ScriptedTable(2))
    assert "Mean place" not in table.tasks[Step.SYNTHESIS]


# ── the list of modes


@pytest.mark.parametrize(
    ("mode", "voices"),
    [("quick", 0), ("quick", 2), ("parallel", 0), ("parallel", 9), ("debate", 1), ("second_opinion", 1)],
)
def test_a_mode_refuses_a_wrong_number_of_voices(mode, voices):
    with pytest.raises(Invalid, match=f"this turn has {voices}"):
        council.get(mode).must_seat(voices)


@pytest.mark.parametrize(("mode", "voices"), [("quick", 1), ("parallel", 1), ("parallel", 8), ("relay", 2)])
def test_a_mode_accepts_an_allowed_number_of_voices(mode, voices):
    assert council.get(mode).must_seat(voices) is None


def test_the_error_for_an_unknown_mode_lists_the_known_modes():
    with pytest.raises(Invalid, match="The modes are: quick, parallel, second_opinion"):
        council.get("shouting")


def test_every_mode_is_listed_under_its_own_name():
    assert {name: mode.name for name, mode in council.MODES.items()} == {name: name for name in council.MODES}
