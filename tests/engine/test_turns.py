"""Turns under concurrency and failure: which events may coincide, what may break, and how each turn ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tertulia.app import new_id
from tertulia.core.errors import Busy, NotFound, StorageFailed, StorageFull
from tertulia.core.messages import Status
from tertulia.core.tables import VoiceRef
from tertulia.core.turns import TurnState
from tertulia.engine.requests import NewTurn, RetryRequest
from tertulia.engine.turns import Turns
from tertulia.library.embedders import OnCharge, not_charged
from tertulia.library.index import read_rounds, write_at_once
from tertulia.library.search import SearchIndex
from tertulia.providers.limits import Limits
from tertulia.store import conversations, drafts, turns
from tertulia.store.database import Database, Tx
from tertulia.store.sql import sql
from tests.engine.conftest import ONCE, engine_in
from tests.patience import soon, until
from tests.timers import AGES, HOUR
from tests.upstream.scripted import Finish, Hold, KeepAlives, Say, Stall, refuses, says


async def test_a_stop_right_after_opening_leaves_no_open_request(engine, upstream):
    """The stop comes during the turn's first read, its first write or its first call."""
    upstream.plays((Say("Too late"), Stall()))
    for pause in range(24):
        opened = await engine.open("Never mind", "alpha", "beta")
        for _ in range(pause):
            await asyncio.sleep(0)
        await engine.turns.stop(engine.actor, opened.turn.id)
        assert await engine.over(opened.turn) is TurnState.STOPPED
        replies = await engine.replies(opened.turn)
        assert {reply.status for reply in replies} == {Status.STOPPED}
        assert (await engine.stored(opened.turn)).state is TurnState.STOPPED
    async with soon():
        await asyncio.gather(*(seen.closed.wait() for seen in upstream.requests))


async def test_a_stop_before_the_response_to_the_open_request_counts(engine, upstream):
    """Another device knows the turn before the sender has its response."""
    upstream.plays((Say("Too late"), Stall()))
    for _ in range(30):
        request = NewTurn(new_id(), "Never mind", (VoiceRef("voices:alpha"),))
        opened, _ = await asyncio.gather(
            engine.turns.open(engine.actor, request), stop_as_soon_as_known(engine, request.id)
        )
        assert await engine.over(opened.turn) is TurnState.STOPPED
        assert {reply.status for reply in await engine.replies(opened.turn)} <= {Status.STOPPED}
    async with soon():
        await asyncio.gather(*(seen.closed.wait() for seen in upstream.requests))


async def stop_as_soon_as_known(engine, turn_id: str) -> None:
    async with soon():
        while True:
            try:
                await engine.turns.stop(engine.actor, turn_id)
            except NotFound:
                continue
            return


async def test_a_stop_of_a_retry_counts_at_every_moment(engine, upstream):
    """A retry starts at once, so that the stop can come while it is starting."""
    upstream.plays(refuses(401))
    opened = await engine.open("Talk")
    await engine.over(opened.turn)
    upstream.plays((Say("Again"), Stall()))
    for pause in range(8):
        newest = (await engine.replies(opened.turn))[-1]
        retried = await engine.turns.retry(engine.actor, newest.id, RetryRequest(new_id()))
        for _ in range(pause):
            await asyncio.sleep(0)
        await engine.turns.stop(engine.actor, retried.turn.id)
        assert await engine.over(retried.turn) is TurnState.STOPPED
        assert (await engine.replies(opened.turn))[-1].status in (Status.STOPPED, Status.FAILED)
    async with soon():
        for seen in upstream.requests[1:]:
            await seen.closed.wait()


async def test_two_new_versions_of_one_reply_replace_each_other_in_order(engine, upstream):
    """A retried advisor leads to a new synthesis, while a person retries the synthesis itself."""
    held = asyncio.Event()
    upstream.plays(refuses(401), says("After all."), model="alpha")
    upstream.plays(refuses(401), (Say("A sum."), Hold(held), Finish()), model="gamma")
    upstream.says("Beta.", model="beta")
    chair = VoiceRef("voices:gamma")
    opened = await engine.open("Talk", "alpha", "beta", mode="brain_trust", chair=chair)
    await engine.over(opened.turn)
    failed, _, synthesis = await engine.replies(opened.turn)
    advisor = await engine.turns.retry(engine.actor, failed.id, RetryRequest(new_id()))
    await engine.said(advisor.turn, "A sum.")
    by_hand = await engine.turns.retry(engine.actor, synthesis.id, RetryRequest(new_id()))
    await engine.said(by_hand.turn, "A sum.")
    held.set()
    for turn in (advisor.turn, by_hand.turn):
        assert await engine.over(turn) is TurnState.COMPLETE
    versions = [r for r in (await engine.round(opened.turn)).messages if r.step == "synthesis"]
    replaced = [version.replaces_id for version in versions]
    assert len(versions) == 3
    assert len(set(replaced)) == 3, "no two of them replace the same one"


