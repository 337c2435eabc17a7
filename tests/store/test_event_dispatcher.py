"""The event dispatcher delivers events in order, once, and without gaps."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tertulia.core.errors import Busy
from tertulia.core.events import Event, EventKind
from tertulia.store.event_dispatcher import REMEMBERED, EventDispatcher


def event(number: int, topic: str = "a") -> Event:
    return Event(topic, number, EventKind.CHANGED, "note", str(number), "{}", 0)


class Log:
    """An event log with one topic, its dispatcher, and a listener that collects event numbers."""

    def __init__(self) -> None:
        self.committed = 0
        self.reads = 0
        self.is_unreachable = False
        self.received: list[int] = []
        self.read = asyncio.Event()
        self.dispatcher = EventDispatcher(self.after)
        self.dispatcher.add(lambda events: self.received.extend(event.number for event in events))

    async def after(self, topic: str, number: int) -> Sequence[Event]:
        self.reads += 1
        await self.read.wait()
        if self.is_unreachable:
            raise Busy("unreachable")
        return [event(n, topic) for n in range(number + 1, self.committed + 1)]

    async def settle(self) -> None:
        self.read.set()
        for _ in range(10):
            await asyncio.sleep(0)


async def test_consecutive_events_are_delivered_at_once() -> None:
    log = Log()
    log.dispatcher.dispatch([event(4), event(5), event(9, "b")])
    log.dispatcher.dispatch([event(6)])
    assert (log.received, log.reads) == ([4, 5, 9, 6], 0)


async def test_an_event_is_delivered_only_once() -> None:
    log = Log()
    log.dispatcher.dispatch([event(4), event(5)])
    log.dispatcher.dispatch([event(5), event(4), event(6)])
    assert log.received == [4, 5, 6]


async def test_an_event_older_than_the_first_delivered_one_is_still_delivered() -> None:
    log = Log()
    log.dispatcher.dispatch([event(7)])
    log.dispatcher.dispatch([event(6)])
    log.dispatcher.dispatch([event(8)])
    assert (log.received, log.reads) == ([7, 6, 8], 0)


async def test_an_event_missing_before_a_later_one_is_read_from_the_log() -> None:
    log = Log()
    log.dispatcher.dispatch([event(1)])
    log.committed = 3
    log.dispatcher.dispatch([event(3)])
    assert log.received == [1]
    await log.settle()
    log.dispatcher.dispatch([event(2)])
    assert (log.received, log.reads) == ([1, 2, 3], 1)


async def test_an_event_that_arrives_while_the_log_is_read_is_delivered() -> None:
    log = Log()
    log.dispatcher.dispatch([event(1)])
    log.dispatcher.dispatch([event(3)])
    await asyncio.sleep(0)
    log.dispatcher.dispatch([event(7)])
    log.committed = 7
    await log.settle()
    assert log.received == [1, 2, 3, 4, 5, 6, 7]


async def test_a_failed_read_of_the_log_is_repeated_with_the_next_event() -> None:
    log = Log()
    log.dispatcher.dispatch([event(1)])
    log.is_unreachable = True
    log.dispatcher.dispatch([event(3)])
    await log.settle()
    log.is_unreachable, log.committed = False, 4
    log.dispatcher.dispatch([event(4)])
    await log.settle()
    assert log.received == [1, 2, 3, 4]


async def test_the_number_of_remembered_topics_is_limited() -> None:
    log = Log()
    for number in range(REMEMBERED + 1):
        log.dispatcher.dispatch([event(1, f"topic {number}")])
    log.received.clear()
    log.dispatcher.dispatch([event(5, "topic 0")])
    log.dispatcher.dispatch([event(5, "topic 2")])
    assert log.received == [5]


async def test_missed_events_are_read_when_the_log_is_found_to_be_ahead() -> None:
    log = Log()
    log.dispatcher.dispatch([event(1)])
    log.committed = 3
    log.dispatcher.catch_up_to("a", 3)
    log.dispatcher.catch_up_to("a", 3)
    await log.settle()
    log.dispatcher.dispatch([event(2), event(4)])
    assert (log.received, log.reads) == ([1, 2, 3, 4], 1)
    log.dispatcher.catch_up_to("a", 4)
    await log.settle()
    assert log.reads == 1


async def test_a_topic_without_deliveries_is_followed_from_its_last_number() -> None:
    log = Log()
    log.dispatcher.catch_up_to("a", 3)
    await log.settle()
    assert (log.received, log.reads) == ([], 0)
    log.dispatcher.dispatch([event(3)])  # delivered late
    log.committed = 5
    log.dispatcher.catch_up_to("a", 5)
    await log.settle()
    assert log.received == [3, 4, 5]


async def test_the_dispatcher_reads_the_log_once_when_the_missing_events_were_deleted() -> None:
    log = Log()
    log.dispatcher.dispatch([event(1)])
    log.dispatcher.catch_up_to("a", 3)
    await log.settle()
    assert (log.received, log.reads) == ([1], 1)
