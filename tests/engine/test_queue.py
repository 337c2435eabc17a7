"""The turn queue: questions one after another in the order of their rounds, retries at once beside them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tertulia.core.conversations import Visibility
from tertulia.core.turns import Purpose, Turn, TurnState
from tertulia.core.users import Actor, ServerRole
from tertulia.core.voices import SeatRequest, assign_seats
from tertulia.engine.queue import QueuedTurn, TurnQueue
from tests.patience import soon

ADA = Actor("U", ServerRole.ADMIN)


def waiting(
    name: str, number: int, purpose: Purpose = Purpose.ASK, state: TurnState = TurnState.QUEUED
) -> QueuedTurn:
    voices = assign_seats([SeatRequest("voices:alpha", "Alpha")])
    turn = Turn(name, "C", number, purpose, "parallel", voices, Visibility.OPEN, state, "U", number)
    return QueuedTurn(turn, ADA)


class Running:
    """Turns that end when the test says so."""

    def __init__(self) -> None:
        self.queue = TurnQueue(self._run)
        self.begun: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self._changed = asyncio.Condition()

    async def _run(self, one: QueuedTurn) -> None:
        self.begun.append(one.turn.id)
        async with self._changed:
            self._changed.notify_all()
        await self._ends.setdefault(one.turn.id, asyncio.Event()).wait()

    def end(self, *names: str) -> None:
        for name in names:
            self._ends.setdefault(name, asyncio.Event()).set()

    async def have_begun(self, names: Sequence[str]) -> None:
        async with soon(), self._changed:
            await self._changed.wait_for(lambda: self.begun == list(names))

    async def over(self) -> None:
        async with soon():
            await asyncio.wait(tuple(self.queue.tasks()))


async def test_rounds_run_in_order_of_their_number() -> None:
    running = Running()
    for name, number in (("one", 1), ("four", 4), ("two", 2), ("three", 3)):
        running.queue.add(waiting(name, number, state=TurnState.RUNNING if number == 1 else TurnState.QUEUED))
    running.queue.add(waiting("sum of one", 1, Purpose.SYNTHESIS))
    order = ["one", "two", "three", "four", "sum of one"]
    running.end(*order)
    await running.over()
    assert running.begun == order


async def test_a_retry_starts_beside_a_question_and_the_next_question_waits_for_both() -> None:
    running = Running()
    running.queue.add(waiting("one", 1, state=TurnState.RUNNING))
    running.queue.add(waiting("two", 2))
    await running.have_begun(["one"])
    running.queue.start(waiting("retry", 1, Purpose.RETRY, TurnState.RUNNING))
    await running.have_begun(["one", "retry"])
    running.end("one")
    for _ in range(20):
        await asyncio.sleep(0)
    assert running.begun == ["one", "retry"]
    running.end("retry")
    await running.have_begun(["one", "retry", "two"])
    running.end("two")
    await running.over()


async def test_a_running_question_does_not_wait_for_a_later_retry() -> None:
    running = Running()
    running.queue.add(waiting("two", 2, state=TurnState.RUNNING))
    running.queue.start(waiting("retry", 1, Purpose.RETRY, TurnState.RUNNING))
    await running.have_begun(["two", "retry"])
    running.end("two", "retry")
    await running.over()
    assert running.begun == ["two", "retry"]


async def test_a_question_removed_while_it_waits_for_a_retry_never_runs() -> None:
    running = Running()
    running.queue.start(waiting("retry", 1, Purpose.RETRY, TurnState.RUNNING))
    running.queue.add(stopped := waiting("two", 2))
    running.queue.add(waiting("three", 3))
    running.queue.remove(stopped.turn)
    running.end("retry", "three")
    await running.over()
    assert running.begun == ["retry", "three"]


async def test_cleared_turns_are_returned_and_never_run() -> None:
    running = Running()
    running.queue.add(waiting("one", 1, state=TurnState.RUNNING))
    running.queue.add(waiting("two", 2))
    await running.have_begun(["one"])
    assert [turn.id for turn in running.queue.clear_all()] == ["two"]
    running.end("one")
    await running.over()
    assert running.begun == ["one"]
