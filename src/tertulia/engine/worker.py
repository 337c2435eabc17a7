"""The worker: claims jobs and does them, one at a time, until the server stops."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tertulia.core.errors import TertuliaError
from tertulia.engine.jobs import JOBS
from tertulia.engine.means import Means
from tertulia.store import jobs

LEASE_MS = 120_000
LOOK_AGAIN_S = 30.0
"""For jobs that wait for their time; new ones ring the bell."""


class Worker:
    def __init__(self, means: Means, node: str) -> None:
        self._means = means
        self._node = node
        self._bell = asyncio.Event()

    def ring(self) -> None:
        """Something was committed that may have left a job."""
        self._bell.set()

    async def run(self) -> None:
        while True:
            self._bell.clear()
            if not await self.work():
                await self._rest()

    async def _rest(self) -> None:
        # Not wait_for: on Python 3.11 it swallows a cancellation that comes with the bell.
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_AGAIN_S):
                await self._bell.wait()

    async def work(self) -> bool:
        """Does one job; False when there was none."""
        job = await self._means.db.write(lambda tx: jobs.claim(tx, self._node, LEASE_MS))
        if job is None:
            return False
        try:
            await JOBS[job.kind](self._means, job.payload)
        except (TertuliaError, KeyError) as error:
            reason = f"{type(error).__name__}: {error}"
            await self._means.db.write(lambda tx: jobs.fail(tx, job.id, reason))
        except Exception as error:  # noqa: BLE001 - a job that breaks is set aside, the worker goes on
            incident = self._means.report(error)
            await self._means.db.write(lambda tx: jobs.fail(tx, job.id, f"incident {incident}"))
        else:
            await self._means.db.write(lambda tx: jobs.finish(tx, job.id))
        return True
