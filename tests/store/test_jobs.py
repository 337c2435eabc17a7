"""Background jobs: leases, back-off, and what is set aside."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest
from sqlalchemy import text

from tertulia.core.users import Actor
from tertulia.store import jobs
from tertulia.store.database import Database, Tx
from tertulia.store.jobs import Job
from tests.store.samples import conversation
from tests.store_fixtures import Clock

LEASE = 30_000


def claim(tx: Tx) -> Job | None:
    return jobs.claim(tx, "node", LEASE)


async def claimed(db: Database, after: str = "") -> Job:
    job = await db.write(lambda tx: jobs.claim(tx, "node", LEASE, after=after))
    assert job is not None
    return job


async def test_jobs_are_claimed_in_the_order_they_are_due(db: Database, clock: Clock) -> None:
    await db.write(lambda tx: jobs.add(tx, "later", "{}", run_at=clock.now + 10))
    await db.write(lambda tx: jobs.add(tx, "now", "payload"))
    first = await claimed(db)
    assert (first.kind, first.payload, first.attempts, first.run_at) == (
        "now",
        "payload",
        1,
        clock.now + LEASE,
    )
    clock.forward(9)
    assert await db.write(claim) is None
    clock.forward(1)
    assert (await claimed(db)).kind == "later"


async def test_a_kind_of_job_can_be_left_to_those_who_do_only_that(db: Database) -> None:
    for kind in ("long", "short", "long"):
        await db.write(lambda tx, kind=kind: jobs.add(tx, kind, ""))

    async def kinds(**which: str) -> list[str]:
        found = []
        while job := await db.write(lambda tx: jobs.claim(tx, "node", LEASE, **which)):
            found.append(job.kind)
        return found

    assert await kinds(but="long") == ["short"]
    assert await kinds(only="long") == ["long", "long"]


async def test_whoever_waits_is_served_before_anyone_is_served_twice(db: Database) -> None:
    """Jobs come in at random, most of them in one queue; each claim goes on after the last one's queue."""
    chance = random.Random(7)
    waiting: Counter[str] = Counter()
    passed_by: dict[str, set[str]] = {}
    last = ""
    for _ in range(150):
        if chance.random() < 0.6:
            queue = chance.choice("aaaaabcde")
            await db.write(lambda tx, queue=queue: jobs.add(tx, "file", "", queue=queue))
            waiting[queue] += 1
        job = await db.write(lambda tx, after=last: jobs.claim(tx, "node", LEASE, after=after))
        if job is None:
            assert not +waiting
            continue
        last = job.queue
        waiting[last] -= 1
        passed_by.pop(last, None)
        for queue in +waiting:
            if queue != last:
                served = passed_by.setdefault(queue, set())
                assert last not in served, f"{last} was served twice while {queue} waited"
                served.add(last)


async def test_one_note_comes_right_after_the_first_of_a_thousand_files(db: Database) -> None:
    def many(tx: Tx) -> None:
        for number in range(1000):
            jobs.add(tx, "file", str(number), queue="much")

    await db.write(many)
    served = [await claimed(db)]
    await db.write(lambda tx: jobs.add(tx, "file", "a note", queue="little"))
    for _ in range(3):
        served += [await claimed(db, after=served[-1].queue)]
    assert [job.payload for job in served] == ["0", "a note", "1", "2"]


async def test_what_another_node_let_go_of_does_not_wait_for_its_queue(db: Database, clock: Clock) -> None:
    await db.write(lambda tx: jobs.add(tx, "file", "left", queue="z"))
    await claimed(db)
    clock.forward(LEASE)
    await db.write(lambda tx: jobs.add(tx, "file", "new", queue="a"))
    assert [(await claimed(db)).payload for _ in range(2)] == ["left", "new"]


async def test_of_jobs_just_alike_one_waits_however_long_what_they_say(db: Database) -> None:
    long = "\u00e9" * 64 + "x" * 5000
    for payload in (long, long, long + "y", long[:64], long[:64], ""):
        await db.write(lambda tx, payload=payload: jobs.add_once(tx, "forget", payload))
    assert sorted([len((await claimed(db)).payload) for _ in range(4)]) == [0, 64, 5064, 5065]
    assert await db.write(claim) is None