async def test_a_stop_counts_while_the_next_turn_leaves_the_queue(engine, upstream):
    upstream.plays((Say("First"), Finish()), (Say("Second"), Stall()))
    for pause in range(12):
        upstream.plays((Say("First"), Finish()), (Say("Second"), Stall()))
        first = await engine.open("One")
        second = await engine.open("Two", conversation_id=first.conversation.id)
        await engine.over(first.turn)
        for _ in range(pause):
            await asyncio.sleep(0)
        await engine.turns.stop(engine.actor, second.turn.id)
        assert await engine.over(second.turn) is TurnState.STOPPED
        assert (await engine.stored(second.turn)).state is TurnState.STOPPED


@pytest.mark.parametrize("script", [(Say("Ten tokens"), Stall()), (Say("Ten tokens"), KeepAlives())])
async def test_a_stalled_reply_is_interrupted_with_its_text(tmp_path, upstream, timers, script):
    upstream.plays(script, model="alpha")
    upstream.says("I go on.", model="beta")
    limits = replace(ONCE, idle_s=90, keep_alive_factor=1, total_s=AGES)
    async with engine_in(tmp_path, upstream, limits) as engine:
        opened = await engine.open("Anyone?", "alpha", "beta")
        await engine.said(opened.turn, "Ten tokens")
        live = engine.dependencies.live.find(opened.turn.id)
        assert live is not None
        await until(lambda: len(live.replies) == 1)  # Beta has finished.
        ending = asyncio.create_task(engine.over(opened.turn))
        assert await timers.move_until_done(ending) is TurnState.COMPLETE
        silent, other = await engine.replies(opened.turn)
        assert (silent.status, silent.content) == (Status.INTERRUPTED, "Ten tokens")
        assert silent.failure is not None
        assert silent.failure.code == "timeout_idle"
        assert silent.failure.message == "voices stopped sending for 90 s, so the reply ends here."
        assert (other.status, other.content) == (Status.COMPLETE, "I go on.")
        async with soon():
            await next(seen for seen in upstream.requests if seen.model == "alpha").closed.wait()


async def test_a_reply_that_never_begins_has_failed(tmp_path, upstream, timers):
    upstream.plays((Stall(),))
    async with engine_in(tmp_path, upstream, replace(ONCE, first_byte_s=300, total_s=AGES)) as engine:
        opened = await engine.open("Anyone?")
        await upstream.wait_for_request()
        ending = asyncio.create_task(engine.over(opened.turn))
        assert await timers.move_until_done(ending) is TurnState.FAILED
        [reply] = await engine.replies(opened.turn)
    assert reply.failure is not None
    assert (reply.status, reply.failure.code) == (Status.FAILED, "timeout_first_byte")
    assert reply.failure.message == "voices did not answer in 5 minutes."


async def test_a_reply_that_never_ends_is_interrupted_at_the_time_limit(tmp_path, upstream, timers):
    upstream.plays(
        (*[Say("and ")] * 3, KeepAlives(0.02, b'data: {"choices":[{"delta":{"content":"on "}}]}\n\n'))
    )
    limits = replace(ONCE, first_byte_s=AGES, idle_s=AGES, total_s=HOUR / 2)
    async with engine_in(tmp_path, upstream, limits) as engine:
        opened = await engine.open("Go on")
        await engine.said(opened.turn, "and and and on ")
        await timers.move_until_done(asyncio.create_task(engine.over(opened.turn)))
        [reply] = await engine.replies(opened.turn)
    assert reply.failure is not None
    assert (reply.status, reply.failure.code) == (Status.INTERRUPTED, "timeout_total")
    assert reply.content.startswith("and and and on ")


async def test_an_internal_error_in_one_voice_leaves_the_others_alone(engine, upstream):
    """The token counter of one model raises an error, so that its prompt cannot be assembled."""
    upstream.says("I am fine.", model="beta")
    whole = engine.dependencies.counter

    def broken(model):
        if model.model_id == "alpha":
            raise RuntimeError("nobody can count this")
        return whole(model)

    engine.replace_dependencies(counter=broken)
    opened = await engine.open("How are you?", "alpha", "beta")
    assert await engine.over(opened.turn) is TurnState.COMPLETE
    failed, fine = await engine.replies(opened.turn)
    assert failed.failure is not None
    assert (failed.status, failed.failure.code) == (Status.FAILED, "internal")
    assert "incident 1" in failed.failure.message
    assert fine.content == "I am fine."
    assert [type(error) for error in engine.incidents] == [RuntimeError]


