"""Modes, against a table that only remembers who was asked when."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tertulia import council
from tertulia.core.errors import Invalid
from tertulia.core.messages import Message, Role, Status
from tertulia.core.voices import SEATS, Voice, Wanted, seat


class ScriptedTable:
    """Voices that answer when they are told to, and a list of who was asked."""

    def __init__(self, voices: int, *, failing: tuple[int, ...] = ()) -> None:
        self.voices = seat(Wanted("voices:alpha", "Alpha") for _ in range(voices))
        self.asked: list[int] = []
        self.answered: list[int] = []
        self._failing = failing
        self.is_asking = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def ask(self, voice: Voice) -> Message:
        self.asked.append(voice.seat)
        self.is_asking.set()
        await self.may_answer.wait()
        self.answered.append(voice.seat)
        status = Status.FAILED if voice.seat in self._failing else Status.COMPLETE
        return Message(f"M{voice.seat}", "C", 1, "T", "agent:alpha", Role.ADVISOR, "", status, "U", 1, voice)

    async def ask_all(self) -> Sequence[Message]:
        return await asyncio.gather(*map(self.ask, self.voices))


async def played(mode: str, table: ScriptedTable) -> list[int]:
    """Who had been asked before anyone had answered."""

    async def let_them_answer() -> list[int]:
        await table.is_asking.wait()
        asked = list(table.asked)
        table.may_answer.set()
        return asked

    async with asyncio.timeout(5):
        _, at_once = await asyncio.gather(council.get(mode).run(table), let_them_answer())
    return at_once


async def test_quick_asks_the_first_voice_and_nobody_else():
    table = ScriptedTable(1)
    assert await played("quick", table) == [1]
    assert table.answered == [1]


async def test_parallel_asks_everyone_before_anyone_has_answered():
    table = ScriptedTable(SEATS)
    assert await played("parallel", table) == list(range(1, SEATS + 1))
    assert sorted(table.answered) == list(range(1, SEATS + 1))


async def test_parallel_hears_everyone_when_one_fails():
    table = ScriptedTable(3, failing=(2,))
    await played("parallel", table)
    assert sorted(table.answered) == [1, 2, 3]


@pytest.mark.parametrize(("mode", "voices"), [("quick", 0), ("quick", 2), ("parallel", 0), ("parallel", 9)])
def test_a_mode_refuses_a_table_it_cannot_seat(mode, voices):
    with pytest.raises(Invalid, match=f"this turn has {voices}"):
        council.get(mode).must_seat(voices)


@pytest.mark.parametrize(("mode", "voices"), [("quick", 1), ("parallel", 1), ("parallel", 8)])
def test_a_mode_takes_a_table_it_can_seat(mode, voices):
    council.get(mode).must_seat(voices)


def test_an_unknown_mode_is_told_which_there_are():
    with pytest.raises(Invalid, match="The modes are: quick, parallel"):
        council.get("shouting")


def test_every_mode_goes_by_its_own_name():
    assert {name: mode.name for name, mode in council.MODES.items()} == {name: name for name in council.MODES}
