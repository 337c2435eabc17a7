"""Event dispatcher: delivers each topic's events to listeners in order, even when several nodes write to it.

Events of this node come straight from its threads, those of other nodes from the event log, so one may
overtake another. If a number does not follow the last one, events are missing; they are read from the log.
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
"""How many topics are remembered; in a forgotten topic the next event may have any number."""


class EventDispatcher:
    """Runs on the event loop: its methods do not block, and threads must not call them."""

    def __init__(self, read_after: ReadAfter) -> None:
        self._read_after = read_after
        self._listeners: list[Listener] = []
        self._delivered: OrderedDict[str, range] = OrderedDict()
        """For each remembered topic, the range of numbers delivered without a gap."""
        self._missing_up_to: dict[str, int] = {}
        """The topics with missing events, and the highest number known in each."""
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def dispatch(self, events: Sequence[Event]) -> None:
        deliverable = [event for event in events if self._accepts(event)]
        if deliverable:
            for listener in self._listeners:
                listener(deliverable)

    def _accepts(self, event: Event) -> bool:
        """Whether to deliver an event now; after a gap, it is read from the log with the missing ones."""
        delivered = self._delivered.get(event.topic, range(event.number, event.number))
        if event.number == delivered.stop:
            self._remember(event.topic, range(delivered.start, event.number + 1))
        elif event.number > delivered.stop:
            self._catch_up(event.topic, event.number)
            return False
        # An event older than the remembered range is late but was never delivered, so it is delivered now.
        return event.number not in delivered

    def _remember(self, topic: str, delivered: range) -> None:
        self._delivered[topic] = delivered
        self._delivered.move_to_end(topic)
        if len(self._delivered) > REMEMBERED:
            self._delivered.popitem(last=False)

    def catch_up_to(self, topic: str, number: int) -> None:
        """Learns the last number in a topic's log, and reads missing events if it is ahead.

        That happens when another node wrote events while this one was not connected to the database.
        """
        if topic not in self._delivered:
            self._remember(topic, range(number + 1, number + 1))
        elif number >= self._delivered[topic].stop:
            self._catch_up(topic, number)

    def _catch_up(self, topic: str, number: int) -> None:
        is_reading = topic in self._missing_up_to
        self._missing_up_to[topic] = max(number, self._missing_up_to.get(topic, 0))
        if not is_reading:
            task = asyncio.get_running_loop().create_task(self._read_missing(topic))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _read_missing(self, topic: str) -> None:
        """Reads the log until nothing is missing.

        If the database cannot be reached, the topic's next event tries again.
        """
        try:
            while topic in self._delivered and self._delivered[topic].stop <= self._missing_up_to[topic]:
                events = await self._read_after(topic, self._delivered[topic].stop - 1)
                if not events:  # the topic was deleted with its events
                    return
                self.dispatch(events)
        except TertuliaError:
            pass
        finally:
            del self._missing_up_to[topic]
