"""Background jobs: run when they are due, retried when they fail, set aside when they keep failing."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from tertulia.core.errors import Busy
from tertulia.core.events import conversation_topic
from tertulia.core.jobs import SweepDaily
from tertulia.core.models import FREE, Abilities, Model, Prices, Tier
from tertulia.core.sessions import DAY_MS, IDLE_DAYS, ClientInfo
from tertulia.engine.jobs.analyze_tables import analyze_tables
from tertulia.engine.jobs.sweep_daily import EVENTS_KEPT_MS, enqueue_sweep, sweep_daily
from tertulia.engine.jobs.title import cheapest_capable
from tertulia.engine.worker import Worker
from tertulia.store import conversations, events, jobs, sessions
from tertulia.store.database import Database
from tertulia.store.sql import sql
from tests.patience import PATIENCE_S, soon
from tests.upstream.scripted import Say, Stall


async def test_the_worker_runs_the_jobs_that_a_first_round_adds(engine, upstream):
    opened = await engine.open("What is a tertulia?")
    await engine.over(opened.turn)
    assert await engine.worker.work() is True
    await all_done(engine)
    assert await title(engine, opened) == "What is a tertulia?"
    assert await engine.db.read(jobs.dead_jobs) == ()


async def test_a_job_left_by_a_crash_is_run_by_another_worker(engine, upstream):
    """The job was claimed and never finished; its lease expires and it is due again."""
    opened = await engine.open("Still without a name")
    await engine.over(opened.turn)
    taken = await engine.db.write(lambda tx: jobs.claim(tx, "another node", lease_ms=0))
    assert taken is not None
    await all_done(engine)
    assert await title(engine, opened) == "Still without a name"


async def test_a_job_of_an_unknown_kind_fails_and_the_next_is_run(engine, upstream):
    await engine.db.write(lambda tx: jobs.add(tx, "dance", "wildly"))
    opened = await engine.open("After the dance")
    await engine.over(opened.turn)
    await all_done(engine)
    assert await title(engine, opened) == "After the dance"
    assert engine.incidents == []


async def test_an_inline_job_that_fails_is_recorded_as_a_long_one_and_the_next_is_run(engine, upstream):
    """Its failure rolls back the transaction that claimed it."""
    await engine.db.write(lambda tx: jobs.add(tx, "index_round", "no round at all"))
    opened = await engine.open("After the broken one")
    await engine.over(opened.turn)
    await all_done(engine)
    assert await title(engine, opened) == "After the broken one"
    left = sql("SELECT state, attempts, error FROM jobs WHERE payload = 'no round at all'")
    (row,) = await engine.db.read(lambda tx: tx.execute(left))
    assert (row.state, row.attempts) == ("waiting", 1)
    assert row.error.startswith("incident")


async def test_wake_wakes_a_waiting_worker(engine, upstream):
    working = asyncio.create_task(engine.worker.run())
    opened = await engine.open("Ring the bell")
    await engine.over(opened.turn)
    async with soon():
        while not await title(engine, opened):
            pass
    assert not working.done()
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)


async def test_wake_at_the_moment_of_a_cancellation_does_not_keep_the_worker_running(engine):
    for turns_of_the_loop in range(6):
        running = asyncio.create_task(engine.worker.run())
        await engine.db.write(lambda tx: None)  # behind its look for a job: from here on it rests
        await asyncio.sleep(0)
        engine.worker.wake()
        for _ in range(turns_of_the_loop):
            await asyncio.sleep(0)
        running.cancel()
        done, _ = await asyncio.wait([running], timeout=PATIENCE_S)
        assert done


async def test_a_worker_of_one_kind_leaves_other_jobs_and_wakes_their_worker(engine):
    async def read(dependencies, payload):
        await dependencies.db.write(lambda tx: jobs.add(tx, "after", payload))

    await engine.db.write(lambda tx: jobs.add(tx, "other", ""))
    await engine.db.write(lambda tx: jobs.add(tx, "read", "a book"))
    told = []
    reader = Worker(
        engine.dependencies, "node", {"read": read}, only="read", wake_workers=lambda: told.append("ring")
    )
    assert await reader.work() is True
    assert told == ["ring"]
    left = sql("SELECT kind FROM jobs WHERE state = 'waiting' ORDER BY kind")
    assert {"after", "other"} <= {row.kind for row in await engine.db.read(lambda tx: tx.execute(left))}


async def test_a_worker_goes_on_when_its_database_is_back(engine, upstream):
    opened = await engine.open("Are you there?")
    await engine.over(opened.turn)
    away = Away(engine.db)
    worker = Worker(replace(engine.dependencies, db=away), node="this one")
    working = asyncio.create_task(worker.run())
    async with soon():
        await away.was_asked.wait()
        worker.wake()
        while not await title(engine, opened):
            pass
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    assert [type(incident) for incident in engine.incidents] == [Busy]


class Away(Database):
    """A database whose first write fails."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.read = db.read
        self.was_asked = asyncio.Event()

    async def write(self, work):
        if not self.was_asked.is_set():
            self.was_asked.set()
            raise Busy("The database cannot be reached just now.")
        return await self._db.write(work)


async def test_a_job_succeeds_even_when_the_table_analysis_fails(engine):
    await analyze_tables(replace(engine.dependencies, db=WithoutAnalyze()))
    assert [type(incident) for incident in engine.incidents] == [Busy]


