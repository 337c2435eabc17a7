"""The database: work goes in, one transaction each; its result and its events come out on the event loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from tertulia.core.errors import CannotStart
from tertulia.core.events import Event
from tertulia.core.ids import Clock, NewId
from tertulia.store import events
from tertulia.store.sqlite import Sqlite
from tertulia.store.telling import Listener, Teller
from tertulia.store.transactions import Tx, Work

__all__ = ["Database", "Tx"]

T = TypeVar("T")

CLOCKS_AGREE_MS = 3_000
"""A server that has said nothing for fifteen seconds is taken for dead, and it says something every four."""


class Backend(Protocol):
    """SQLite or PostgreSQL: takes work, does it in its own threads, hands it back when it is over."""

    version: str
    vectors: str
    is_shared: bool

    def start(
        self,
        hand_back: Callable[[Sequence[Work]], None],
        tell: Listener,
        pass_on: Callable[[str], None],
    ) -> None: ...
    def say(self, tx: Tx, text: str) -> None: ...
    def survey(self, tx: Tx) -> None: ...
    def ahead_ms(self, tx: Tx) -> int: ...
    def read(self, work: Work) -> None: ...
    def write(self, work: Work) -> None: ...
    def close(self) -> None: ...


class Database:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._teller = Teller(self._read_after)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._hear: Callable[[str], None] | None = None
        backend.start(self._hand_back, self._tell_from_thread, self._pass_on_from_thread)

    @classmethod
    def open(cls, url: str, *, clock: Clock, new_id: NewId) -> Database:
        """Opens what the address names and brings it up to date."""
        if url.startswith("sqlite:///"):
            return cls(Sqlite(url.removeprefix("sqlite:///"), clock, new_id))
        if url.startswith(("postgresql://", "postgres://")):
            from tertulia.store.postgres import Postgres  # its driver is slow to load, and SQLite needs none

            return cls(Postgres(url, clock, new_id))
        raise CannotStart(
            "The database address must start with sqlite:/// or postgresql://. "
            "Leave TERTULIA_DATABASE_URL unset to use SQLite in the data folder."
        )

    @property
    def version(self) -> str:
        """Which database this is, as it says itself: "SQLite 3.40.1"."""
        return self._backend.version

    @property
    def vectors(self) -> str:
        """Where vectors are compared, and why not in the database where that could be."""
        return self._backend.vectors

    @property
    def is_shared(self) -> bool:
        """Several machines may use it at once, so what all of them need must be inside."""
        return self._backend.is_shared

    def clock_trouble(self) -> str | None:
        """What is wrong with the clock here, where several machines tell by theirs who is alive."""
        ahead_ms = self.read_now(self._backend.ahead_ms)
        if abs(ahead_ms) <= CLOCKS_AGREE_MS:
            return None
        seconds, way = abs(ahead_ms) // 1000, "ahead of" if ahead_ms > 0 else "behind"
        return (
            f"This machine's clock is {seconds} s {way} the database's. Have both set by a time server: "
            "servers that share a database would take each other's turns and jobs for abandoned."
        )

    async def read(self, work: Callable[[Tx], T]) -> T:
        result: T = await self._ask(self._backend.read, work)
        return result

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Does the work and commits; the listeners have heard its events when this returns."""
        result: T = await self._ask(self._backend.write, work)
        return result

    def read_now(self, work: Callable[[Tx], T]) -> T:
        return self._wait(self._backend.read, work)

    def write_now(self, work: Callable[[Tx], T]) -> T:
        return self._wait(self._backend.write, work)

    def on_commit(self, listener: Listener) -> None:
        """From now on, the listener hears the events of every commit, in order, on the event loop."""
        self._teller.add(listener)

    async def catch_up(self, places: Sequence[str]) -> None:
        """The listeners hear what other servers wrote in these places and this one has not heard of."""
        numbers = await self.read(lambda tx: events.last_numbers(tx, places))
        for place, number in numbers.items():
            self._teller.reach(place, number)

    async def survey(self) -> None:
        """After much was written: what has outgrown the plans for reading it is looked over."""
        if self._backend.is_shared:
            await self.write(self._backend.survey)

    async def say(self, text: str) -> None:
        """To every other server that shares the database; kept nowhere, and nobody need hear it."""
        await self.write(lambda tx: self._backend.say(tx, text))

    def on_words(self, listener: Callable[[str], None]) -> None:
        """From now on, the listener hears what other servers say to this one, on the event loop."""
        self._hear = listener

    def close(self) -> None:
        """Finishes what was begun and lets go of the database."""
        self._backend.close()

    def _ask(self, submit: Callable[[Work], None], run: Callable[[Tx], T]) -> asyncio.Future[T]:
        self._loop = loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        submit(Work(run, future, loop))
        return future

    def _wait(self, submit: Callable[[Work], None], run: Callable[[Tx], T]) -> T:
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        submit(Work(run, future, None))
        return future.result()

    def _hand_back(self, done: Sequence[Work]) -> None:
        """From a database thread to where each is waited for; one wake-up for all that wait in one place."""
        groups: dict[asyncio.AbstractEventLoop | None, list[Work]] = {}
        for work in done:
            groups.setdefault(work.loop, []).append(work)
        for loop, group in groups.items():
            if loop is None:
                self._settle_threads(group)
            else:
                _call(loop, self._settle, group)

    def _settle(self, group: Sequence[Work]) -> None:
        """Whoever waits goes on only after this has returned, so the listeners have heard by then."""
        for work in group:
            work.settle()
        for work in group:
            self._teller.tell(work.events)

    def _settle_threads(self, group: Sequence[Work]) -> None:
        for work in group:
            self._tell_from_thread(work.events)
            work.settle()

    def _tell_from_thread(self, news: Sequence[Event]) -> None:
        if news and self._loop is not None:
            _call(self._loop, self._teller.tell, news)

    def _pass_on_from_thread(self, text: str) -> None:
        if self._hear is not None and self._loop is not None:
            _call(self._loop, self._hear, text)

    async def _read_after(self, place: str, number: int) -> Sequence[Event]:
        return await self.read(lambda tx: events.after(tx, place, number))


def _call(loop: asyncio.AbstractEventLoop, what: Callable[[T], None], argument: T) -> None:
    with suppress(RuntimeError):  # nobody waits any more in a loop that has ended
        loop.call_soon_threadsafe(what, argument)
