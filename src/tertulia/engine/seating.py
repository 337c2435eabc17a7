"""The table of a running turn: seats the voices and asks them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

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
        self._is_stopped = False
        self.replies: list[Message] = []

    @property
    def voices(self) -> Sequence[Voice]:
        return self._live.turn.table

    async def ask(self, voice: Voice) -> Message:
        ask = Ask(self._means, self._live, self._gathered, voice, Role.ADVISOR)
        self._asks[ask.id] = ask
        if self._is_stopped:
            ask.stop()
        try:
            message = await ask.run()
        finally:
            del self._asks[ask.id]
        self.replies.append(message)
        return message

    async def ask_all(self) -> Sequence[Message]:
        return await asyncio.gather(*(self.ask(voice) for voice in self.voices))

    def stop(self, reply_id: str | None) -> None:
        """Stops one reply, or all of them and those that would still come."""
        if reply_id is None:
            self._is_stopped = True
        for ask in tuple(self._asks.values()):
            if reply_id in (None, ask.id):
                ask.stop()

    def interrupt(self) -> None:
        for ask in tuple(self._asks.values()):
            ask.interrupt()

    @property
    def is_stopped(self) -> bool:
        return self._is_stopped
