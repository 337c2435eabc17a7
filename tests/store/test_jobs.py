"""Background jobs: leases, back-off, and what is set aside."""

from __future__ import annotations

import asyncio

from tertulia.core.users import Actor
from tertulia.store import jobs
from tertulia.store.database import Database, Tx
from tertulia.store.jobs import Job
from tests.store.samples import conversation
from tests.store_fixtures import Clock

LEASE = 30_000


def claim(tx: Tx) -> Job | None:
    return jobs.claim(tx, "node", LEASE)


async def claimed(db: Database) -> Job:
    job = await db.write(claim)
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
