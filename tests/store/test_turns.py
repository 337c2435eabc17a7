"""Turns: opened once, changed in state, and never out of a final state."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tertulia.core.errors import NotFound, TurnReused
from tertulia.core.turns import Purpose, Turn, TurnState
from tertulia.core.users import Actor
from tertulia.store import branches, conversations, messages, turns
from tertulia.store.database import Database, Tx
from tests.store.samples import answered, conversation, opened, reply, turn
from tests.store_fixtures import Clock, Ids, Watch


async def test_a_turn_reads_back_as_it_was_opened(db: Database, ada: Actor, watch: Watch) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    async with watch(ada):
        turn_ = await db.write(
            lambda tx: opened(tx, ada, chat.id, purpose=Purpose.RETRY, message_id="a reply")
        )
    assert await db.read(lambda tx: turns.get(tx, ada, turn_.id)) == turn_


async def test_a_repeated_turn_is_found_for_the_user_who_sent_it(
    db: Database, ada: Actor, bob: Actor
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    turn_ = await db.write(lambda tx: opened(tx, ada, chat.id))
    assert await db.read(lambda tx: turns.find_opened(tx, ada.user_id, turn_.id)) == (
        turn_,
        "fingerprint of Why?",
    )
    assert await db.read(lambda tx: turns.find_opened(tx, bob.user_id, turn_.id)) is None


async def test_a_turn_sent_several_times_at_once_is_opened_once(db: Database, ada: Actor, ids: Ids) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    turn_id = ids()

    def open_once(tx: Tx) -> Turn:
        before = turns.find_opened(tx, ada.user_id, turn_id)
        return before[0] if before else opened(tx, ada, chat.id, id=turn_id)

    opened_turns = await asyncio.gather(*(db.write(open_once) for _ in range(8)))
    assert set(opened_turns) == {opened_turns[0]}
    assert (await db.read(lambda tx: conversations.get(tx, ada, chat.id))).round_count == 1


async def test_a_turn_id_cannot_be_used_again(db: Database, ada: Actor, bob: Actor, watch: Watch) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    other = await db.write(lambda tx: conversation(tx, bob))
    turn_ = await db.write(lambda tx: opened(tx, ada, chat.id))
    async with watch.untouched():
        with pytest.raises(TurnReused):
            await db.write(lambda tx: opened(tx, bob, other.id, id=turn_.id))


async def test_a_branch_waits_while_a_round_it_inherits_is_being_answered(db: Database, ada: Actor) -> None:
    def branch(tx: Tx, parent_id: str, at_round: int, message_id: str | None = None) -> str:
        branch_ = branches.add(tx, ada, parent_id, at_round=at_round, message_id=message_id)
        return branch_.id

    def add_tree(tx: Tx) -> tuple[Turn, dict[str, bool]]:
        root = conversation(tx, ada).id
        answered(tx, ada, root)
        running = opened(tx, ada, root)
        answer = reply(tx, running)
        messages.add(tx, answer)
        below = branch(tx, root, 2)
        expected = {
            root: False,
            below: True,
            branch(tx, below, 2): True,
            branch(tx, root, 1): False,
            branch(tx, root, 2, answer.id): False,
        }
        return running, expected

    def read_inheriting(tx: Tx) -> dict[str, bool]:
        return {id: turns.is_inheriting(tx, id) for id in expected}

    running, expected = await db.write(add_tree)
    assert await db.read(read_inheriting) == expected
    await db.write(lambda tx: turns.set_state(tx, running.id, TurnState.COMPLETE))
    assert not any((await db.read(read_inheriting)).values())


async def test_the_turns_of_rounds_include_inherited_ones(db: Database, ada: Actor) -> None:
    def add_branch(tx: Tx) -> tuple[list[str], list[str]]:
        parent = conversation(tx, ada)
        first, _ = answered(tx, ada, parent.id, "One?")
        answered(tx, ada, parent.id, "Two?")
        branch = branches.add(tx, ada, parent.id, at_round=1)
        own = opened(tx, ada, branch.id, "Another two?")
        rounds = messages.page(tx, ada, branch.id).rounds
        return [turn.id for turn in turns.of_rounds(tx, rounds)], [first.id, own.id]

    turn_ids, expected = await db.write(add_branch)
    assert turn_ids == expected


async def test_unfinished_turns_are_listed_running_first_then_by_age(db: Database, ada: Actor) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    first, second, third = [
        await db.write(lambda tx, state=state: opened(tx, ada, chat.id, state=state))
        for state in (TurnState.QUEUED, TurnState.RUNNING, TurnState.QUEUED)
    ]
    unfinished = await db.read(lambda tx: turns.waiting_or_running(tx, chat.id))
    assert [turn.id for turn in unfinished] == [second.id, first.id, third.id]
    assert await db.read(lambda tx: turns.count_unfinished(tx, ada.user_id)) == 3
    assert set(await db.read(turns.unfinished)) == {first, second, third}


async def test_each_change_of_a_turn_s_state_is_emitted(
    db: Database, ada: Actor, clock: Clock, watch: Watch
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    turn_ = await db.write(lambda tx: opened(tx, ada, chat.id, state=TurnState.QUEUED))
    async with watch() as new_events:
        running = await db.write(lambda tx: turns.set_state(tx, turn_.id, TurnState.RUNNING))
        clock.forward(7)
        ended = await db.write(lambda tx: turns.set_state(tx, turn_.id, TurnState.COMPLETE))
    assert running == replace(turn_, state=TurnState.RUNNING)
    assert ended == replace(turn_, state=TurnState.COMPLETE, finished_at=clock.now)
    assert [(event.noun, event.id) for event in new_events] == [("turn", turn_.id)] * 2
    assert await db.read(lambda tx: turns.waiting_or_running(tx, chat.id)) == ()
    assert await db.read(lambda tx: turns.count_unfinished(tx, ada.user_id)) == 0


@pytest.mark.parametrize("end", [state for state in TurnState if state.is_over])
async def test_a_finished_turn_keeps_its_state(
    db: Database, ada: Actor, watch: Watch, end: TurnState
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    turn_ = await db.write(lambda tx: opened(tx, ada, chat.id))
    ended = await db.write(lambda tx: turns.set_state(tx, turn_.id, end))
    async with watch.untouched():
        for state in TurnState:
            assert await db.write(lambda tx, state=state: turns.set_state(tx, turn_.id, state)) == ended


async def test_an_unknown_turn_is_not_found(db: Database, ada: Actor) -> None:
    with pytest.raises(NotFound):
        await db.write(lambda tx: turns.set_state(tx, "unknown", TurnState.STOPPED))


async def test_rounds_opened_at_once_get_consecutive_numbers(db: Database, ada: Actor, watch: Watch) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    async with watch(ada):
        opened_turns = await asyncio.gather(
            *(db.write(lambda tx: opened(tx, ada, chat.id)) for _ in range(12))
        )
    assert sorted(turn.round_number for turn in opened_turns) == list(range(1, 13))


async def test_the_turns_of_a_node_without_heartbeat_are_abandoned(
    db: Database, ada: Actor, clock: Clock
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))

    def open_on(tx: Tx, node: str) -> str:
        turn_ = turn(tx, ada, chat.id)
        turns.open(tx, turn_, "f", node)
        return turn_.id

    silent_id = await db.write(lambda tx: open_on(tx, "one"))
    await db.write(lambda tx: open_on(tx, "two"))
    clock.forward(10_000)
    await db.write(lambda tx: turns.beat(tx, "two"))
    abandoned = await db.read(lambda tx: turns.abandoned(tx, clock.now - 5_000))
    assert [abandoned_turn.id for abandoned_turn in abandoned] == [silent_id]


async def test_a_turn_is_not_taken_over_after_a_late_heartbeat_of_its_node(
    db: Database, ada: Actor, clock: Clock
) -> None:
    """It was found abandoned, but its node sent a heartbeat before another node took the turn over."""
    chat = await db.write(lambda tx: conversation(tx, ada))
    turn_ = await db.write(lambda tx: opened(tx, ada, chat.id))
    clock.forward(20_000)
    silent_since = clock.now - 15_000
    assert [turn.id for turn in await db.read(lambda tx: turns.abandoned(tx, silent_since))] == [turn_.id]
    await db.write(turns.beat)
    assert not await db.write(lambda tx: turns.take_over(tx, turn_.id, silent_since))
