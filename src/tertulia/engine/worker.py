"""The worker: claims jobs and does them, one at a time, until the server stops. Files have one of their own.

What became of one job and the claim of the next are one transaction, and short jobs are done in it: a round
that ends leaves several, and each transaction is waited for.
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
"""Two may be missed before another node takes a job for abandoned."""
LOOK_AGAIN_S = 30.0
"""For jobs that wait for their time; new ones ring the bell."""
SHORT_JOBS = 4
"""So many are done in one transaction, for which others that write have to wait."""


@dataclass(frozen=True, slots=True)
class _JobResult:
    job: Job
    failure: str | None
    """Why it failed; None when it is done."""


@dataclass(frozen=True, slots=True)
class _Claim:
    job: Job | None
    done: int
    """So many short ones were done on the way."""
    queue: str
    """Whose was the last."""


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
        job_left: Callable[[], None] = lambda: None,
    ) -> None:
        """One kind of job can be left to another worker, which is told when a job may have left more."""
        self._dependencies = dependencies
        self._node = node
        self._known = known
        self._sleep = sleep
        self._only = only
        self._but = but
        self._job_left = job_left
        self._queue = ""
        self._bell = asyncio.Event()

    def ring(self) -> None:
        """Something was committed that may have left a job."""
        self._bell.set()

    async def run(self) -> None:
        while True:
            self._bell.clear()
            try:
                await self.work()
            except TertuliaError as error:
                # The database may be back when the worker looks again.
                self._dependencies.report(error)
            await self._rest()

    async def _rest(self) -> None:
        # Not wait_for: on Python 3.11 it swallows a cancellation that comes with the bell.
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_AGAIN_S):
                await self._bell.wait()

    async def work(self) -> bool:
        """Does what is due, one after the other; False when there was nothing."""
        claimed = await self._go_on(None)
        is_any = claimed.job is not None or claimed.done > 0
        while claimed.job is not None:
            claimed = await self._go_on(_JobResult(claimed.job, await self._held(claimed.job)))
            self._job_left()
        return is_any

    async def _go_on(self, ended: _JobResult | None) -> _Claim:
        """A short job that breaks takes back all of it; then the same again, and it is done as a long one."""
        try:
            claimed = await self._dependencies.db.write(
                partial(self._claim, ended=ended, short_jobs=SHORT_JOBS)
            )
        except (Busy, StorageFailed):
            raise
        except Exception:  # noqa: BLE001 - whatever it was, it happens again where it is written down
            claimed = await self._dependencies.db.write(partial(self._claim, ended=ended, short_jobs=0))
        self._queue = claimed.queue
        return claimed

    def _claim(self, tx: Tx, ended: _JobResult | None, short_jobs: int) -> _Claim:
        if ended is not None:
            _note(tx, ended)
        queue = self._queue
        for done in range(short_jobs):
            job = self._next(tx, queue)
            if job is None or not self._is_done_at_once(tx, job):
                return _Claim(job, done, job.queue if job else queue)
            jobs.finish(tx, job.id)
            queue = job.queue
        job = self._next(tx, queue)
        return _Claim(job, short_jobs, job.queue if job else queue)

    def _next(self, tx: Tx, queue: str) -> Job | None:
        """From the queue after the last: whoever has much to be done does not keep the others waiting."""
        return jobs.claim(tx, self._node, LEASE_MS, only=self._only, but=self._but, after=queue)

    def _is_done_at_once(self, tx: Tx, job: Job) -> bool:
        at_once = INLINE_JOBS.get(job.kind)
        return at_once is not None and at_once(self._dependencies, tx, job.payload)

    async def _held(self, job: Job) -> str | None:
        """Does it, and keeps it from other nodes for as long as that takes."""
        holding = asyncio.create_task(self._hold(job))
        try:
            return await self._do(job)
        finally:
            holding.cancel()

    async def _hold(self, job: Job) -> None:
        while True:
            await self._sleep(RENEW_S)
            with suppress(TertuliaError):
                await self._dependencies.db.write(lambda tx: jobs.renew(tx, job.id, LEASE_MS))

    async def _do(self, job: Job) -> str | None:
        """Why it failed; None when it is done."""
        if job.kind not in self._known:
            return f"There is no job of the kind {job.kind!r}."
        try:
            await self._known[job.kind](self._dependencies, job.payload)
        except TertuliaError as error:
            return f"{type(error).__name__}: {error}"
        except Exception as error:  # noqa: BLE001 - a job that breaks is set aside, the worker goes on
            return f"incident {self._dependencies.report(error)}"
        return None


def _note(tx: Tx, ended: _JobResult) -> None:
    if ended.failure is None:
        jobs.finish(tx, ended.job.id)
    else:
        jobs.fail(tx, ended.job.id, ended.failure)
