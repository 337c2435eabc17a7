"""PostgreSQL backend: a pool of up to ten threads with one connection each, and NOTIFY to the other nodes."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from queue import SimpleQueue

import psycopg

from tertulia.core.errors import (
    Busy,
    CannotStart,
    Conflict,
    NotFound,
    StorageFailed,
    StorageFull,
    TertuliaError,
)
from tertulia.core.events import Event
from tertulia.core.ids import Clock, NewId
from tertulia.store import events, migrate, postgres_setup
from tertulia.store.commit_order import CommitOrder, DeliverTasks
from tertulia.store.postgres_setup import Wire
from tertulia.store.sql import Statement, sql
from tertulia.store.text_index import TextIndex, Tsvector
from tertulia.store.transaction_task import TransactionTask, check_capacity
from tertulia.store.transactions import GONE, Tx
from tertulia.store.vector_index import VectorIndex

THREADS = 10
ATTEMPTS = 3
"""How often a transaction is tried when it deadlocks or conflicts with another one."""
CONNECT_S = 5
LOCK_WAIT_S = 10
CHANNEL = "tertulia"
MESSAGE_CHANNEL = "tertulia_messages"
PAYLOAD_LIMIT = 7_900
"""The most bytes in a notification; PostgreSQL allows slightly more. A larger commit sends several."""

_BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"  # one snapshot for all queries of a read
_BEGIN_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"

OnEvents = Callable[[Sequence[Event]], None]
OnMessage = Callable[[str], None]
TaskQueue = SimpleQueue[tuple[TransactionTask, bool] | None]


class Postgres:
    error: type[Exception] = psycopg.Error
    skip_locked = "FOR UPDATE SKIP LOCKED"
    text_index: TextIndex = Tsvector()
    vector_index: VectorIndex
    vectors: str
    is_shared = True

    def __init__(
        self, url: str, clock: Clock, new_id: NewId, history: migrate.MigrationHistory = migrate.HISTORY
    ) -> None:
        self._clock = clock
        self._new_id = new_id
        self.node = new_id()
        self._queue: TaskQueue = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._work_count = 0
        self._state_lock = threading.Lock()
        self._is_closed = False
        self._stop = threading.Event()
        self._url = url
        self.version = self._prepare(history)

    # ── opening

    def _prepare(self, history: migrate.MigrationHistory) -> str:
        try:
            with self._connect() as connection:
                postgres_setup.tables(connection, history)
                self.vector_index, self.vectors = postgres_setup.vectors(connection)
                return f"PostgreSQL {connection.info.parameter_status('server_version')}"
        except psycopg.Error as error:
            raise CannotStart(f"PostgreSQL cannot be used: {str(error).strip()}") from error

    def _connect(self) -> Wire:
        connection = psycopg.connect(self._url, autocommit=True, connect_timeout=CONNECT_S)
        connection.execute(f"SET lock_timeout = '{LOCK_WAIT_S}s'")
        return connection

    def start(self, on_done: DeliverTasks, on_events: OnEvents, on_message: OnMessage) -> None:
        self._on_done = on_done
        self._on_events = on_events
        self._on_message = on_message
        self._order = CommitOrder(on_done)
        self._listener = threading.Thread(target=self._listen, name="tertulia-listener", daemon=True)
        self._listener.start()

    # ── reading and writing

    def read(self, task: TransactionTask) -> None:
        self._submit(task, is_write=False)

    def write(self, task: TransactionTask) -> None:
        self._submit(task, is_write=True)

    def _submit(self, task: TransactionTask, is_write: bool) -> None:
        with self._state_lock:
            check_capacity(self._is_closed, self._queue.qsize())
            self._put(task, is_write)

    def _put(self, task: TransactionTask, is_write: bool) -> None:
        """Starts a thread, and with it a connection, only when all existing threads are busy."""
        self._work_count += 1
        if len(self._threads) < min(self._work_count, THREADS):
            thread = threading.Thread(target=self._serve, name="tertulia-database", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._queue.put((task, is_write))

    def _serve(self) -> None:
        connection: Wire | None = None
        while (item := self._queue.get()) is not None:
            task, is_write = item
            try:
                connection = connection or self._connect()
                self._write(connection, task) if is_write else self._read(connection, task)
            except psycopg.Error as error:
                _drop(connection)
                connection = None
                task.fail(_unreachable(error))
                self._on_done((task,))
            with self._state_lock:
                self._work_count -= 1
        _drop(connection)

    def _read(self, connection: Wire, task: TransactionTask) -> None:
        connection.execute(_BEGIN_READ)
        task.perform(self._tx(connection), self)
        connection.execute("ROLLBACK")
        self._on_done((task,))

    def _write(self, connection: Wire, task: TransactionTask) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            tx = self._tx(connection)
            if self._attempt(connection, tx, task) or attempt == ATTEMPTS:
                self._order.leave(tx, task)
                return
            self._order.leave(tx)

    def _attempt(self, connection: Wire, tx: Tx, task: TransactionTask) -> bool:
        """Runs and commits the task. Returns False if it should be tried again."""
        try:
            connection.execute(_BEGIN_WRITE)
            task.perform(tx, self)
            if task.error is not None:
                connection.execute("ROLLBACK")
                return not _is_retryable(task.error)
            self._notify_events(tx)
            connection.execute("COMMIT")
        except psycopg.Error:
            self._order.leave(tx)
            raise
        return True

    def _tx(self, connection: Wire) -> Tx:
        return Tx(connection.cursor(), self, self._clock, self._new_id)

    def _notify_events(self, tx: Tx) -> None:
        for payload in _payloads(self.node, tx.events):
            tx.execute(_NOTIFY, channel=CHANNEL, payload=payload)

    # ── notifications from other nodes

    def _listen(self) -> None:
        """Listens for notifications and reconnects when the connection is lost.

        A gap in a topic's numbers shows later that events were missed meanwhile.
        """
        while not self._is_closed:
            try:
                with self._connect() as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    connection.execute(f"LISTEN {MESSAGE_CHANNEL}")
                    self._receive(connection)
            except psycopg.Error:
                self._stop.wait(1)

    def _receive(self, connection: Wire) -> None:
        received: dict[str, str] = {}
        """The part of its current message that each other node has sent so far."""
        while not self._is_closed:
            for notification in connection.notifies(timeout=5, stop_after=1):
                node, _, rest = notification.payload.partition("\n")
                if node == self.node:
                    continue
                if notification.channel == CHANNEL:
                    self._fetch(rest.splitlines())
                    continue
                remaining, _, part = rest.partition("\n")
                received[node] = received.get(node, "") + part
                if remaining == "0":
                    self._on_message(received.pop(node))

    def _fetch(self, lines: Sequence[str]) -> None:
        future: concurrent.futures.Future[tuple[Event, ...]] = concurrent.futures.Future()
        with suppress(TertuliaError):  # no connection, or closing; listeners will find the gap
            self._submit(TransactionTask(partial(_new_events, lines=lines), future, None), is_write=False)
            self._on_events(future.result())

    # ── closing

    def close(self) -> None:
        with self._state_lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._put(TransactionTask(self._wake_listener, concurrent.futures.Future(), None), is_write=True)
            for _ in self._threads:
                self._queue.put(None)
        self._stop.set()
        for thread in (*self._threads, self._listener):
            thread.join()

    def _wake_listener(self, tx: Tx) -> None:
        """Notifies this node's own listener thread, so that it notices that it should stop."""
        tx.execute(_NOTIFY, channel=CHANNEL, payload=self.node)

    # ── what differs from SQLite

    def render(self, statement: Statement) -> str:
        return _rendered(statement)

    def lock(self, tx: Tx, name: str) -> None:
        tx.execute(_LOCK, name=name)

    def register_commit_order(self, tx: Tx, topics: Sequence[str]) -> None:
        self._order.enter(tx, topics)

    def notify(self, tx: Tx, text: str) -> None:
        """Sends a text to the other nodes, split to fit into notifications.

        The notifications of one transaction arrive together and in order.
        """
        tx.execute(_ASYNC_COMMIT)
        size = (PAYLOAD_LIMIT - 100) // (1 if text.isascii() else 4)
        parts = [text[start : start + size] for start in range(0, len(text), size)]
        for remaining, part in zip(reversed(range(len(parts))), parts, strict=True):
            tx.execute(_NOTIFY, channel=MESSAGE_CHANNEL, payload=f"{self.node}\n{remaining}\n{part}")

    def ahead_ms(self, tx: Tx) -> int:
        """The least by which this machine's clock is ahead of the database's, however slow the query was."""
        before, database_ms, after = self._clock(), int(tx.one(_DATABASE_CLOCK).now), self._clock()
        return max(0, before - database_ms) + min(0, after - database_ms)

    def analyze(self, tx: Tx) -> None:
        """Runs ANALYZE on search tables that have grown; autovacuum would do so only a minute later."""
        for row in tx.execute(_GROWN_TABLES):
            tx.execute(_ANALYZE[row.name])

    def translate(self, error: Exception) -> TertuliaError | None:
        state = getattr(error, "sqlstate", None)
        if state is None:
            return _unreachable(error) if isinstance(error, psycopg.OperationalError) else None
        if state in _BUSY or state.startswith("08"):
            return _unreachable(error)
        match state:
            case "23503":
                return NotFound(GONE)
            case "23505":
                return Conflict("Something else is already there under this name or id.")
            case "53100":
                return StorageFull("The database's disk is full. Nothing was saved; make room and try again.")
            case "25006" | "58030" | "XX001" | "XX002":
                return StorageFailed(f"The database cannot be written: {error}.")
        return None


