"""Several nodes on one database: each follows the turns of the others, and ends only those of a dead node."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tertulia.app import new_id
from tertulia.core.events import conversation_topic
from tertulia.core.messages import Message, Status, Step
from tertulia.core.models import ModelOverrides
from tertulia.core.tables import VoiceRef
from tertulia.core.turns import Turn, TurnState
from tertulia.core.users import Actor
from tertulia.engine.heartbeat import EVERY_S, Heartbeat
from tertulia.engine.live_turn import LiveTurn
from tertulia.engine.models import describe
from tertulia.engine.recovery import SILENT_MS, recover
from tertulia.engine.replays import Replays
from tertulia.engine.requests import RetryRequest
from tertulia.engine.turn_events import ReplyFinished
from tertulia.store import conversations, drafts, messages, turns
from tertulia.store.database import Database, Tx
from tertulia.store.sql import sql
from tests.engine.conftest import Engine, engine_in
from tests.patience import PATIENCE_S, soon
from tests.store.samples import conversation, draft, opened, person
from tests.store_fixtures import Clock, Ids, Watch
from tests.upstream.scripted import Finish, Hold, Say, Upstream, refuses, says


@pytest.fixture
def ada(db: Database) -> Actor:
    return db.write_now(lambda tx: person(tx, "Ada"))


@pytest.fixture
def turn(db: Database, ada: Actor) -> Turn:
    """A running turn of this node, with some stored text."""
    made = db.write_now(lambda tx: opened(tx, ada, conversation(tx, ada).id))
    begun = db.write_now(lambda tx: draft(tx, made))
    db.write_now(lambda tx: drafts.begin(tx, [begun]))
    db.write_now(lambda tx: drafts.checkpoint(tx, [(begun.id, "So far", "", 1)]))
    return made


@pytest.fixture
def another(postgres_url: str, clock: Clock, ids: Ids) -> Iterator[Database]:
    """Two nodes on the same PostgreSQL database."""
    made = Database.open(postgres_url, clock=clock, new_id=ids)
    yield made
    made.close()


async def state(db: Database, ada: Actor, turn: Turn) -> TurnState:
    return (await db.read(lambda tx: turns.get(tx, ada, turn.id))).state


async def test_the_turns_of_a_dead_node_end_with_their_text_on_either_database(
    db: Database, ada: Actor, turn: Turn, clock: Clock, watch: Watch
) -> None:
    clock.forward(SILENT_MS + 1)
    async with watch(ada):
        assert await recover(db) == 1
    assert await state(db, ada, turn) is TurnState.INTERRUPTED
    here = await db.read(lambda tx: messages.round(tx, turn.conversation_id, turn.round_number))
    assert (Status.INTERRUPTED, "So far") in [(reply.status, reply.content) for reply in here.replies]
    async with watch.untouched():
        assert await recover(db) == 0


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_single_server_recovers_without_waiting_for_a_heartbeat(
    db: Database, ada: Actor, turn: Turn
) -> None:
    assert await recover(db) == 1
    assert await state(db, ada, turn) is TurnState.INTERRUPTED


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_a_starting_node_leaves_the_turns_of_other_nodes_alone(
    db: Database, another: Database, ada: Actor, turn: Turn, clock: Clock, watch: Watch
) -> None:
    for _ in range(10):
        clock.forward(round(EVERY_S * 1000))
        await db.write(turns.beat)
        async with watch.untouched():
            assert await recover(another) == 0
    await another.write(turns.beat)  # its heart beats for its own turns alone
    clock.forward(SILENT_MS)
    async with watch.untouched():
        assert await recover(another) == 0
    clock.forward(1)
    assert await recover(another) == 1
    assert await state(db, ada, turn) is TurnState.INTERRUPTED


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_each_turn_of_a_dead_node_is_ended_by_one_of_the_others(
    db: Database, another: Database, turn: Turn, clock: Clock
) -> None:
    clock.forward(SILENT_MS + 1)
    assert sorted(await asyncio.gather(*(recover(node) for node in (db, another) * 3)))[-1] == 1
    here = await db.read(lambda tx: messages.round(tx, turn.conversation_id, turn.round_number))
    assert len(here.replies) == len(turn.table)


# ── two engines


class Pauses:
    """A sleep that only yields to other tasks, and signals its third call."""

    def __init__(self) -> None:
        self.count = 0
        self.are_three = asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self.count += 1
        if self.count == 3:
            self.are_three.set()
        await asyncio.sleep(0)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
async def pair(
    tmp_path: Path, upstream: Upstream, postgres_url: str, pauses: Pauses
) -> AsyncIterator[tuple[Engine, Engine]]:
    async with (
        engine_in(tmp_path / "one", upstream, url=postgres_url) as one,
        engine_in(tmp_path / "two", upstream, url=postgres_url, sleep=pauses) as two,
    ):
        yield one, two


AGE = sql("UPDATE turns SET heartbeat_at = heartbeat_at - 60000 RETURNING id")
BEATS = sql("SELECT id FROM turns WHERE heartbeat_at > :now - 30000")


async def test_a_heartbeat_renews_own_turns_and_ends_those_of_dead_nodes(
    pair: tuple[Engine, Engine], upstream: Upstream
) -> None:
    one, two = pair
    held = asyncio.Event()
    upstream.plays((Say("Begun."), Hold(held), Finish()))
    lives, dies = await one.open("Go on"), await two.open("Break off")
    await one.said(lives.turn, "Begun.")
    await two.said(dies.turn, "Begun.")
    await one.db.write(lambda tx: tx.execute(AGE))
    rung: list[bool] = []
    replays = Replays(one.dependencies, one.turns)
    await Heartbeat(one.dependencies, lambda: rung.append(True), one.relay, replays).beat()
    beating = await one.db.read(lambda tx: [row.id for row in tx.execute(BEATS, now=tx.now)])
    assert lives.turn.id in beating
    assert (await one.stored(lives.turn)).state is TurnState.RUNNING
    assert (await one.stored(dies.turn)).state is TurnState.INTERRUPTED
    assert rung == [True]
    held.set()
    assert await one.over(lives.turn) is TurnState.COMPLETE


async def test_model_overrides_on_one_node_reach_the_other(
    pair: tuple[Engine, Engine],
) -> None:
    one, two = pair
    better = await describe(one.dependencies, "voices:alpha", ModelOverrides(input_micros=7, output_micros=9))
    await Heartbeat(two.dependencies, lambda: None, two.relay, Replays(two.dependencies, two.turns)).beat()
    assert one.dependencies.providers.find("voices:alpha") == better
    assert two.dependencies.providers.find("voices:alpha") == better


async def test_a_node_that_paused_too_long_adds_nothing_to_a_turn_ended_by_another(
    pair: tuple[Engine, Engine], upstream: Upstream
) -> None:
    one, two = pair
    held = asyncio.Event()
    upstream.plays((Say("Begun."), Hold(held), Say(" And done."), Finish()))
    taken = await two.open("Sleep", "alpha", "beta")
    await two.said(taken.turn, "Begun.", voices=2)
    await one.db.write(lambda tx: tx.execute(AGE))
    assert await recover(one.db) == 1
    held.set()
    await two.over(taken.turn)
    assert [(reply.status, reply.content) for reply in await one.replies(taken.turn)] == [
        (Status.INTERRUPTED, ""),
        (Status.INTERRUPTED, ""),
    ]
    assert (await one.stored(taken.turn)).state is TurnState.INTERRUPTED
    assert two.incidents == []


async def test_rounds_of_one_conversation_wait_for_each_other_on_different_nodes(
    pair: tuple[Engine, Engine], upstream: Upstream, pauses: Pauses
) -> None:
    one, two = pair
    held = asyncio.Event()
    upstream.plays((Say("First."), Hold(held), Finish()), (Say("Second."), Finish()))
    first = await one.open("One")
    await one.said(first.turn, "First.")
    second = await two.open("Two", conversation_id=first.conversation.id)
    assert second.turn.state is TurnState.QUEUED
    async with soon():
        await pauses.are_three.wait()
    assert len(upstream.requests) == 1
    held.set()
    assert await two.over(second.turn) is TurnState.COMPLETE
    assert [reply.content for reply in await two.replies(second.turn)] == ["Second."]


async def test_a_new_round_waits_for_a_retry_opened_at_the_same_time_on_another_node(
    pair: tuple[Engine, Engine], upstream: Upstream
) -> None:
    one, two = pair
    upstream.plays(says("First."), (Say("Again."), Hold(held := asyncio.Event()), Finish()), says("Second."))
    first = await one.open("One")
    await one.over(first.turn)
    [reply] = await one.replies(first.turn)
    async with paused_commit(one, first.conversation.id) as paused:
        again = asyncio.create_task(one.turns.retry(one.actor, reply.id, RetryRequest(new_id())))
        await paused(again)
        other = asyncio.create_task(two.open("Two", conversation_id=first.conversation.id))
        await paused(other)
    assert (await again).turn.state is TurnState.RUNNING
    assert (await other).turn.state is TurnState.QUEUED
    held.set()
    assert await two.over((await other).turn) is TurnState.COMPLETE


async def test_a_retry_runs_beside_a_round_of_another_node_whose_chair_reads_it(
    pair: tuple[Engine, Engine], upstream: Upstream
) -> None:
    one, two = pair
    go_on = asyncio.Event()
    upstream.plays(refuses(401), says("After all."), says("The sum."), says("{}"), model="alpha")
    upstream.plays((Say("Begun."), Hold(go_on), Finish()), model="beta")
    first = await one.open("One", "alpha", "beta", mode="brain_trust")
    await one.said(first.turn, "Begun.")
    failed = await first_reply(two, first.turn)
    retried = await two.turns.retry(two.actor, failed.id, RetryRequest(new_id()))
    assert retried.turn.state is TurnState.RUNNING
    assert await two.over(retried.turn) is TurnState.COMPLETE
    go_on.set()
    assert await one.over(first.turn) is TurnState.COMPLETE
    assert [(r.step, r.content) for r in await one.replies(first.turn) if r.step is not Step.OUTLINE] == [
        (Step.ANSWER, "After all."),
        (Step.ANSWER, "Begun."),
        (Step.SYNTHESIS, "The sum."),
    ]
    assert "After all." in str(upstream.requests[3].body)


async def test_one_of_two_retries_on_two_nodes_continues_the_round(
    pair: tuple[Engine, Engine], upstream: Upstream
) -> None:
    one, two = pair
    go_on = asyncio.Event()
    for name in ("alpha", "beta"):
        upstream.plays(refuses(401), (Say("Again."), Hold(go_on), Finish()), model=name)
    upstream.plays(says("The sum."), says("{}"), model="gamma")
    chair = VoiceRef("voices:gamma")
    first = await one.open("One", "alpha", "beta", mode="brain_trust", chair=chair)
    assert await one.over(first.turn) is TurnState.FAILED
    both = await one.replies(first.turn)
    retried = [
        (engine, (await engine.turns.retry(engine.actor, failed.id, RetryRequest(new_id()))).turn)
        for engine, failed in zip(pair, both, strict=True)
    ]
    for engine, turn in retried:
        await engine.said(turn, "Again.")
    go_on.set()
    for engine, turn in retried:
        assert await engine.over(turn) is TurnState.COMPLETE
    replies = [r for r in (await one.round(first.turn)).messages if r.step is Step.SYNTHESIS]
    assert [reply.content for reply in replies] == ["The sum."]
    assert str(upstream.requests[4].body).count("Again.") == 2


async def test_questions_queued_on_two_nodes_behind_a_retry_keep_their_order(
    pair: tuple[Engine, Engine], upstream: Upstream, pauses: Pauses
) -> None:
    """The second question is on one node, the third on the other, which runs the retry they wait for."""
    one, two = pair
    go_on = asyncio.Event()
    upstream.plays(refuses(401), (Say("Again."), Hold(go_on), Finish()), says("Answered."))
    first = await two.open("One")
    await two.over(first.turn)
    [failed] = await two.replies(first.turn)
    retried = await two.turns.retry(two.actor, failed.id, RetryRequest(new_id()))
    await two.said(retried.turn, "Again.")
    second = await one.open("Two", conversation_id=first.conversation.id)
    third = await two.open("Three", conversation_id=first.conversation.id)
    assert (second.turn.state, third.turn.state) == (TurnState.QUEUED, TurnState.QUEUED)
    go_on.set()
    assert await two.over(third.turn) is TurnState.COMPLETE
    assert (await two.stored(second.turn)).state is TurnState.COMPLETE
    asked = [str(seen.body["messages"][-1]["content"]).split()[-1] for seen in upstream.requests[2:]]
    assert asked == ["Two", "Three"]


async def first_reply(engine: Engine, turn: Turn) -> Message:
    async with soon():
        while not (replies := await engine.replies(turn)):
            pass
    return replies[0]


@asynccontextmanager
async def paused_commit(
    engine: Engine, conversation_id: str
) -> AsyncIterator[Callable[[asyncio.Task[Any]], Awaitable[None]]]:
    """Blocks all commits in this conversation; yields a function that waits until a task is blocked."""
    held, free = threading.Event(), threading.Event()

    def hold(tx: Tx) -> None:
        tx.execute(LOCK_PLACE, place=conversation_topic(conversation_id))
        held.set()
        free.wait(PATIENCE_S)

    waiting = 0

    async def paused(task: asyncio.Task[Any]) -> None:
        nonlocal waiting
        waiting += 1
        while not task.done():
            if await engine.db.read(lambda tx: tx.one(BLOCKED).number) >= waiting:
                return

    holding = asyncio.create_task(engine.db.write(hold))
    await asyncio.to_thread(held.wait, PATIENCE_S)
    try:
        async with soon():
            yield paused
    finally:
        free.set()
        await holding


LOCK_PLACE = sql("UPDATE places SET number = number WHERE place = :place RETURNING number")
BLOCKED = sql("""
    SELECT COUNT(*) AS number FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
    WHERE NOT l.granted AND a.datname = current_database()
