"""The table of a running turn: seats the voices and asks them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tertulia.core.messages import Message, Role
from tertulia.core.voices import Voice
from tertulia.engine.ask import Ask
from tertulia.engine.gather import Gathered
from tertulia.engine.live import LiveTurn
from tertulia.engine.means import Means


class Seating:
    """What a mode talks to."""

    def __init__(self, means: Means, live: LiveTurn, gathered: Gathered) -> None:
        self._means = means
        self._live = live
        self._gathered = gathered
        self._asks: dict[str, Ask] = {}
        self._end_early: Callable[[Ask], None] | None = None
        self.replies: list[Message] = []

    @property
    def voices(self) -> Sequence[Voice]:
        return self._live.turn.table

    async def ask(self, voice: Voice) -> Message:
        ask = Ask(self._means, self._live, self._gathered, voice, Role.ADVISOR)
        self._asks[ask.id] = ask
        if self._end_early:
            self._end_early(ask)
        try:
            message = await ask.run()
        finally:
            del self._asks[ask.id]
        self.replies.append(message)
        return message

    async def ask_all(self) -> Sequence[Message]:
        """Whatever happens to one, the others are heard to their end."""
        asked = await asyncio.gather(*map(self.ask, self.voices), return_exceptions=True)
        for one in asked:
            if isinstance(one, BaseException):
                raise one
        return self.replies

    def stop(self, reply_id: str | None) -> None:
        """Stops one reply, or all of them and those that would still come."""
        if reply_id is None:
            self._end(Ask.stop)
        elif reply_id in self._asks:
            self._asks[reply_id].stop()

    def is_speaking(self, reply_id: str | None) -> bool:
        return reply_id in self._asks

    def interrupt(self) -> None:
        """The server goes down."""
        self._end(Ask.interrupt)

    def _end(self, early: Callable[[Ask], None]) -> None:
        self._end_early = self._end_early or early
        for ask in tuple(self._asks.values()):
            self._end_early(ask)

    @property
    def is_stopped(self) -> bool:
        return self._end_early is Ask.stop
