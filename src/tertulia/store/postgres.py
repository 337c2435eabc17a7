"""PostgreSQL: up to ten threads with a connection each; NOTIFY wakes other nodes after a commit."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from queue import SimpleQueue

import psycopg
from sqlalchemy import TextClause, text
from sqlalchemy.dialects import postgresql

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
from tertulia.store import events, migrate, prepare
from tertulia.store.nearness import Nearness
from tertulia.store.order import HandBack, Order
from tertulia.store.prepare import Wire
from tertulia.store.transactions import GONE, Tx, Work, refuse
from tertulia.store.words import Tsvector, Words

THREADS = 10
ATTEMPTS = 3
"""How often work is tried when two pieces of it stood in each other's way."""
CONNECT_S = 5
LOCK_WAIT_S = 10
CHANNEL = "tertulia"
WORDS = "tertulia_words"
PAYLOAD_LIMIT = 7_900
"""PostgreSQL takes a little more; a commit that touches more places sends several."""

_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"  # one snapshot for all that one answer says
_WRITING = "BEGIN ISOLATION LEVEL READ COMMITTED"

Tell = Callable[[Sequence[Event]], None]
PassOn = Callable[[str], None]
Line = SimpleQueue[tuple[Work, bool] | None]


class Postgres:
    error: type[Exception] = psycopg.Error
    skip_locked = "FOR UPDATE SKIP LOCKED"
    words: Words = Tsvector()
    nearness: Nearness
    vectors: str
    is_shared = True

    def __init__(
        self, url: str, clock: Clock, new_id: NewId, history: migrate.History = migrate.HISTORY
    ) -> None:
        self._clock = clock
        self._new_id = new_id
        self.node = new_id()
        self._line: Line = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._open_works = 0
        self._gate = threading.Lock()
        self._is_closed = False
        self._stopping = threading.Event()
        self._url = url
        self.version = self._prepare(history)

    # ── opening

    def _prepare(self, history: migrate.History) -> str:
        try:
            with self._connect() as connection:
                prepare.tables(connection, history)
                self.nearness, self.vectors = prepare.vectors(connection)
                return f"PostgreSQL {connection.info.parameter_status('server_version')}"
        except psycopg.Error as error:
            raise CannotStart(f"PostgreSQL cannot be used: {str(error).strip()}") from error

    def _connect(self) -> Wire:
        connection = psycopg.connect(self._url, autocommit=True, connect_timeout=CONNECT_S)
        connection.execute(f"SET lock_timeout = '{LOCK_WAIT_S}s'")
        return connection

    def start(self, hand_back: HandBack, tell: Tell, pass_on: PassOn) -> None:
        self._hand_back = hand_back
        self._tell = tell
        self._pass_on = pass_on
        self._order = Order(hand_back)
        self._listener = threading.Thread(target=self._listen, name="tertulia-listener", daemon=True)
        self._listener.start()

    # ── reading and writing

    def read(self, work: Work) -> None:
        self._submit(work, is_write=False)

    def write(self, work: Work) -> None:
        self._submit(work, is_write=True)

    def _submit(self, work: Work, is_write: bool) -> None:
        with self._gate:
            refuse(self._is_closed, self._line.qsize())
            self._put(work, is_write)

    def _put(self, work: Work, is_write: bool) -> None:
        """Threads, and with them connections, are made only when all there are have something to do."""
        self._open_works += 1
        if len(self._threads) < min(self._open_works, THREADS):
            thread = threading.Thread(target=self._serve, name="tertulia-database", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._line.put((work, is_write))

    def _serve(self) -> None:
        connection: Wire | None = None
        while (item := self._line.get()) is not None:
            work, is_write = item
            try:
                connection = connection or self._connect()
                self._write(connection, work) if is_write else self._read(connection, work)
            except psycopg.Error as error:
                _drop(connection)
                connection = None
                work.fail(_lost(error))
                self._hand_back((work,))
            with self._gate:
                self._open_works -= 1
        _drop(connection)

    def _read(self, connection: Wire, work: Work) -> None:
        connection.execute(_READING)
        work.perform(self._tx(connection), self)
        connection.execute("ROLLBACK")
        self._hand_back((work,))

    def _write(self, connection: Wire, work: Work) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            tx = self._tx(connection)
            if self._attempt(connection, tx, work) or attempt == ATTEMPTS:
                self._order.leave(tx, work)
                return
            self._order.leave(tx)

    def _attempt(self, connection: Wire, tx: Tx, work: Work) -> bool:
        """False when the work should be tried again."""
        try:
            connection.execute(_WRITING)
            work.perform(tx, self)
            if work.error is not None:
                connection.execute("ROLLBACK")
                return not _asks_again(work.error)
            self._notify(tx)
            connection.execute("COMMIT")
        except psycopg.Error:
            self._order.leave(tx)
            raise
        return True

    def _tx(self, connection: Wire) -> Tx:
        return Tx(connection.cursor(), self, self._clock, self._new_id)

    def _notify(self, tx: Tx) -> None:
        for payload in _payloads(self.node, tx.events):
            tx.execute(_NOTIFY, channel=CHANNEL, payload=payload)

    # ── hearing of other nodes

    def _listen(self) -> None:
        """A lost line is taken up again. What was missed meanwhile shows as a gap in a place's numbers."""
        while not self._is_closed:
            try:
                with self._connect() as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    connection.execute(f"LISTEN {WORDS}")
                    self._hear(connection)
            except psycopg.Error:
                self._stopping.wait(1)

    def _hear(self, connection: Wire) -> None:
        pieces: dict[str, str] = {}
        """Of each other node, what has come so far of the text it is saying."""
        while not self._is_closed:
            for notice in connection.notifies(timeout=5, stop_after=1):
                node, _, rest = notice.payload.partition("\n")
                if node == self.node:
                    continue
                if notice.channel == CHANNEL:
                    self._fetch(rest.splitlines())
                    continue
                left, _, piece = rest.partition("\n")
                pieces[node] = pieces.get(node, "") + piece
                if left == "0":
                    self._pass_on(pieces.pop(node))

    def _fetch(self, places: Sequence[str]) -> None:
        future: concurrent.futures.Future[tuple[Event, ...]] = concurrent.futures.Future()
        with suppress(TertuliaError):  # the database is away, or we are closing; followers will find the gap
            self._submit(Work(partial(_new_events, places=places), future, None), is_write=False)
            self._tell(future.result())

    # ── closing

    def close(self) -> None:
        with self._gate:
            if self._is_closed:
                return
            self._is_closed = True
            self._put(Work(self._say_goodbye, concurrent.futures.Future(), None), is_write=True)
            for _ in self._threads:
                self._line.put(None)
        self._stopping.set()
        for thread in (*self._threads, self._listener):
            thread.join()

    def _say_goodbye(self, tx: Tx) -> None:
        """Wakes our own listener, so that it sees that it may stop."""
        tx.execute(_NOTIFY, channel=CHANNEL, payload=self.node)

    # ── what differs from SQLite

    def render(self, statement: TextClause) -> str:
        return _rendered(statement)

    def hold(self, tx: Tx, name: str) -> None:
        tx.execute(_HOLD, name=name)

    def numbered(self, tx: Tx, places: Sequence[str]) -> None:
        self._order.enter(tx, places)

    def say(self, tx: Tx, text: str) -> None:
        """In pieces that a notice can hold; those of one transaction arrive together and in order."""
        tx.execute(_UNKEPT)
        size = (PAYLOAD_LIMIT - 100) // (1 if text.isascii() else 4)
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        for left, piece in zip(reversed(range(len(pieces))), pieces, strict=True):
            tx.execute(_NOTIFY, channel=WORDS, payload=f"{self.node}\n{left}\n{piece}")

    def ahead_ms(self, tx: Tx) -> int:
        """How far, at least, the clock here is ahead of the database's own; however long the answer took."""
        before, theirs, after = self._clock(), int(tx.one(_ITS_CLOCK).now), self._clock()
        return max(0, before - theirs) + min(0, after - theirs)

    def survey(self, tx: Tx) -> None:
        """The planner goes by what a table held when it was last looked over: unasked, a minute ago."""
        for row in tx.execute(_OUTGROWN):
            tx.execute(_LOOK_OVER[row.name])

    def translate(self, error: Exception) -> TertuliaError | None:
        state = getattr(error, "sqlstate", None)
        if state is None:
            return _lost(error) if isinstance(error, psycopg.OperationalError) else None
        if state in _BUSY or state.startswith("08"):
            return _lost(error)
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


_AGAIN = ("40001", "40P01")
"""Serialisation failure and deadlock: the same work will do next time."""

_BUSY = frozenset((*_AGAIN, "55P03", "57014", "53300", "57P01", "57P02", "57P03"))

_HOLD = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")

_ITS_CLOCK = text("SELECT CAST(1000 * EXTRACT(EPOCH FROM clock_timestamp()) AS BIGINT) AS now")

_SEARCHED = ("content_chunks", "chunk_vectors")

# A fifth larger, and a megabyte, than when it was looked over. Asking costs next to nothing.
_OUTGROWN = text(f"""
    SELECT relname AS name FROM pg_class
    WHERE oid IN ({", ".join(f"CAST('{name}' AS REGCLASS)" for name in _SEARCHED)})
        AND pg_relation_size(oid) > 1.2 * relpages * CAST(current_setting('block_size') AS BIGINT) + 1048576
""")

# Another server, or the database by itself, may be at it.
_LOOK_OVER = {name: text(f"ANALYZE (SKIP_LOCKED) {name}") for name in _SEARCHED}

_UNKEPT = text("SET LOCAL synchronous_commit TO off")
"""What is only said is not worth waiting for a disk."""

_NOTIFY = text("SELECT pg_notify(:channel, :payload)")


def _drop(connection: Wire | None) -> None:
    """The next piece of work gets a fresh one."""
    if connection is not None:
        connection.close()


def _lost(error: BaseException) -> Busy:
    busy = Busy("The database cannot be reached just now. Try again in a moment.")
    busy.__cause__ = error
    return busy


def _asks_again(error: Exception) -> bool:
    return getattr(error.__cause__, "sqlstate", None) in _AGAIN


def _payloads(node: str, fresh: Sequence[Event]) -> list[str]:
    """Who wrote, then one line per place: its name, its first new number and its last."""
    spans: dict[str, tuple[int, int]] = {}
    for event in fresh:
        first, _ = spans.get(event.place, (event.number, 0))
        spans[event.place] = (first, event.number)
    payloads: list[str] = []
    for place, (first, last) in spans.items():
        line = f"\n{place} {first} {last}"
        if not payloads or len(payloads[-1]) + len(line) > PAYLOAD_LIMIT:
            payloads.append(node)
        payloads[-1] += line
    return payloads


def _new_events(tx: Tx, places: Sequence[str]) -> tuple[Event, ...]:
    fresh: list[Event] = []
    for line in places:
        place, first, last = line.rsplit(" ", 2)
        fresh += events.after(tx, place, int(first) - 1, int(last) - int(first) + 1)
    return tuple(fresh)


@cache
def _rendered(statement: TextClause) -> str:
    return str(statement.compile(dialect=postgresql.psycopg.dialect()))  # type: ignore[no-untyped-call]
