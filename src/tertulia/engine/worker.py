"""Worker: claims jobs from the queue and runs them, one at a time; the jobs of files have their own worker.

The result of one job and the claim of the next are written in one transaction, and short jobs run within it:
the end of a round adds several jobs, and each transaction costs a wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from tertulia.core.errors import Busy, StorageFailed, TertuliaError
from tertulia.engine.dependencies import Dependencies
from tertulia.engine.jobs import INLINE_JOBS, JOBS, JobFunction
from tertulia.store import jobs
from tertulia.store.database import Tx
from tertulia.store.jobs import Job

LEASE_MS = 120_000
RENEW_S = 40.0
"""Two renewals may fail before another node takes the job."""
POLL_S = 30.0
"""How often the worker looks for jobs that have become due; new ones wake it."""
SHORT_JOBS = 4
"""The most short jobs in one transaction, since other writers wait for it."""


@dataclass(frozen=True, slots=True)
class _JobResult:
    job: Job
    failure: str | None
    """Why the job failed; None if it is done."""


@dataclass(frozen=True, slots=True)
class _Claim:
    job: Job | None
    done: int
    """How many short jobs were done before this one."""
    queue: str
    """The queue of the last job."""


class Worker:
    def __init__(
        self,
        dependencies: Dependencies,
        node: str,
        known: Mapping[str, JobFunction] = JOBS,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        *,
        only: str = "",
        but: str = "",
        wake_workers: Callable[[], None] = lambda: None,
    ) -> None:
        """`only` and `but` limit the worker to one kind of job, or exclude one. After each job it wakes the
        other workers, since the job may have added more."""
        self._dependencies = dependencies
        self._node = node
        self._known = known
        self._sleep = sleep
        self._only = only
        self._but = but
        self._wake_workers = wake_workers
        self._queue = ""
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Called after a commit that may have added a job."""
        self._woken.set()

    async def run(self) -> None:
        while True:
            self._woken.clear()
            try:
                await self.work()
            except TertuliaError as error:
                # The database may be back at the next attempt.
                self._dependencies.report(error)
            await self._wait()

    async def _wait(self) -> None:
        # Not wait_for: on Python 3.11 it swallows a cancellation that comes at the same moment as the event.
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_S):
                await self._woken.wait()

    async def work(self) -> bool:
        """Runs the jobs that are due, one after the other; False if there were none."""
        claim = await self._claim_next(None)
        has_worked = claim.job is not None or claim.done > 0
        while claim.job is not None:
            claim = await self._claim_next(_JobResult(claim.job, await self._run_leased(claim.job)))
            self._wake_workers()
        return has_worked

    async def _claim_next(self, result: _JobResult | None) -> _Claim:
        """If a short job fails, its transaction is rolled back; the job is claimed again as a long one."""
        try:
            claim = await self._dependencies.db.write(
                partial(self._claim, result=result, short_jobs=SHORT_JOBS)
            )
        except (Busy, StorageFailed):
            raise
        except Exception:  # noqa: BLE001 - it happens again in _run, which records it
            claim = await self._dependencies.db.write(partial(self._claim, result=result, short_jobs=0))
        self._queue = claim.queue
        return claim

    def _claim(self, tx: Tx, result: _JobResult | None, short_jobs: int) -> _Claim:
        if result is not None:
            _record(tx, result)
        queue = self._queue
        for done in range(short_jobs):
            job = self._next(tx, queue)
            if job is None or not self._run_inline(tx, job):
                return _Claim(job, done, job.queue if job else queue)
            jobs.finish(tx, job.id)
            queue = job.queue
        job = self._next(tx, queue)
        return _Claim(job, short_jobs, job.queue if job else queue)

    def _next(self, tx: Tx, queue: str) -> Job | None:
        """The next job, from the queue after this one: a long queue does not delay the others."""
        return jobs.claim(tx, self._node, LEASE_MS, only=self._only, but=self._but, after=queue)

    def _run_inline(self, tx: Tx, job: Job) -> bool:
        run = INLINE_JOBS.get(job.kind)
        return run is not None and run(self._dependencies, tx, job.payload)

    async def _run_leased(self, job: Job) -> str | None:
        """Runs a job, and renews its lease for as long as that takes."""
        renewing = asyncio.create_task(self._renew(job))
        try:
            return await self._run(job)
        finally:
            renewing.cancel()

    async def _renew(self, job: Job) -> None:
        while True:
            await self._sleep(RENEW_S)
            with suppress(TertuliaError):
                await self._dependencies.db.write(lambda tx: jobs.renew(tx, job.id, LEASE_MS))

    async def _run(self, job: Job) -> str | None:
        """Why the job failed; None if it is done."""
        if job.kind not in self._known:
            return f"There is no job of the kind {job.kind!r}."
        try:
            await self._known[job.kind](self._dependencies, job.payload)
        except TertuliaError as error:
            return f"{type(error).__name__}: {error}"
        except Exception as error:  # noqa: BLE001 - a broken job is set aside, and the worker goes on
            return f"incident {self._dependencies.report(error)}"
        return None


def _record(tx: Tx, result: _JobResult) -> None:
    if result.failure is None:
        jobs.finish(tx, result.job.id)
    else:
        jobs.fail(tx, result.job.id, result.failure)