_RETRYABLE = ("40001", "40P01")
"""The SQL states of serialisation failure and deadlock: the same task can succeed when tried again."""

_BUSY = frozenset((*_RETRYABLE, "55P03", "57014", "53300", "57P01", "57P02", "57P03"))

_LOCK = sql("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")

_DATABASE_CLOCK = sql("SELECT CAST(1000 * EXTRACT(EPOCH FROM clock_timestamp()) AS BIGINT) AS now")

_SEARCH_TABLES = ("content_chunks", "chunk_vectors")

# Tables that grew by a fifth and a megabyte since the last ANALYZE. This check costs next to nothing.
_GROWN_TABLES = sql(f"""
    SELECT relname AS name FROM pg_class
    WHERE oid IN ({", ".join(f"CAST('{name}' AS REGCLASS)" for name in _SEARCH_TABLES)})
        AND pg_relation_size(oid) > 1.2 * relpages * CAST(current_setting('block_size') AS BIGINT) + 1048576
""")

# SKIP_LOCKED, because another server or autovacuum may be analysing the same table.
_ANALYZE = {name: sql(f"ANALYZE (SKIP_LOCKED) {name}") for name in _SEARCH_TABLES}

_ASYNC_COMMIT = sql("SET LOCAL synchronous_commit TO off")
"""Notifications are stored nowhere, so their commit need not wait for the disk."""