class WithoutAnalyze(Database):
    def __init__(self) -> None:
        """Fails without a connection."""

    async def analyze(self) -> None:
        raise Busy("The database cannot be reached just now.")


async def test_the_lease_of_a_long_job_is_renewed(engine):
    begun, done = asyncio.Event(), asyncio.Event()
    moments: asyncio.Queue[None] = asyncio.Queue()

    async def long(dependencies, payload):
        begun.set()
        await done.wait()

    async def sleep(seconds: float) -> None:
        await moments.get()

    await engine.db.write(lambda tx: jobs.add(tx, "long", ""))
    worker = Worker(engine.dependencies, "this one", {"long": long}, sleep)
    working = asyncio.create_task(worker.work())
    async with soon():
        await begun.wait()
        await engine.db.write(lambda tx: tx.execute(sql("UPDATE jobs SET run_at = 0 WHERE kind = 'long'")))
        moments.put_nowait(None)
        while not await engine.db.read(lambda tx: tx.one(sql("SELECT run_at FROM jobs")).run_at):
            pass
        assert await engine.db.write(lambda tx: jobs.claim(tx, "another", lease_ms=0)) is None
        done.set()
        assert await working is True


async def test_a_failing_job_is_an_incident_and_an_unknown_kind_is_none(engine):
    async def broken(dependencies, payload):
        raise KeyError("a mistake of ours")

    for kind in ("broken", "unknown"):
        await engine.db.write(lambda tx, kind=kind: jobs.add(tx, kind, ""))
    await Worker(engine.dependencies, "this one", {"broken": broken}).work()
    assert [type(incident) for incident in engine.incidents] == [KeyError]
    errors = await engine.db.read(lambda tx: tx.execute(sql("SELECT error FROM jobs ORDER BY kind")))
    assert [row.error for row in errors] == ["incident incident 1", "There is no job of the kind 'unknown'."]


async def test_a_conversation_whose_only_round_was_stopped_keeps_its_provisional_title(engine, upstream):
    upstream.plays((Say("So"), Stall()))
    opened = await engine.open("Never mind")
    await engine.said(opened.turn, "So")
    await engine.turns.stop(engine.actor, opened.turn.id)
    await engine.over(opened.turn)
    while await engine.worker.work():
        pass
    assert await title(engine, opened) == "Never mind"


async def test_expired_sessions_are_deleted_once_a_day(engine, upstream):
    """The sweep uses the transaction's clock, so that the test stores sessions with old times."""
    user_id = engine.actor.user_id
    for token in ("old", "young"):
        await engine.db.write(lambda tx, t=token: sessions.add(tx, user_id, t, ClientInfo("", "", "")))
    was = sql("UPDATE sessions SET last_active_at = last_active_at - :ms WHERE token_hash = 'old'")
    await engine.db.write(lambda tx: tx.execute(was, ms=(IDLE_DAYS + 1) * DAY_MS))
    for _ in range(2):  # as when the server starts twice
        await engine.db.write(enqueue_sweep)
    await all_done(engine)
    found = await engine.db.read(lambda tx: tx.execute(sql("SELECT token_hash FROM sessions")))
    assert [row.token_hash for row in found] == ["young"]
    left = sql("SELECT state, run_at FROM jobs WHERE kind = 'sweep_daily' ORDER BY id")
    states = [(row.state, row.run_at % DAY_MS) for row in await engine.db.read(lambda tx: tx.execute(left))]
    assert states == [("done", states[0][1]), ("waiting", 0)]


async def test_old_events_are_deleted_in_batches_and_a_device_that_needs_them_starts_afresh(engine, upstream):
    opened = await engine.open("What is kept?")
    await engine.over(opened.turn)
    place = conversation_topic(opened.conversation.id)
    log = await engine.db.read(lambda tx: events.after(tx, place, 0))
    was = sql("UPDATE events SET at = at - :ms WHERE place <> :place OR number < :last")
    await engine.db.write(lambda tx: tx.execute(was, ms=EVENTS_KEPT_MS + 1, place=place, last=len(log)))
    await sweep_daily(engine.dependencies, SweepDaily(), per_transaction=2)
    left = await engine.db.read(lambda tx: tx.execute(sql("SELECT place, number FROM events")))
    assert [(row.place, row.number) for row in left] == [(place, len(log))]
    assert await engine.db.read(lambda tx: events.first_number(tx, place)) == len(log)


def test_the_cheapest_capable_model_has_a_price_and_is_no_demo_or_thinking_model():
    dear = model("dear", Prices(1, 1, 900))
    cheap = model("cheap", Prices(900, 900, 5))
    unknown = model("unknown", Prices())
    thinker = model("thinker", Prices(1, 1, 1), Abilities(thinking=True))
    demo = model("demo", FREE, is_demo=True)
    assert cheapest_capable((dear, unknown, cheap, thinker, demo)) is cheap
    assert cheapest_capable((unknown, thinker, demo)) is None


def model(name: str, prices: Prices, abilities: Abilities | None = None, *, is_demo: bool = False) -> Model:
    return Model("p", name, name, 8192, 1024, Tier.FAST, abilities or Abilities(), prices, is_demo=is_demo)


async def all_done(engine) -> None:
    async with soon():
        while await engine.worker.work():
            pass


async def title(engine, opened) -> str:
    found = await engine.db.read(lambda tx: conversations.get(tx, engine.actor, opened.conversation.id))
    return found.title