async def test_deleting_a_conversation_stops_its_running_and_queued_turns(engine, upstream):
    upstream.plays((Say("Going on"), Stall()))
    running = await engine.open("One", "alpha", "beta")
    waiting = await engine.open("Two", conversation_id=running.conversation.id)
    await engine.said(running.turn, "Going on")
    gone = await engine.db.write(lambda tx: conversations.remove(tx, engine.actor, running.conversation.id))
    engine.turns.cancel_in(gone)
    assert await engine.over(running.turn) is TurnState.STOPPED
    assert await engine.over(waiting.turn) is TurnState.STOPPED
    assert list(engine.dependencies.live.running()) == []
    async with soon():
        await asyncio.gather(*(seen.closed.wait() for seen in upstream.requests))
    with pytest.raises(NotFound):
        await engine.stored(running.turn)
    assert engine.incidents == []


class Meanwhile:
    """An embedder that calls a function while the search asks whether it is available."""

    model, dimensions = "none", 1

    def __init__(self) -> None:
        self.happens: Callable[[], None] = lambda: None

    def unavailable_reason(self) -> str | None:
        self.happens()
        return "Not now."

    async def embed(
        self, texts: Sequence[str], *, is_query: bool = False, billed: OnCharge = not_charged
    ) -> tuple[bytes, ...]:
        raise AssertionError("it said that it cannot")

    async def close(self) -> None: ...


async def test_a_conversation_deleted_during_the_search_asks_no_model(engine, upstream):
    before = await engine.open("Where does the sea end?")
    await engine.over(before.turn)
    await engine.db.write(lambda tx: _index(tx, before.conversation.id))
    embedder = Meanwhile()
    dependencies = replace(engine.dependencies, library=SearchIndex(engine.db, embedder))
    looking = Turns(dependencies, lambda: None, engine.relay)
    wanted = new_id()
    embedder.happens = lambda: looking.cancel_in([wanted])
    project_id = before.conversation.project_id
    request = NewTurn(
        new_id(), "The sea?", (VoiceRef("voices:alpha"),), conversation_id=wanted, project_id=project_id
    )
    opened = await looking.open(engine.actor, request)
    assert await engine.over(opened.turn) is TurnState.STOPPED
    assert len(upstream.requests) == 1


def _index(tx: Tx, conversation_id: str) -> None:
    spoken = read_rounds(tx, conversation_id, 1, 1)
    assert spoken is not None
    write_at_once(tx, spoken)


async def test_a_reply_is_stored_completely_when_a_full_disk_has_space_again(engine, upstream):
    """The write of one reply is retried, and the other reply is not delayed or cut."""
    full, held = asyncio.Event(), asyncio.Event()
    long_answer = "word " * 100_000
    upstream.plays((Say("Begun. "), Hold(full), Say(long_answer), Finish()), model="alpha")
    upstream.plays((Say("Long "), Hold(held), Say("enough."), Finish()), model="beta")
    watched = Watched(engine.db)
    engine.replace_dependencies(db=watched)
    opened = await engine.open("Talk", "alpha", "beta")
    await engine.said(opened.turn, "Begun. ")
    await engine.said(opened.turn, "Long ")

    pages = await engine.db.write(lambda tx: tx.one(sql("PRAGMA page_count"))[0])
    await engine.db.write(lambda tx: tx.one(sql(f"PRAGMA max_page_count = {pages}")))
    full.set()
    async with soon():
        await watched.refused.wait()
    await engine.db.write(lambda tx: tx.one(sql("PRAGMA max_page_count = 1000000")))
    held.set()
    assert await engine.over(opened.turn) is TurnState.COMPLETE
    assert [reply.content for reply in await engine.replies(opened.turn)] == [
        f"Begun. {long_answer}",
        "Long enough.",
    ]


