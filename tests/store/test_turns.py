"""Turns: opened once, moved on, never out of an end state."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tertulia.core.errors import NotFound, TurnReused
from tertulia.core.turns import Purpose, State, Turn
from tertulia.core.users import Actor
from tertulia.store import branches, conversations, messages, turns
from tertulia.store.database import Database, Tx
from tests.store.samples import answered, conversation, opened, reply, turn
from tests.store_fixtures import Clock, Ids, Watch


async def test_a_turn_reads_back_as_it_was_opened(db: Database, ada: Actor, watch: Watch) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    async with watch(ada):
        asked = await db.write(
            lambda tx: opened(tx, ada, made.id, purpose=Purpose.RETRY, message_id="a reply")
        )
    assert await db.read(lambda tx: turns.get(tx, ada, asked.id)) == asked


async def test_a_turn_sent_again_is_recognised_by_who_sent_it(db: Database, ada: Actor, bob: Actor) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    asked = await db.write(lambda tx: opened(tx, ada, made.id))
    assert await db.read(lambda tx: turns.find_opened(tx, ada.user_id, asked.id)) == (
        asked,
        "fingerprint of Why?",
    )
    assert await db.read(lambda tx: turns.find_opened(tx, bob.user_id, asked.id)) is None


async def test_a_turn_sent_twice_at_once_is_opened_once(db: Database, ada: Actor, ids: Ids) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    chosen = ids()

    def open_once(tx: Tx) -> Turn:
        before = turns.find_opened(tx, ada.user_id, chosen)
        return before[0] if before else opened(tx, ada, made.id, id=chosen)

    asked = await asyncio.gather(*(db.write(open_once) for _ in range(8)))
    assert set(asked) == {asked[0]}
    assert (await db.read(lambda tx: conversations.get(tx, ada, made.id))).round_count == 1


async def test_an_id_opens_one_turn(db: Database, ada: Actor, bob: Actor, watch: Watch) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    other = await db.write(lambda tx: conversation(tx, bob))
    asked = await db.write(lambda tx: opened(tx, ada, made.id))
    async with watch.untouched():
        with pytest.raises(TurnReused):
            await db.write(lambda tx: opened(tx, bob, other.id, id=asked.id))


async def test_a_branch_inherits_for_as_long_as_what_it_goes_on_from_is_being_answered(
    db: Database, ada: Actor
) -> None:
    def branch(tx: Tx, parent_id: str, at_round: int, message_id: str | None = None) -> str:
        made = branches.add(tx, ada, parent_id, at_round=at_round, message_id=message_id)
        return made.id

    def grow(tx: Tx) -> tuple[Turn, dict[str, bool]]:
        root = conversation(tx, ada).id
        answered(tx, ada, root)
        running = opened(tx, ada, root)
        said = reply(tx, running)
        messages.add(tx, said)
        below = branch(tx, root, 2)
        expected = {
            root: False,
            below: True,
            branch(tx, below, 2): True,
            branch(tx, root, 1): False,
            branch(tx, root, 2, said.id): False,
        }
        return running, expected

    def inheriting(tx: Tx) -> dict[str, bool]:
        return {id: turns.is_inheriting(tx, id) for id in expected}

    running, expected = await db.write(grow)
    assert await db.read(inheriting) == expected
    await db.write(lambda tx: turns.set_state(tx, running.id, State.COMPLETE))
    assert not any((await db.read(inheriting)).values())


async def test_the_turns_of_rounds_come_through_the_lineage_too(db: Database, ada: Actor) -> None:
    def branched(tx: Tx) -> tuple[list[str], list[str]]:
        parent = conversation(tx, ada)
        first, _ = answered(tx, ada, parent.id, "One?")
        answered(tx, ada, parent.id, "Two?")
        branch = branches.add(tx, ada, parent.id, at_round=1)
        own = opened(tx, ada, branch.id, "Another two?")
        rounds = messages.page(tx, ada, branch.id).rounds
        return [turn.id for turn in turns.of_rounds(tx, rounds)], [first.id, own.id]

    found, wanted = await db.write(branched)
    assert found == wanted


async def test_turns_stand_in_line(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    first, second, third = [
        await db.write(lambda tx, state=state: opened(tx, ada, made.id, state=state))
        for state in (State.QUEUED, State.RUNNING, State.QUEUED)
    ]
    line = await db.read(lambda tx: turns.waiting_or_running(tx, made.id))
    assert [one.id for one in line] == [second.id, first.id, third.id]
    assert await db.read(lambda tx: turns.count_unfinished(tx, ada.user_id)) == 3
    assert set(await db.read(turns.unfinished)) == {first, second, third}


async def test_a_turn_moves_on_and_is_told(db: Database, ada: Actor, clock: Clock, watch: Watch) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    asked = await db.write(lambda tx: opened(tx, ada, made.id, state=State.QUEUED))
    async with watch() as news:
        running = await db.write(lambda tx: turns.set_state(tx, asked.id, State.RUNNING))
        clock.forward(7)
        ended = await db.write(lambda tx: turns.set_state(tx, asked.id, State.COMPLETE))
    assert running == replace(asked, state=State.RUNNING)
    assert ended == replace(asked, state=State.COMPLETE, finished_at=clock.now)
    assert [(event.noun, event.id) for event in news] == [("turn", asked.id)] * 2
    assert await db.read(lambda tx: turns.waiting_or_running(tx, made.id)) == ()
    assert await db.read(lambda tx: turns.count_unfinished(tx, ada.user_id)) == 0


@pytest.mark.parametrize("end", [state for state in State if state.is_over])
async def test_a_turn_that_is_over_stays_as_it_ended(
    db: Database, ada: Actor, watch: Watch, end: State
) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    asked = await db.write(lambda tx: opened(tx, ada, made.id))
    ended = await db.write(lambda tx: turns.set_state(tx, asked.id, end))
    async with watch.untouched():
        for state in State:
            assert await db.write(lambda tx, state=state: turns.set_state(tx, asked.id, state)) == ended


async def test_an_unknown_turn_is_not_found(db: Database, ada: Actor) -> None:
    with pytest.raises(NotFound):
        await db.write(lambda tx: turns.set_state(tx, "unknown", State.STOPPED))


async def test_rounds_opened_at_once_get_consecutive_numbers(db: Database, ada: Actor, watch: Watch) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    async with watch(ada):
        asked = await asyncio.gather(*(db.write(lambda tx: opened(tx, ada, made.id)) for _ in range(12)))
    assert sorted(one.round_number for one in asked) == list(range(1, 13))


async def test_the_turns_of_a_silent_node_are_found(db: Database, ada: Actor, clock: Clock) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))

    def open_on(tx: Tx, node: str) -> str:
        asked = turn(tx, ada, made.id)
        turns.open(tx, asked, "f", node)
        return asked.id

    silent = await db.write(lambda tx: open_on(tx, "one"))
    await db.write(lambda tx: open_on(tx, "two"))
    clock.forward(10_000)
    await db.write(lambda tx: turns.beat(tx, "two"))
    found = await db.read(lambda tx: turns.abandoned(tx, clock.now - 5_000))
    assert [one.id for one in found] == [silent]


async def test_a_turn_whose_node_spoke_at_the_last_moment_is_not_taken_over(
    db: Database, ada: Actor, clock: Clock
) -> None:
    """It was found abandoned, and before anyone took it its node was heard of again."""
    made = await db.write(lambda tx: conversation(tx, ada))
    asked = await db.write(lambda tx: opened(tx, ada, made.id))
    clock.forward(20_000)
    silent_since = clock.now - 15_000
    assert [turn.id for turn in await db.read(lambda tx: turns.abandoned(tx, silent_since))] == [asked.id]
    await db.write(turns.beat)
    assert not await db.write(lambda tx: turns.take_over(tx, asked.id, silent_since))