_NOTIFY = sql("SELECT pg_notify(:channel, :payload)")


def _drop(connection: Wire | None) -> None:
    """Closes a broken connection; the thread opens a new one for its next task."""
    if connection is not None:
        connection.close()


def _unreachable(error: BaseException) -> Busy:
    busy = Busy("The database cannot be reached just now. Try again in a moment.")
    busy.__cause__ = error
    return busy


def _is_retryable(error: Exception) -> bool:
    return getattr(error.__cause__, "sqlstate", None) in _RETRYABLE


def _payloads(node: str, new_events: Sequence[Event]) -> list[str]:
    """The notifications for a commit: the node's id, then for each topic its first and last new number."""
    spans: dict[str, tuple[int, int]] = {}
    for event in new_events:
        first, _ = spans.get(event.topic, (event.number, 0))
        spans[event.topic] = (first, event.number)
    payloads: list[str] = []
    for topic, (first, last) in spans.items():
        line = f"\n{topic} {first} {last}"
        if not payloads or len(payloads[-1]) + len(line) > PAYLOAD_LIMIT:
            payloads.append(node)
        payloads[-1] += line
    return payloads


def _new_events(tx: Tx, lines: Sequence[str]) -> tuple[Event, ...]:
    new_events: list[Event] = []
    for line in lines:
        topic, first, last = line.rsplit(" ", 2)
        new_events += events.after(tx, topic, int(first) - 1, int(last) - int(first) + 1)
    return tuple(new_events)


@cache
def _rendered(statement: Statement) -> str:
    return statement.with_percent_parameters()
