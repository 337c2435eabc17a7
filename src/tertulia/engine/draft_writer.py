"""Draft writer: stores the text of running replies at least every second."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tertulia.core.errors import NotFound, TertuliaError
from tertulia.core.turns import Draft
from tertulia.engine.dependencies import Dependencies
from tertulia.store import drafts
from tertulia.store.database import Tx

EVERY_S = 0.8
"""Less than a second, with the write included."""


class DraftWriter:
    def __init__(
        self, dependencies: Dependencies, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._dependencies = dependencies
        self._sleep = sleep
        self._written: dict[str, int] = {}

    async def run(self) -> None:
        while True:
            await self._sleep(EVERY_S)
            try:
                await self.checkpoint()
            except NotFound:
                continue  # A conversation was deleted in the meantime; the next tick writes the other drafts.
            except TertuliaError as error:
                # The disk may recover before the next tick; the text is still in memory.
                self._dependencies.report(error)

    async def checkpoint(self) -> None:
        """Writes all replies that have grown since the last time, in one transaction."""
        running = [reply for live in self._dependencies.live.running() for reply in live.replies.items()]
        grown = [reply.draft() for reply_id, reply in running if self._written.get(reply_id) != reply.number]
        if grown:
            begun = set(self._written)
            await self._dependencies.db.write(lambda tx: _save(tx, grown, begun))
        self._written = {reply_id: self._written.get(reply_id, -1) for reply_id, _ in running}
        self._written.update((draft.id, draft.number) for draft in grown)


def _save(tx: Tx, grown: list[Draft], begun: set[str]) -> None:
    drafts.begin(tx, [draft for draft in grown if draft.id not in begun])
    drafts.checkpoint(
        tx, [(draft.id, draft.content, draft.thinking, draft.number) for draft in grown if draft.id in begun]
    )
