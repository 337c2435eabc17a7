"""Telling: in order, once, and nothing left out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tertulia.core.errors import Busy
from tertulia.core.events import Event, Kind
from tertulia.store.telling import REMEMBERED, Teller


def event(number: int, place: str = "a") -> Event:
    return Event(place, number, Kind.CHANGED, "note", str(number), "{}", 0)


class Log:
    """What is committed, and a listener."""

    def __init__(self) -> None:
        self.committed = 0
        self.reads = 0
        self.is_away = False
        self.heard: list[int] = []
        self.read = asyncio.Event()
        self.teller = Teller(self.after)
        self.teller.add(lambda news: self.heard.extend(one.number for one in news))

    async def after(self, place: str, number: int) -> Sequence[Event]:
        self.reads += 1
        await self.read.wait()
        if self.is_away:
            raise Busy("away")
        return [event(n, place) for n in range(number + 1, self.committed + 1)]

    async def settle(self) -> None:
        self.read.set()
        for _ in range(10):
            await asyncio.sleep(0)


async def test_what_follows_is_told_at_once() -> None:
    log = Log()
    log.teller.tell([event(4), event(5), event(9, "b")])
    log.teller.tell([event(6)])
    assert (log.heard, log.reads) == ([4, 5, 9, 6], 0)


async def test_what_was_told_is_not_told_again() -> None:
    log = Log()
    log.teller.tell([event(4), event(5)])
    log.teller.tell([event(5), event(4), event(6)])
    assert log.heard == [4, 5, 6]


async def test_what_is_older_than_all_that_is_remembered_is_still_told() -> None:
    log = Log()
    log.teller.tell([event(7)])
    log.teller.tell([event(6)])
    log.teller.tell([event(8)])
    assert (log.heard, log.reads) == ([7, 6, 8], 0)


async def test_what_was_overtaken_is_read_from_the_log() -> None:
    log = Log()
    log.teller.tell([event(1)])
    log.committed = 3
    log.teller.tell([event(3)])
    assert log.heard == [1]
    await log.settle()
    log.teller.tell([event(2)])
    assert (log.heard, log.reads) == ([1, 2, 3], 1)


async def test_what_comes_while_the_log_is_read_is_not_lost() -> None:
    log = Log()
    log.teller.tell([event(1)])
    log.teller.tell([event(3)])
    await asyncio.sleep(0)
    log.teller.tell([event(7)])
    log.committed = 7
    await log.settle()
    assert log.heard == [1, 2, 3, 4, 5, 6, 7]


async def test_a_log_that_cannot_be_read_is_read_with_the_next_event() -> None:
    log = Log()
    log.teller.tell([event(1)])
    log.is_away = True
    log.teller.tell([event(3)])
    await log.settle()
    log.is_away, log.committed = False, 4
    log.teller.tell([event(4)])
    await log.settle()
    assert log.heard == [1, 2, 3, 4]


async def test_only_so_many_places_are_remembered() -> None:
    log = Log()
    for number in range(REMEMBERED + 1):
        log.teller.tell([event(1, f"place {number}")])
    log.heard.clear()
    log.teller.tell([event(5, "place 0")])
    log.teller.tell([event(5, "place 2")])
    assert log.heard == [5]


async def test_what_nobody_told_us_of_is_read_when_the_log_is_seen_to_have_come_further() -> None:
    log = Log()
    log.teller.tell([event(1)])
    log.committed = 3
    log.teller.reach("a", 3)
    log.teller.reach("a", 3)
    await log.settle()
    log.teller.tell([event(2), event(4)])
    assert (log.heard, log.reads) == ([1, 2, 3, 4], 1)
    log.teller.reach("a", 4)
    await log.settle()
    assert log.reads == 1


async def test_a_place_that_is_looked_at_for_the_first_time_is_followed_from_there() -> None:
    log = Log()
    log.teller.reach("a", 3)
    await log.settle()
    assert (log.heard, log.reads) == ([], 0)
    log.teller.tell([event(3)])  # it was on its way
    log.committed = 5
    log.teller.reach("a", 5)
    await log.settle()
    assert log.heard == [3, 4, 5]


async def test_nothing_is_looked_for_in_a_log_that_was_deleted() -> None:
    log = Log()
    log.teller.tell([event(1)])
    log.teller.reach("a", 3)
    await log.settle()
    assert (log.heard, log.reads) == ([1], 1)
