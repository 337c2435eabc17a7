"""Telling: listeners hear the events of each place in order, also when several nodes write in it.

Our own commits come straight from our threads, those of other nodes by way of the log, so one may overtake
the other. A number that does not follow the last one says that something is on its way; the log has it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence

from tertulia.core.errors import TertuliaError
from tertulia.core.events import Event

Listener = Callable[[Sequence[Event]], None]
ReadAfter = Callable[[str, int], Awaitable[Sequence[Event]]]

REMEMBERED = 10_000
"""Places whose last number is known; of a place that is not, any number may be the next."""


class Teller:
    """Lives on the event loop: nothing here waits, and nothing is called from a thread."""

    def __init__(self, read_after: ReadAfter) -> None:
        self._read_after = read_after
        self._listeners: list[Listener] = []
        self._told: OrderedDict[str, range] = OrderedDict()
        """Of each remembered place, the numbers told, without a gap."""
        self._behind: dict[str, int] = {}
        """Places that wait for the log, and the highest number seen of each."""
        self._reading: set[asyncio.Task[None]] = set()

    def add(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def tell(self, news: Sequence[Event]) -> None:
        following = [event for event in news if self._follows(event)]
        if following:
            for listener in self._listeners:
                listener(following)

    def _follows(self, event: Event) -> bool:
        told = self._told.get(event.place, range(event.number, event.number))
        if event.number == told.stop:
            self._remember(event.place, range(told.start, event.number + 1))
        elif event.number > told.stop:
            self._catch_up(event.place, event.number)
            return False
        # Older than all that is remembered: late, but never told, and someone may wait to hear it.
        return event.number not in told

    def _remember(self, place: str, told: range) -> None:
        self._told[place] = told
        self._told.move_to_end(place)
        if len(self._told) > REMEMBERED:
            self._told.popitem(last=False)

    def reach(self, place: str, number: int) -> None:
        """The log has come so far. What another node said while the line to it was down is read up now."""
        if place not in self._told:
            self._remember(place, range(number + 1, number + 1))
        elif number >= self._told[place].stop:
            self._catch_up(place, number)

    def _catch_up(self, place: str, number: int) -> None:
        is_reading = place in self._behind
        self._behind[place] = max(number, self._behind.get(place, 0))
        if not is_reading:
            task = asyncio.get_running_loop().create_task(self._read_up(place))
            self._reading.add(task)
            task.add_done_callback(self._reading.discard)

    async def _read_up(self, place: str) -> None:
        """Reads until nothing is missing. When the database is away, the place's next event tries again."""
        try:
            while place in self._told and self._told[place].stop <= self._behind[place]:
                news = await self._read_after(place, self._told[place].stop - 1)
                if not news:  # the place is gone, and its events with it
                    return
                self.tell(news)
        except TertuliaError:
            pass
        finally:
            del self._behind[place]
