"""Heartbeat: marks this node's turns as alive, and ends the turns of nodes that have fallen silent.

It runs only where several nodes share a database. A single node recovers at its start (recovery.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tertulia.core.errors import TertuliaError
from tertulia.engine import models
from tertulia.engine.dependencies import Dependencies
from tertulia.engine.node_relay import NodeRelay
from tertulia.engine.recovery import recover
from tertulia.engine.replays import Replays
from tertulia.store import turns

EVERY_S = 4.0
"""Two beats may fail before other nodes consider this one dead (recovery.SILENT_MS)."""


class Heartbeat:
    def __init__(
        self,
        dependencies: Dependencies,
        wake_workers: Callable[[], None],
        relay: NodeRelay,
        replays: Replays,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._dependencies = dependencies
        self._wake_workers = wake_workers
        self._relay = relay
        self._replays = replays
        self._sleep = sleep

    async def run(self) -> None:
        while self._dependencies.db.is_shared:
            await self._sleep(EVERY_S)
            try:
                await self.beat()
            except TertuliaError as error:
                # The database may be back at the next beat.
                self._dependencies.report(error)

    async def beat(self) -> None:
        if next(self._dependencies.live.running(), None) is not None:
            await self._dependencies.db.write(turns.beat)
        if await recover(self._dependencies.db):
            self._wake_workers()
        await models.reread(self._dependencies)
        await self._relay.reconcile()
        await self._replays.resume()