@pytest.mark.parametrize("which", [("index_file", ""), ("", "index_file")], ids=["files", "others"])
async def test_a_claim_reads_an_index_of_its_own(db: Database, which: tuple[str, str]) -> None:
    """However many jobs wait: with fifty thousand, anything else takes a hundred times as long."""
    index = "jobs_of_files" if which[0] else "jobs_of_others"

    def planned(tx: Tx) -> str:
        for number in range(2000):
            jobs.add(tx, "index_file" if number % 2 else "embed", str(number), queue=f"queue {number % 50}")
        tx.execute(text("ANALYZE jobs"))
        statement = jobs.claiming(tx.skip_locked, *which)
        how = "EXPLAIN" if db.is_shared else "EXPLAIN QUERY PLAN"
        asked = text(f"{how} {statement.text}")
        return str(tx.execute(asked, node="n", now=tx.now, until=tx.now, after="a"))

    plan = await db.write(planned)
    assert plan.count(index) == 3
    assert "Sort" not in plan
    assert "TEMP B-TREE" not in plan


async def test_a_finished_job_is_gone(db: Database, clock: Clock) -> None:
    await db.write(lambda tx: jobs.add(tx, "title", ""))
    job = await claimed(db)
    await db.write(lambda tx: jobs.finish(tx, job.id))
    clock.forward(LEASE)
    assert await db.write(claim) is None


async def test_a_key_is_taken_once_even_after_it_is_done(db: Database, clock: Clock) -> None:
    assert await db.write(lambda tx: jobs.add(tx, "cron", "", key="daily 2026-01-01"))
    assert not await db.write(lambda tx: jobs.add(tx, "cron", "", key="daily 2026-01-01"))
    job = await claimed(db)
    await db.write(lambda tx: jobs.finish(tx, job.id))
    assert not await db.write(lambda tx: jobs.add(tx, "cron", "", key="daily 2026-01-01"))
    assert await db.write(claim) is None
    clock.forward(1)
    await db.write(lambda tx: jobs.prune(tx, clock.now))
    assert await db.write(lambda tx: jobs.add(tx, "cron", "", key="daily 2026-01-01"))


async def test_many_nodes_claim_each_job_once(db: Database) -> None:
    for number in range(20):
        await db.write(lambda tx, number=number: jobs.add(tx, "each", str(number)))
    taken = await asyncio.gather(*(db.write(claim) for _ in range(30)))
    assert sorted(int(job.payload) for job in taken if job) == list(range(20))


async def test_a_lease_that_runs_out_frees_the_job(db: Database, clock: Clock) -> None:
    await db.write(lambda tx: jobs.add(tx, "title", ""))
    job = await claimed(db)
    clock.forward(LEASE - 1)
    await db.write(lambda tx: jobs.renew(tx, job.id, LEASE))
    clock.forward(LEASE - 1)
    assert await db.write(claim) is None
    clock.forward(1)
    again = await claimed(db)
    assert (again.id, again.attempts) == (job.id, 2)


async def test_a_job_that_fails_waits_longer_each_time_and_is_then_set_aside(
    db: Database, clock: Clock
) -> None:
    await db.write(lambda tx: jobs.add(tx, "title", ""))
    for wait_ms in (5_000, 30_000, LEASE):
        job = await claimed(db)
        await db.write(lambda tx, id=job.id: jobs.fail(tx, id, "no model"))
        clock.forward(wait_ms - 1)
        assert await db.write(claim) is None
        clock.forward(1)
    assert await db.write(claim) is None
    [aside] = await db.read(jobs.set_aside)
    assert (aside.id, aside.attempts, aside.error) == (job.id, 3, "no model")


async def test_a_job_that_takes_the_server_down_each_time_is_set_aside(db: Database, clock: Clock) -> None:
    await db.write(lambda tx: jobs.add(tx, "poison", ""))
    for _ in range(3):
        await claimed(db)
        clock.forward(LEASE)
    assert await db.write(claim) is None
    [aside] = await db.read(jobs.set_aside)
    assert (aside.kind, aside.error) == ("poison", "The server stopped each time this was tried.")


async def test_a_job_is_there_only_if_its_cause_is(db: Database, ada: Actor) -> None:
    def cause(tx: Tx) -> None:
        jobs.add(tx, "title", conversation(tx, ada).id)
        raise RuntimeError("changed my mind")

    try:
        await db.write(cause)
    except RuntimeError:
        assert await db.write(claim) is None


async def test_who_lost_its_lease_has_no_say_in_what_another_made_of_the_job(
    db: Database, clock: Clock
) -> None:
    """The other one failed; when the job is tried next does not depend on what the first says."""
    await db.write(lambda tx: jobs.add(tx, "file", ""))
    lost = await claimed(db)
    clock.forward(LEASE)
    await claimed(db)
    await db.write(lambda tx: jobs.fail(tx, lost.id, "It broke."))
    await db.write(lambda tx: jobs.renew(tx, lost.id, LEASE * 100))
    await db.write(lambda tx: jobs.fail(tx, lost.id, "It broke here too."))
    clock.forward(jobs.BACK_OFF_MS * 6)
    again = await claimed(db)
    assert (again.id, again.attempts, again.error) == (lost.id, 3, "It broke.")
