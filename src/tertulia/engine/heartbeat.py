"""The heartbeat: says that this node's turns are alive, and ends those of nodes that say so no more.

Only where several servers share a database; elsewhere a running turn needs no proof (recovery.py).
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
"""Two may be missed before a node is taken for dead."""


class Heartbeat:
    def __init__(
        self,
        dependencies: Dependencies,
        job_left: Callable[[], None],
        relay: NodeRelay,
        replays: Replays,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._dependencies = dependencies
        self._job_left = job_left
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
            self._job_left()
        await models.reread(self._dependencies)
        await self._relay.look()
        await self._replays.resume()
