"""Database: runs each task in one transaction; results and events arrive on the event loop."""

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
from tertulia.store.event_dispatcher import EventDispatcher, Listener
from tertulia.store.sqlite import Sqlite
from tertulia.store.transaction_task import TransactionTask
from tertulia.store.transactions import Tx

__all__ = ["Database", "Tx"]

T = TypeVar("T")

CLOCKS_AGREE_MS = 3_000
"""The largest accepted clock difference: servers send a heartbeat every 4 s and count as dead after 15 s."""


class Backend(Protocol):
    """SQLite or PostgreSQL: runs transactions in its own threads and hands them back when they are over."""

    version: str
    vectors: str
    is_shared: bool

    def start(
        self,
        on_done: Callable[[Sequence[TransactionTask]], None],
        on_events: Listener,
        on_message: Callable[[str], None],
    ) -> None: ...
    def notify(self, tx: Tx, text: str) -> None: ...
    def analyze(self, tx: Tx) -> None: ...
    def ahead_ms(self, tx: Tx) -> int: ...
    def read(self, task: TransactionTask) -> None: ...
    def write(self, task: TransactionTask) -> None: ...
    def close(self) -> None: ...


class Database:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._dispatcher = EventDispatcher(self._read_after)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_message: Callable[[str], None] | None = None
        backend.start(self._hand_back, self._dispatch_from_thread, self._deliver_from_thread)

    @classmethod
    def open(cls, url: str, *, clock: Clock, new_id: NewId) -> Database:
        """Opens the database with this address and migrates it to the newest schema."""
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
        """The name and version of the database, such as "SQLite 3.40.1"."""
        return self._backend.version

    @property
    def vectors(self) -> str:
        """A text for people: whether vectors are compared in the database or in memory, and why."""
        return self._backend.vectors

    @property
    def is_shared(self) -> bool:
        """True if several servers may use the database; shared data must then be stored in it."""
        return self._backend.is_shared

    def clock_warning(self) -> str | None:
        """A warning if this machine's clock differs from the database's: servers detect dead ones by time."""
        ahead_ms = self.read_now(self._backend.ahead_ms)
        if abs(ahead_ms) <= CLOCKS_AGREE_MS:
            return None
        seconds, direction = abs(ahead_ms) // 1000, "ahead of" if ahead_ms > 0 else "behind"
        return (
            f"This machine's clock is {seconds} s {direction} the database's. "
            "Have both set by a time server: "
            "servers that share a database would take each other's turns and jobs for abandoned."
        )

    async def read(self, run: Callable[[Tx], T]) -> T:
        result: T = await self._submit(self._backend.read, run)
        return result

    async def write(self, run: Callable[[Tx], T]) -> T:
        """Runs the function and commits; the listeners have its events when this returns."""
        result: T = await self._submit(self._backend.write, run)
        return result

    def read_now(self, run: Callable[[Tx], T]) -> T:
        return self._wait(self._backend.read, run)

    def write_now(self, run: Callable[[Tx], T]) -> T:
        return self._wait(self._backend.write, run)

    def on_commit(self, listener: Listener) -> None:
        """Calls the listener with the events of each commit from now on, in order, on the event loop."""
        self._dispatcher.add(listener)

    async def catch_up(self, topics: Sequence[str]) -> None:
        """Delivers events that other servers wrote in these topics and that this server missed."""
        numbers = await self.read(lambda tx: events.last_numbers(tx, topics))
        for topic, number in numbers.items():
            self._dispatcher.catch_up_to(topic, number)

    async def analyze(self) -> None:
        """Refreshes the query planner's statistics (ANALYZE) of tables that have grown much."""
        if self._backend.is_shared:
            await self.write(self._backend.analyze)

    async def notify(self, text: str) -> None:
        """Sends a message to the other servers that share the database; not stored, may be lost."""
        await self.write(lambda tx: self._backend.notify(tx, text))

    def on_notify(self, listener: Callable[[str], None]) -> None:
        """Calls the listener with each message from another server, on the event loop."""
        self._on_message = listener

    def close(self) -> None:
        """Finishes running transactions and closes the database."""
        self._backend.close()

    def _submit(
        self, enqueue: Callable[[TransactionTask], None], run: Callable[[Tx], T]
    ) -> asyncio.Future[T]:
        self._loop = loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        enqueue(TransactionTask(run, future, loop))
        return future

    def _wait(self, enqueue: Callable[[TransactionTask], None], run: Callable[[Tx], T]) -> T:
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        enqueue(TransactionTask(run, future, None))
        return future.result()

    def _hand_back(self, tasks: Sequence[TransactionTask]) -> None:
        """Delivers finished tasks from a database thread to their waiters, one wake-up per event loop."""
        groups: dict[asyncio.AbstractEventLoop | None, list[TransactionTask]] = {}
        for task in tasks:
            groups.setdefault(task.loop, []).append(task)
        for loop, group in groups.items():
            if loop is None:
                self._settle_threads(group)
            else:
                _call(loop, self._settle, group)

    def _settle(self, group: Sequence[TransactionTask]) -> None:
        """Waiting coroutines continue only after this returns, so the listeners have the events by then."""
        for task in group:
            task.settle()
        for task in group:
            self._dispatcher.dispatch(task.events)

    def _settle_threads(self, group: Sequence[TransactionTask]) -> None:
        for task in group:
            self._dispatch_from_thread(task.events)
            task.settle()

    def _dispatch_from_thread(self, new_events: Sequence[Event]) -> None:
        if new_events and self._loop is not None:
            _call(self._loop, self._dispatcher.dispatch, new_events)

    def _deliver_from_thread(self, text: str) -> None:
        if self._on_message is not None and self._loop is not None:
            _call(self._loop, self._on_message, text)

    async def _read_after(self, topic: str, number: int) -> Sequence[Event]:
        return await self.read(lambda tx: events.after(tx, topic, number))


def _call(loop: asyncio.AbstractEventLoop, callback: Callable[[T], None], argument: T) -> None:
    with suppress(RuntimeError):  # the loop is closed, so nothing waits for the result
        loop.call_soon_threadsafe(callback, argument)
