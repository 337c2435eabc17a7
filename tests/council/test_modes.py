"""Modes, against a table that remembers who was asked when, for what, and what they had read."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from tertulia import council
from tertulia.core.briefs import ANSWER, Brief
from tertulia.core.errors import Invalid
from tertulia.core.messages import Message, Role, Status, Step
from tertulia.core.reading import read
from tertulia.core.voices import SEATS, Voice, Wanted, seat
from tests.patience import soon


@dataclass(frozen=True)
class Asked:
    seat: int
    step: Step
    read: tuple[str, ...]
    """What it was shown of its own round, by the names it was shown under."""
    before: int
    """How many had answered by then."""


class ScriptedTable:
    """Voices that say who they are, or what the script says, or nothing."""

    wish = ""
    can_outline = True
    said: Sequence[Message] = ()
    reviews: Sequence[Message] = ()

    def __init__(
        self,
        voices: int,
        *,
        failing: tuple[int, ...] = (),
        lines: Mapping[Step, str] | None = None,
        conversation: str = "C",
    ) -> None:
        names = ("Ada", "Bea", "Cleo", "Dora", "Eva", "Fay", "Gil", "Hal")
        self.voices = seat(Wanted(f"voices:{name}", name) for name in names[:voices])
        self.chair = self.voices[0]
        self.asked: list[Asked] = []
        self.answers: list[Message] = []
        self.tasks: dict[Step, str] = {}
        self.retried: dict[str, Message] = {}
        """By the id of a reply, its newer version."""
        self._texts: list[tuple[Step, list[str]]] = []
        self._conversation = conversation
        self._failing = failing
        self._lines = lines or {}

    async def ask(self, voice: Voice, brief: Brief = ANSWER) -> Message:
        shown = tuple(one.name for one in brief.shown)
        self._texts.append((brief.step, [one.message.content for one in brief.shown]))
        self.asked.append(Asked(voice.seat, brief.step, shown, len(self.answers)))
        self.tasks[brief.step] = brief.task
        await asyncio.sleep(0)
        is_failing = voice.seat in self._failing
        text = "" if is_failing else self._lines.get(brief.step, f"{voice.name} on {brief.step}.")
        message = Message(
            f"{len(self.answers):02}{voice.name}", self._conversation, 1, "T", "agent:alpha", brief.role,
            text, Status.FAILED if is_failing else Status.COMPLETE, "U", 1, voice,
            critique_of_id=brief.critique_of_id, step=brief.step, findings=read(brief, text),
        )  # fmt: skip
        self.answers.append(message)
        return message

    async def ask_all(
        self, voices: Sequence[Voice] | None = None, brief: Brief = ANSWER
    ) -> Sequence[Message]:
        return await asyncio.gather(
            *(self.ask(voice, brief) for voice in (self.voices if voices is None else voices))
        )

    async def current(self, replies: Sequence[Message]) -> Sequence[Message]:
        return [self.retried.get(reply.id, reply) for reply in replies]

    def steps(self) -> list[tuple[int, Step]]:
        return [(one.seat, one.step) for one in self.asked]

    def texts_shown(self, step: Step) -> list[list[str]]:
        return [texts for asked, texts in self._texts if asked is step]

    def asked_for(self, step: Step) -> list[Asked]:
        return [one for one in self.asked if one.step is step]


async def played(mode: str, table: ScriptedTable) -> ScriptedTable:
    async with soon():
        await council.get(mode).run(table)
    return table


async def test_quick_asks_the_first_voice_and_nobody_else():
    assert (await played("quick", ScriptedTable(1))).steps() == [(1, Step.ANSWER)]


async def test_parallel_asks_everyone_before_anyone_has_answered():
    table = await played("parallel", ScriptedTable(SEATS))
    assert table.asked == [Asked(n, Step.ANSWER, (), 0) for n in range(1, SEATS + 1)]


async def test_parallel_hears_everyone_when_one_fails():
    table = await played("parallel", ScriptedTable(3, failing=(2,)))
    assert [answer.status for answer in table.answers] == [Status.COMPLETE, Status.FAILED, Status.COMPLETE]


# ── second opinion


async def test_a_second_opinion_reads_the_answer_and_is_tied_to_it():
    table = await played("second_opinion", ScriptedTable(3))
    answer, *critiques = table.answers
    assert table.steps() == [(1, Step.ANSWER), (2, Step.CRITIQUE), (3, Step.CRITIQUE)]
    assert [one.read for one in table.asked_for(Step.CRITIQUE)] == [("Ada",), ("Ada",)]
    assert {critique.critique_of_id for critique in critiques} == {answer.id}
    assert {critique.role for critique in critiques} == {Role.CRITIC}
    assert "Ada" in table.tasks[Step.CRITIQUE]


async def test_when_the_first_voice_fails_the_next_one_answers_and_the_rest_review_that():
    table = await played("second_opinion", ScriptedTable(3, failing=(1,)))
    assert table.steps() == [(1, Step.ANSWER), (2, Step.ANSWER), (3, Step.CRITIQUE)]
    assert table.asked[-1].read == ("Bea",)


# ── brain trust


async def test_a_brain_trust_answers_unseen_by_each_other_and_the_chair_reads_all():
    table = await played("brain_trust", ScriptedTable(4))
    assert [(one.read, one.before) for one in table.asked_for(Step.ANSWER)] == [((), 0)] * 4
    [synthesis] = table.asked_for(Step.SYNTHESIS)
    assert synthesis == Asked(1, Step.SYNTHESIS, ("Ada", "Bea", "Cleo", "Dora"), 4)
    assert table.answers[4].role is Role.SYNTHESIS


async def test_the_chair_is_told_who_is_absent_and_goes_on_without_them():
    table = await played("brain_trust", ScriptedTable(4, failing=(3,)))
    [synthesis] = table.asked_for(Step.SYNTHESIS)
    assert synthesis.read == ("Ada", "Bea", "Dora")
    assert "Absent this round, because no answer came: Cleo." in table.tasks[Step.SYNTHESIS]


async def test_with_everyone_there_nobody_is_called_absent():
    table = await played("brain_trust", ScriptedTable(3))
    assert "Absent" not in table.tasks[Step.SYNTHESIS]


async def test_the_person_says_what_the_synthesis_should_do():
    table = ScriptedTable(2)
    table.wish = "Two sentences, for a child."
    await played("brain_trust", table)
    assert table.tasks[Step.SYNTHESIS].endswith(
        "The person asks of this synthesis: Two sentences, for a child."
    )


async def test_the_outline_follows_the_synthesis_and_has_read_it():
    table = await played("brain_trust", ScriptedTable(2))
    [outline] = table.asked_for(Step.OUTLINE)
    assert outline == Asked(1, Step.OUTLINE, ("Ada", "Bea", "Ada"), 3)


async def test_a_chair_that_cannot_outline_is_not_asked_to():
    table = ScriptedTable(2)
    table.can_outline = False
    assert not (await played("brain_trust", table)).asked_for(Step.OUTLINE)


@pytest.mark.parametrize("mode", ["brain_trust", "debate", "peer_review"])
async def test_when_nobody_was_heard_there_is_nothing_to_bring_together(mode):
    table = await played(mode, ScriptedTable(3, failing=(1, 2, 3)))
    assert table.steps() == [(1, Step.ANSWER), (2, Step.ANSWER), (3, Step.ANSWER)]


# ── relay


async def test_in_a_relay_each_reads_those_before_who_said_something():
    table = await played("relay", ScriptedTable(4, failing=(2,)))
    assert [one.read for one in table.asked] == [(), ("Ada",), ("Ada",), ("Ada", "Cleo")]
    assert [one.before for one in table.asked] == [0, 1, 2, 3]


# ── debate


async def test_a_debate_has_openings_rebuttals_that_read_them_and_a_closing_that_read_both():
    table = await played("debate", ScriptedTable(2))
    assert [one.before for one in table.asked_for(Step.ANSWER)] == [0, 0]
    assert [(one.read, one.before) for one in table.asked_for(Step.REBUTTAL)] == [(("Ada", "Bea"), 2)] * 2
    [closing] = table.asked_for(Step.SYNTHESIS)
    assert closing.read == ("Ada", "Bea", "Ada", "Bea")


async def test_who_did_not_open_does_not_rebut():
    table = await played("debate", ScriptedTable(3, failing=(2,)))
    assert [one.seat for one in table.asked_for(Step.REBUTTAL)] == [1, 3]


async def test_one_opening_alone_is_no_debate_but_still_gets_a_closing():
    table = await played("debate", ScriptedTable(2, failing=(2,)))
    assert table.steps() == [(1, Step.ANSWER), (2, Step.ANSWER), (1, Step.SYNTHESIS)]


# ── peer review


def orders(table: ScriptedTable) -> list[list[str]]:
    """Whose answers each reviewer read, in its order; no answer is named."""
    return [[speaker(text) for text in texts] for texts in table.texts_shown(Step.REVIEW)]


def speaker(text: str) -> str:
    return text.split()[0]


async def test_peers_rank_the_answers_of_the_others_without_names():
    table = await played("peer_review", ScriptedTable(4))
    for review in table.asked_for(Step.REVIEW):
        assert review.read == ("Answer A", "Answer B", "Answer C")
    names = [voice.name for voice in table.voices]
    assert [sorted(order) for order in orders(table)] == [[n for n in names if n != own] for own in names]
    assert not any(name in table.tasks[Step.REVIEW] for name in names)


async def test_each_reviewer_reads_in_an_order_of_its_own_and_every_time_in_the_same():
    tables = [ScriptedTable(8), ScriptedTable(8), ScriptedTable(8, conversation="D")]
    first, again, elsewhere = [orders(await played("peer_review", table)) for table in tables]
    assert first == again
    assert first != elsewhere
    by_seat = {tuple(sorted(order)) == tuple(order) for order in first}
    assert by_seat != {True}
    places = [order.index("Ada") for order in first if "Ada" in order]
    assert len(set(places)) > 1


async def test_a_candidate_that_failed_is_neither_ranked_nor_asked_to_rank():
    table = await played("peer_review", ScriptedTable(4, failing=(2,)))
    assert [one.seat for one in table.asked_for(Step.REVIEW)] == [1, 3, 4]
    assert {one.read for one in table.asked_for(Step.REVIEW)} == {("Answer A", "Answer B")}
    assert all("Bea" not in order for order in orders(table))


async def test_of_two_answers_each_is_judged_and_none_is_ranked():
    table = await played("peer_review", ScriptedTable(2, lines={Step.REVIEW: "Ranking: A"}))
    assert [one.read for one in table.asked_for(Step.REVIEW)] == [("Answer A",), ("Answer A",)]
    assert "Ranking" not in table.tasks[Step.REVIEW]
    assert "Mean place" not in table.tasks[Step.SYNTHESIS]


async def test_the_chair_has_the_mean_places_in_view():
    table = await played("peer_review", ScriptedTable(3, lines={Step.REVIEW: "Ranking: B > A"}))
    places: dict[str, list[int]] = {}
    for second, first in orders(table):
        places.setdefault(first, []).append(1)
        places.setdefault(second, []).append(2)
    means = sorted((sum(some) / len(some), name) for name, some in places.items())
    told = re.search(r"Mean place, 1 is best: (.+)\.$", table.tasks[Step.SYNTHESIS], re.MULTILINE)
    assert told is not None
    assert sorted(told[1].split(", ")) == sorted(f"{name} {mean:.1f}" for mean, name in means)
    assert told[1].startswith(
        tuple(f"{name} {means[0][0]:.1f}" for mean, name in means if mean == means[0][0])
    )


async def test_rankings_nobody_can_read_are_left_out():
    table = await played("peer_review", ScriptedTable(2))
    assert "Mean place" not in table.tasks[Step.SYNTHESIS]


# ── the list of modes


@pytest.mark.parametrize(
    ("mode", "voices"),
    [("quick", 0), ("quick", 2), ("parallel", 0), ("parallel", 9), ("debate", 1), ("second_opinion", 1)],
)
def test_a_mode_refuses_a_table_it_cannot_seat(mode, voices):
    with pytest.raises(Invalid, match=f"this turn has {voices}"):
        council.get(mode).must_seat(voices)


@pytest.mark.parametrize(("mode", "voices"), [("quick", 1), ("parallel", 1), ("parallel", 8), ("relay", 2)])
def test_a_mode_takes_a_table_it_can_seat(mode, voices):
    assert council.get(mode).must_seat(voices) is None


def test_an_unknown_mode_is_told_which_there_are():
    with pytest.raises(Invalid, match="The modes are: quick, parallel, second_opinion"):
        council.get("shouting")


def test_every_mode_goes_by_its_own_name():
    assert {name: mode.name for name, mode in council.MODES.items()} == {name: name for name in council.MODES}
