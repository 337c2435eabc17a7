"""Turn queue: the questions of a conversation run one after another; a retry starts at once, beside them.

Each conversation has one queue on each node. A question waits for the questions before it, and for the
retries that run when it is the first in the queue. A retry waits for nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from itertools import chain

from tertulia.core.turns import Purpose, Turn, TurnState
from tertulia.core.users import Actor


@dataclass(frozen=True, slots=True)
class QueuedTurn:
    turn: Turn
    actor: Actor
    excluded_ids: frozenset[str] = frozenset()
    """Ids of what the person removed from the context before asking again."""


class TurnQueue:
    def __init__(self, run: Callable[[QueuedTurn], Awaitable[None]]) -> None:
        self._run = run
        self._queued: dict[str, list[QueuedTurn]] = {}
        self._runners: dict[str, asyncio.Task[None]] = {}
        self._beside: dict[str, set[asyncio.Task[None]]] = {}

    def add(self, new: QueuedTurn) -> None:
        conversation_id = new.turn.conversation_id
        queued = self._queued.setdefault(conversation_id, [])
        queued.insert(_position(queued, new.turn), new)
        if conversation_id not in self._runners:
            self._runners[conversation_id] = asyncio.create_task(self._run_queued(conversation_id))

    def start(self, queued: QueuedTurn) -> None:
        """Runs a turn now, beside the other turns of its conversation."""
        beside = self._beside.setdefault(queued.turn.conversation_id, set())
        beside.add(asyncio.create_task(self._run_beside(queued)))

    def remove(self, turn: Turn) -> None:
        queued = self._queued.get(turn.conversation_id, [])
        queued[:] = [other for other in queued if other.turn.id != turn.id]

    def clear(self, conversation_id: str) -> list[Turn]:
        """Removes all queued turns of a conversation and returns them."""
        queued = self._queued.get(conversation_id, [])
        turns = [other.turn for other in queued]
        queued.clear()
        return turns

    def clear_all(self) -> list[Turn]:
        return [turn for conversation_id in tuple(self._queued) for turn in self.clear(conversation_id)]

    def tasks(self) -> Iterator[asyncio.Task[None]]:
        """The tasks that run turns now."""
        return chain(self._runners.values(), *self._beside.values())

    async def _run_queued(self, conversation_id: str) -> None:
        try:
            while queued := self._queued.get(conversation_id):
                beside = self._beside.get(conversation_id)
                if beside and queued[0].turn.state is TurnState.QUEUED:
                    await asyncio.wait(tuple(beside))
                else:
                    await self._run(queued.pop(0))
        finally:
            self._queued.pop(conversation_id, None)
            self._runners.pop(conversation_id, None)

    async def _run_beside(self, queued: QueuedTurn) -> None:
        conversation_id = queued.turn.conversation_id
        try:
            await self._run(queued)
        finally:
            beside = self._beside[conversation_id]
            beside.discard(asyncio.current_task())
            if not beside:
                del self._beside[conversation_id]


def _position(queued: list[QueuedTurn], turn: Turn) -> int:
    """The position before all later rounds: the store may answer two requests in the opposite order."""
    if turn.purpose is Purpose.SYNTHESIS:
        return len(queued)
    later = (
        position
        for position, other in enumerate(queued)
        if other.turn.purpose is not Purpose.SYNTHESIS and other.turn.round_number > turn.round_number
    )
    return next(later, len(queued))
