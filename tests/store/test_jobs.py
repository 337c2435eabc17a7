"""Job queue: leases, back-off, dead letters."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from tertulia.core.users import Actor
from tertulia.store import jobs
from tertulia.store.database import Database, Tx
from tertulia.store.jobs import Job
from tertulia.store.sql import sql
from tests.store.samples import conversation
from tests.store_fixtures import Clock

LEASE = 30_000


def claim(tx: Tx) -> Job | None:
    return jobs.claim(tx, "node", LEASE)


async def must_claim(db: Database, after: str = "") -> Job:
    job = await db.write(lambda tx: jobs.claim(tx, "node", LEASE, after=after))
    assert job is not None
    return job


async def test_jobs_are_claimed_in_the_order_they_are_due(db: Database, clock: Clock) -> None:
    await db.write(lambda tx: jobs.add(tx, "later", "{}", run_at=clock.now + 10))
    await db.write(lambda tx: jobs.add(tx, "now", "payload"))
    first = await must_claim(db)
    assert (first.kind, first.payload, first.attempts, first.run_at) == (
        "now",
        "payload",
        1,
        clock.now + LEASE,
    )
    clock.forward(9)
    assert await db.write(claim) is None
    clock.forward(1)
    assert (await must_claim(db)).kind == "later"


async def test_a_claim_can_select_or_exclude_one_kind_of_job(db: Database) -> None:
    for kind in ("long", "short", "long"):
        await db.write(lambda tx, kind=kind: jobs.add(tx, kind, ""))

    async def kinds(*, only_kind: str = "", other_than: str = "") -> list[str]:
        kinds_in_order = []
        while job := await db.write(lambda tx: jobs.claim(tx, "node", LEASE, only=only_kind, but=other_than)):
            kinds_in_order.append(job.kind)
        return kinds_in_order

    assert await kinds(other_than="long") == ["short"]
    assert await kinds(only_kind="long") == ["long", "long"]


async def test_every_waiting_queue_is_served_before_any_queue_is_served_twice(db: Database) -> None:
    """Jobs arrive at random, most of them in one queue; each claim starts after the queue served last."""
    rng = random.Random(7)
    waiting: Counter[str] = Counter()
    served_meanwhile: dict[str, set[str]] = {}
    last = ""
    for _ in range(150):
        if rng.random() < 0.6:
            queue = rng.choice("aaaaabcde")
            await db.write(lambda tx, queue=queue: jobs.add(tx, "file", "", queue=queue))
            waiting[queue] += 1
        job = await db.write(lambda tx, after=last: jobs.claim(tx, "node", LEASE, after=after))
        if job is None:
            assert not +waiting
            continue
        last = job.queue
        waiting[last] -= 1
        served_meanwhile.pop(last, None)
        for queue in +waiting:
            if queue != last:
                queues = served_meanwhile.setdefault(queue, set())
                assert last not in queues, f"{last} was served twice while {queue} waited"
                queues.add(last)


async def test_a_queue_with_a_thousand_jobs_delays_another_queue_by_one_job_at_most(db: Database) -> None:
    def add_many(tx: Tx) -> None:
        for number in range(1000):
            jobs.add(tx, "file", str(number), queue="much")

    await db.write(add_many)
    claims = [await must_claim(db)]
    await db.write(lambda tx: jobs.add(tx, "file", "a note", queue="little"))
    for _ in range(3):
        claims += [await must_claim(db, after=claims[-1].queue)]
    assert [job.payload for job in claims] == ["0", "a note", "1", "2"]


async def test_a_job_with_an_expired_lease_is_claimed_before_waiting_jobs(db: Database, clock: Clock) -> None:
    await db.write(lambda tx: jobs.add(tx, "file", "left", queue="z"))
    await must_claim(db)
    clock.forward(LEASE)
    await db.write(lambda tx: jobs.add(tx, "file", "new", queue="a"))
    assert [(await must_claim(db)).payload for _ in range(2)] == ["left", "new"]


async def test_add_once_keeps_one_of_equal_jobs_even_with_long_payloads(db: Database) -> None:
    long = "\u00e9" * 64 + "x" * 5000
    for payload in (long, long, long + "y", long[:64], long[:64], ""):
        await db.write(lambda tx, payload=payload: jobs.add_once(tx, "forget", payload))
    assert sorted([len((await must_claim(db)).payload) for _ in range(4)]) == [0, 64, 5064, 5065]
    assert await db.write(claim) is None


@pytest.mark.parametrize("kinds", [("index_file", ""), ("", "index_file")], ids=["files", "others"])
async def test_the_claim_statement_uses_the_partial_index_of_its_kinds(
    db: Database, kinds: tuple[str, str]
) -> None:
    """With fifty thousand waiting jobs, any other plan takes a hundred times as long."""
    index = "jobs_of_files" if kinds[0] else "jobs_of_others"

    def explain(tx: Tx) -> str:
        for number in range(2000):
            jobs.add(tx, "index_file" if number % 2 else "embed", str(number), queue=f"queue {number % 50}")
        tx.execute(sql("ANALYZE jobs"))
        statement = jobs.claiming(tx.skip_locked, *kinds)
        keyword = "EXPLAIN" if db.is_shared else "EXPLAIN QUERY PLAN"
        explained = sql(f"{keyword} {statement.text}")
        return str(tx.execute(explained, node="n", now=tx.now, until=tx.now, after="a"))

    plan = await db.write(explain)
    assert plan.count(index) == 3
    assert "Sort" not in plan
    assert "TEMP B-TREE" not in plan


async def test_a_finished_job_is_never_claimed_again(db: Database, clock: Clock) -> None:
    await db.write(lambda tx: jobs.add(tx, "title", ""))
    job = await must_claim(db)
    await db.write(lambda tx: jobs.finish(tx, job.id))
    clock.forward(LEASE)
    assert await db.write(claim) is None


async def test_a_key_is_accepted_once_even_after_its_job_is_done_until_pruned(
    db: Database, clock: Clock
) -> None:
    assert await db.write(lambda tx: jobs.add(tx, "cron", "", key="daily 2026-01-01"))
    assert not await db.write(lambda tx: jobs.add(tx, "cron", "", key="daily 2026-01-01"))
    job = await must_claim(db)
    await db.write(lambda tx: jobs.finish(tx, job.id))
    assert not await db.write(lambda tx: jobs.add(tx, "cron", "", key="daily 2026-01-01"))
    assert await db.write(claim) is None
    clock.forward(1)
    await db.write(lambda tx: jobs.prune(tx, clock.now))
    assert await db.write(lambda tx: jobs.add(tx, "cron", "", key="daily 2026-01-01"))


async def test_concurrent_claims_get_each_job_once(db: Database) -> None:
    for number in range(20):
        await db.write(lambda tx, number=number: jobs.add(tx, "each", str(number)))
    claims = await asyncio.gather(*(db.write(claim) for _ in range(30)))
    assert sorted(int(job.payload) for job in claims if job) == list(range(20))


async def test_a_job_can_be_claimed_again_when_its_lease_expires(db: Database, clock: Clock) -> None:
    await db.write(lambda tx: jobs.add(tx, "title", ""))
    job = await must_claim(db)
    clock.forward(LEASE - 1)
    await db.write(lambda tx: jobs.renew(tx, job.id, LEASE))
    clock.forward(LEASE - 1)
    assert await db.write(claim) is None
    clock.forward(1)
    second_claim = await must_claim(db)
    assert (second_claim.id, second_claim.attempts) == (job.id, 2)


async def test_a_failing_job_waits_longer_each_time_and_is_set_aside_after_the_third(
    db: Database, clock: Clock
) -> None:
    await db.write(lambda tx: jobs.add(tx, "title", ""))
    for wait_ms in (5_000, 30_000, LEASE):
        job = await must_claim(db)
        await db.write(lambda tx, id=job.id: jobs.fail(tx, id, "no model"))
        clock.forward(wait_ms - 1)
        assert await db.write(claim) is None
        clock.forward(1)
    assert await db.write(claim) is None
    [dead_job] = await db.read(jobs.dead_jobs)
    assert (dead_job.id, dead_job.attempts, dead_job.error) == (job.id, 3, "no model")


async def test_a_job_that_crashes_the_server_three_times_is_set_aside(db: Database, clock: Clock) -> None:
    await db.write(lambda tx: jobs.add(tx, "poison", ""))
    for _ in range(3):
        await must_claim(db)
        clock.forward(LEASE)
    assert await db.write(claim) is None
    [dead_job] = await db.read(jobs.dead_jobs)
    assert (dead_job.kind, dead_job.error) == ("poison", "The server stopped each time this was tried.")


async def test_a_job_of_a_rolled_back_transaction_does_not_exist(db: Database, ada: Actor) -> None:
    def add_and_fail(tx: Tx) -> None:
        jobs.add(tx, "title", conversation(tx, ada).id)
        raise RuntimeError("changed my mind")

    try:
        await db.write(add_and_fail)
    except RuntimeError:
        assert await db.write(claim) is None


async def test_a_worker_whose_lease_expired_cannot_change_the_job_after_another_failed_it(
    db: Database, clock: Clock
) -> None:
    """A second worker has failed the job; the first one must not change when it is retried."""
    await db.write(lambda tx: jobs.add(tx, "file", ""))
    first_claim = await must_claim(db)
    clock.forward(LEASE)
    await must_claim(db)
    await db.write(lambda tx: jobs.fail(tx, first_claim.id, "It broke."))
    await db.write(lambda tx: jobs.renew(tx, first_claim.id, LEASE * 100))
    await db.write(lambda tx: jobs.fail(tx, first_claim.id, "It broke here too."))
    clock.forward(jobs.BACK_OFF_MS * 6)
    last_claim = await must_claim(db)
    assert (last_claim.id, last_claim.attempts, last_claim.error) == (first_claim.id, 3, "It broke.")