""")


@pytest.mark.parametrize("is_elsewhere", [False, True])
async def test_a_queued_round_can_be_stopped_on_its_node_and_from_another(
    pair: tuple[Engine, Engine], upstream: Upstream, is_elsewhere: bool
) -> None:
    one, two = pair
    held = asyncio.Event()
    upstream.plays((Say("First."), Hold(held), Finish()))
    first = await one.open("One")
    await one.said(first.turn, "First.")
    waits_on = one if is_elsewhere else two
    second = await waits_on.open("Two", conversation_id=first.conversation.id)
    await two.turns.stop(two.actor, second.turn.id)
    assert await waits_on.over(second.turn) is TurnState.STOPPED
    held.set()
    assert await one.over(first.turn) is TurnState.COMPLETE
    assert len(upstream.requests) == 1


# ── what is said on one is heard on the other


async def mirror(engine: Engine, turn: Turn, text: str, voices: int = 1) -> LiveTurn:
    """The turn as another node mirrors it, once so many replies have this text."""
    woken = asyncio.Event()
    engine.dependencies.live.feeds.watch(conversation_topic(turn.conversation_id), woken.set)
    async with soon():
        while (live := engine.dependencies.live.find(turn.id)) is None:
            await woken.wait()
            woken.clear()
    await engine.said(turn, text, voices)
    assert not live.is_here
    return live


async def test_a_reply_has_the_same_deltas_and_the_same_end_on_every_node(
    pair: tuple[Engine, Engine], upstream: Upstream
) -> None:
    one, two = pair
    held = asyncio.Event()
    long = "Ω and so on. " * 2_000  # more than one notice holds
    upstream.plays((Say("Begun."), Say(long), Hold(held), Say(" Done."), Finish()))
    opened = await one.open("Go on", "alpha", "beta")
    own = one.dependencies.live.find(opened.turn.id)
    assert own is not None
    seen = await mirror(two, opened.turn, long, voices=2)
    assert {id: reply.draft() for id, reply in seen.replies.items()} == {
        id: reply.draft() for id, reply in own.replies.items()
    }
    held.set()
    assert await two.over(opened.turn) is TurnState.COMPLETE
    finished = [event.message for event in seen.log if isinstance(event, ReplyFinished)]
    assert sorted(finished, key=lambda message: message.id) == sorted(
        await one.replies(opened.turn), key=lambda message: message.id
    )
    assert list(two.dependencies.live.mirrors()) == []


@pytest.mark.parametrize("is_one_alone", [False, True])
async def test_a_stop_on_one_node_stops_the_turn_of_another(
    pair: tuple[Engine, Engine], upstream: Upstream, is_one_alone: bool
) -> None:
    one, two = pair
    held = asyncio.Event()
    upstream.plays((Say("Begun."), Hold(held), Finish()))
    opened = await one.open("Go on", "alpha", "beta")
    seen = await mirror(two, opened.turn, "Begun.", voices=2)
    first = min(seen.replies)
    await two.turns.stop(two.actor, opened.turn.id, first if is_one_alone else None)
    if is_one_alone:
        await until(one, opened.turn, lambda live: first not in live.replies)
        held.set()
    assert await two.over(opened.turn) is (TurnState.COMPLETE if is_one_alone else TurnState.STOPPED)
    ends = {reply.id: (reply.status, reply.content) for reply in await two.replies(opened.turn)}
    assert ends[first] == (Status.STOPPED, "Begun.")
    assert set(ends.values()) == {
        (Status.STOPPED, "Begun."),
        (Status.COMPLETE if is_one_alone else Status.STOPPED, "Begun."),
    }


async def test_deleting_a_conversation_on_one_node_stops_its_turn_on_another(
    pair: tuple[Engine, Engine], upstream: Upstream
) -> None:
    one, two = pair
    held = asyncio.Event()
    upstream.plays((Say("Begun."), Hold(held), Finish()))
    opened = await one.open("Go on")
    await one.said(opened.turn, "Begun.")
    gone = await two.db.write(lambda tx: conversations.remove(tx, two.actor, opened.conversation.id))
    two.turns.cancel_in(gone)
    assert await one.over(opened.turn) is TurnState.STOPPED


async def test_a_node_that_joins_late_receives_the_running_replies(
    tmp_path: Path, upstream: Upstream, postgres_url: str
) -> None:
    held = asyncio.Event()
    upstream.plays((Say("Begun."), Hold(held), Say(" Done."), Finish()))
    async with engine_in(tmp_path / "one", upstream, url=postgres_url) as one:
        opened = await one.open("Go on")
        await one.said(opened.turn, "Begun.")
        async with engine_in(tmp_path / "two", upstream, url=postgres_url) as two:
            await two.relay.reconcile()
            seen = await mirror(two, opened.turn, "Begun.")
            held.set()
            assert await two.over(opened.turn) is TurnState.COMPLETE
            told = [event.message.content for event in seen.log if isinstance(event, ReplyFinished)]
            assert told == ["Begun. Done."]


DEAFEN = sql("""
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND query LIKE 'LISTEN%'
""")


async def test_a_node_catches_up_on_events_that_its_broken_connection_missed(
    pair: tuple[Engine, Engine], upstream: Upstream
) -> None:
    one, two = pair
    upstream.plays(says("First."), says("Second."))
    first = await one.open("One")
    await one.over(first.turn)
    place = conversation_topic(first.conversation.id)
    woken = asyncio.Event()
    watched = two.dependencies.live.feeds.watch(place, woken.set)
    await two.relay.reconcile()
    await one.db.write(lambda tx: tx.execute(DEAFEN))
    second = await one.open("Two", conversation_id=first.conversation.id)
    await one.over(second.turn)
    await two.relay.reconcile()
    async with soon():
        while not any(event.noun == "message" and "Second." in str(event.value) for event in watched.events):
            woken.clear()
            await woken.wait()
    numbers = [event.number for event in watched.events]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))


async def test_a_mirror_ends_even_when_the_end_of_its_turn_was_missed(
    pair: tuple[Engine, Engine], upstream: Upstream
) -> None:
    one, two = pair
    upstream.says("Done.")
    opened = await one.open("Be quick")
    await one.over(opened.turn)
    stale = two.dependencies.live.open(opened.turn, "a mirror")
    await two.relay.reconcile()
    assert (stale.is_over, stale.turn.state) == (True, TurnState.COMPLETE)


async def until(engine: Engine, turn: Turn, found: Callable[[LiveTurn], bool]) -> None:
    live = engine.dependencies.live.find(turn.id)
    assert live is not None
    woken = asyncio.Event()
    live.watchers.add(woken.set)
    async with soon():
        while not found(live):
            woken.clear()
            await woken.wait()