async def test_a_reply_that_cannot_be_stored_leaves_the_others_complete(engine, upstream):
    """The turn goes on to the end of the other reply."""
    held = [asyncio.Event(), asyncio.Event()]
    upstream.plays((Say("Lost"), Hold(held[0]), Finish()), model="alpha")
    upstream.plays((Say("Kept"), Hold(held[1]), Say(" to the end."), Finish()), model="beta")
    failing = Failing(engine.db)
    engine.replace_dependencies(db=failing)
    opened = await engine.open("Talk", "alpha", "beta")
    await engine.said(opened.turn, "Lost")
    await engine.said(opened.turn, "Kept")
    failing.fails_next = True
    held[0].set()
    async with soon():
        await failing.has_failed.wait()
    held[1].set()
    await engine.over(opened.turn)
    [reply] = await engine.replies(opened.turn)
    assert (reply.content, reply.status) == ("Kept to the end.", Status.COMPLETE)
    assert [type(error) for error in engine.incidents] == [StorageFailed]


class Failing(Database):
    """A database whose next write fails if the test says so."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.read = db.read
        self.fails_next = False
        self.has_failed = asyncio.Event()

    async def write(self, work):
        if self.fails_next:
            self.fails_next = False
            self.has_failed.set()
            raise StorageFailed("The disk cannot be written to.")
        return await self._db.write(work)


class Watched(Database):
    """A database that signals when the disk is full."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.refused = asyncio.Event()
        self.read = db.read

    async def write(self, work):
        try:
            return await self._db.write(work)
        except StorageFull:
            self.refused.set()
            raise


async def test_a_shutdown_stores_every_reply_with_the_reason(tmp_path, upstream):
    upstream.plays((Say("So far"), Stall()), model="alpha")
    upstream.plays((Stall(),), model="beta")
    async with engine_in(tmp_path, upstream) as engine:
        opened = await engine.open("Talk", "alpha", "beta")
        waiting = await engine.open("Then", conversation_id=opened.conversation.id)
        await engine.said(opened.turn, "So far")
        await upstream.wait_for_request(2)
        await engine.turns.close()
        assert (await engine.stored(opened.turn)).state is TurnState.INTERRUPTED
        replies = await engine.replies(opened.turn)
        assert [(r.status, r.content) for r in replies] == [
            (Status.INTERRUPTED, "So far"),
            (Status.INTERRUPTED, ""),
        ]
        assert {r.failure.code for r in replies if r.failure} == {"restarted"}
    async with engine_in(tmp_path, upstream) as engine:
        assert (await engine.stored(waiting.turn)).state is TurnState.INTERRUPTED
        [unheard] = await engine.replies(waiting.turn)
        assert (unheard.status, unheard.content) == (Status.INTERRUPTED, "")
        assert len(upstream.requests) == 2


async def test_a_shutdown_interrupts_a_turn_that_was_just_opened(tmp_path, upstream):
    upstream.plays((Say("On and on"), Stall()))
    for pause in range(8):
        home = tmp_path / str(pause)
        async with engine_in(home, upstream) as engine:
            opened = await engine.open("Talk")
            for _ in range(pause):
                await asyncio.sleep(0)
            async with soon():
                await engine.turns.close()
            assert (await engine.stored(opened.turn)).state is TurnState.INTERRUPTED


async def test_a_server_that_shuts_down_opens_no_turn(engine, upstream):
    await engine.turns.close()
    with pytest.raises(Busy):
        await engine.open("Too late")
    assert await engine.db.read(lambda tx: turns.unfinished(tx)) == ()


async def test_the_drafts_of_a_turn_are_removed_at_its_end(engine, upstream):
    held = asyncio.Event()
    upstream.plays((Say("Some words"), Hold(held), Finish()))
    opened = await engine.open("Talk", "alpha", "beta")
    await engine.said(opened.turn, "Some words")
    await engine.writer.checkpoint()
    assert len(await engine.db.read(lambda tx: drafts.of_turn(tx, opened.turn.id))) == 2
    held.set()
    await engine.over(opened.turn)
    assert await engine.db.read(lambda tx: drafts.of_turn(tx, opened.turn.id)) == ()


async def test_a_busy_provider_is_retried_twice(tmp_path, upstream):
    upstream.plays(refuses(503, retry_after="0.01"), refuses(503, retry_after="0.01"), says("At last."))
    async with engine_in(tmp_path, upstream, Limits(retries=2)) as engine:
        opened = await engine.open("Busy?")
        assert await engine.over(opened.turn) is TurnState.COMPLETE
    assert len(upstream.requests) == 3


async def test_the_same_request_sent_twenty_times_at_once_opens_one_turn(engine, upstream):
    request = NewTurn("01JD0000000000000000000001", "Once", (VoiceRef("voices:alpha"),))
    opened = await asyncio.gather(*(engine.turns.open(engine.actor, request) for _ in range(20)))
    assert len({one.message.id for one in opened}) == 1
    await engine.over(opened[0].turn)
    assert len(upstream.requests) == 1
