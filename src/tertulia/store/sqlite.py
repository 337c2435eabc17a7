"""SQLite: one process owns the file, one thread writes and checkpoints, a few others read beside it.

Writes that wait together are committed together: each in a savepoint of its own, one COMMIT, one sync.
Only one connection ever writes or checkpoints: SQLite before 3.51.3 can damage a WAL file when two do.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue

from sqlalchemy import Connection, Engine, TextClause, create_engine
from sqlalchemy.pool import StaticPool

from tertulia.core.errors import (
    Busy,
    CannotStart,
    Conflict,
    DatabaseInUse,
    NotFound,
    StorageFailed,
    StorageFull,
    TertuliaError,
)
from tertulia.core.events import Event
from tertulia.core.ids import Clock, NewId
from tertulia.store import migrate
from tertulia.store.nearness import InMemory, Nearness
from tertulia.store.transactions import GONE, Tx, Work, meaning, refuse
from tertulia.store.words import Fts5, Words

READERS = 4
BATCH_LIMIT = 256
BUSY_MS = 5_000
JOURNAL_LIMIT_BYTES = 64 << 20

Line = SimpleQueue[Work | None]


class Sqlite:
    error: type[Exception] = sqlite3.Error
    skip_locked = ""
    words: Words = Fts5()
    nearness: Nearness = InMemory()
    node = "the only one"
    vectors = "compared in the server's memory"
    is_shared = False

    def __init__(
        self, path: str, clock: Clock, new_id: NewId, history: migrate.History = migrate.HISTORY
    ) -> None:
        self.version = f"SQLite {sqlite3.sqlite_version}"
        self._path = Path(path)
        self._clock = clock
        self._new_id = new_id
        self._reads: Line = SimpleQueue()
        self._writes: Line = SimpleQueue()
        self._refusal: StorageFailed | None = None
        self._gate = threading.Lock()
        self._is_closed = False
        self._lock = _lock(self._path)
        try:
            self._writer = self._open_writer(history)
            self._readers = [self._connect(_READER) for _ in range(READERS)]
        except BaseException:
            os.close(self._lock)
            raise

    # ── opening

    def _open_writer(self, history: migrate.History) -> sqlite3.Connection:
        try:
            writer = self._connect(_WRITER)
            if migrate.needed(_revision(writer), history):
                self._migrate(writer, history)
            return writer
        except sqlite3.DatabaseError as error:
            raise CannotStart(
                f"The database file {self._path} cannot be opened: {error}. "
                "It was left as it is. If it is damaged, restore a backup."
            ) from error

    def _connect(self, pragmas: Sequence[str]) -> sqlite3.Connection:
        """Without an isolation level the driver begins and commits nothing of its own accord."""
        connection = sqlite3.connect(
            self._path,
            timeout=BUSY_MS / 1000,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
        )
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def _migrate(self, writer: sqlite3.Connection, history: migrate.History) -> None:
        if _revision(writer) is not None:
            _copy(writer, self._path.with_name(f"{self._path.name}.before-{history.head}"))
        writer.execute("PRAGMA foreign_keys = OFF")  # a step may rebuild a table that others refer to
        with _engine(writer).connect() as wrapped:
            _upgrade(writer, wrapped, history)
        writer.execute("PRAGMA foreign_keys = ON")

    def start(
        self,
        hand_back: Callable[[Sequence[Work]], None],
        tell: Callable[[Sequence[Event]], None],
        pass_on: Callable[[str], None],
    ) -> None:
        """Nobody else writes in this file, so there is nothing to tell but what is handed back."""
        self._hand_back = hand_back
        self._threads = [threading.Thread(target=self._serve_writes, name="tertulia-writer", daemon=True)]
        for reader in self._readers:
            self._threads.append(
                threading.Thread(
                    target=self._serve_reads, args=(reader,), name="tertulia-reader", daemon=True
                )
            )
        for thread in self._threads:
            thread.start()

    # ── reading

    def read(self, work: Work) -> None:
        self._submit(self._reads, work)

    def _submit(self, line: Line, work: Work) -> None:
        with self._gate:
            refuse(self._is_closed, line.qsize())
            line.put(work)

    def _serve_reads(self, reader: sqlite3.Connection) -> None:
        while (work := self._reads.get()) is not None:
            self._look(reader, work)
            self._hand_back((work,))

    def _look(self, reader: sqlite3.Connection, work: Work) -> None:
        try:
            reader.execute("BEGIN")
            work.perform(self._tx(reader), self)
            reader.rollback()
        except sqlite3.Error as error:
            work.fail(meaning(error, self))

    def _tx(self, connection: sqlite3.Connection) -> Tx:
        return Tx(connection.cursor(), self, self._clock, self._new_id)

    # ── writing

    def write(self, work: Work) -> None:
        self._submit(self._writes, work)

    def _serve_writes(self) -> None:
        while batch := self._next_batch():
            self._commit(batch)
            self._hand_back(batch)

    def _next_batch(self) -> list[Work]:
        """All that waits, up to a limit; empty when there will be no more."""
        batch: list[Work] = []
        work = self._writes.get()
        while work is not None:
            batch.append(work)
            if len(batch) == BATCH_LIMIT:
                return batch
            try:
                work = self._writes.get_nowait()
            except Empty:
                return batch
        if batch:
            self._writes.put(None)
        return batch

    def _commit(self, batch: Sequence[Work]) -> None:
        try:
            if self._refusal is not None:
                raise self._refusal
            self._writer.execute("BEGIN IMMEDIATE")
            if len(batch) == 1:
                self._attempt_alone(batch[0])
                return
            for work in batch:
                self._attempt(work)
            self._writer.execute("COMMIT")
        except (sqlite3.Error, TertuliaError) as error:
            with suppress(sqlite3.Error):  # SQLite may have rolled back already
                self._writer.rollback()
            for work in batch:
                work.fail(meaning(error, self))

    def _attempt_alone(self, work: Work) -> None:
        """No savepoint: SQLite would keep a copy of every page before it changes, for nobody."""
        work.perform(self._tx(self._writer), self)
        if work.error is None:
            self._writer.execute("COMMIT")
        else:
            self._writer.rollback()

    def _attempt(self, work: Work) -> None:
        self._writer.execute("SAVEPOINT work")
        work.perform(self._tx(self._writer), self)
        if work.error is not None:
            if not self._writer.in_transaction:  # SQLite gave up all of it, and with it the others' work
                raise work.error if isinstance(work.error, TertuliaError) else Busy(_LOST)
            self._writer.execute("ROLLBACK TO work")
        self._writer.execute("RELEASE work")

    # ── closing

    def close(self) -> None:
        """Readers go first: whoever closes last checkpoints, and that must be the writer."""
        with self._gate:
            if self._is_closed:
                return
            self._is_closed = True
            for _ in self._readers:
                self._reads.put(None)
            self._writes.put(None)
        for thread in self._threads:
            thread.join()
        for connection in (*self._readers, self._writer):
            connection.close()
        os.close(self._lock)

    # ── what differs from PostgreSQL

    def render(self, statement: TextClause) -> str:
        return statement.text

    def hold(self, tx: Tx, name: str) -> None:
        """Only one thread writes: everything is held already."""

    def numbered(self, tx: Tx, places: Sequence[str]) -> None:
        """One thread writes and hands back: the order is right already."""

    def say(self, tx: Tx, text: str) -> None:
        """Nobody else has this file."""

    def ahead_ms(self, tx: Tx) -> int:
        """It has no clock of its own."""
        return 0

    def survey(self, tx: Tx) -> None:
        """Its plans go by the statements alone."""

    def translate(self, error: Exception) -> TertuliaError | None:
        code = getattr(error, "sqlite_errorcode", 0)
        match code & 0xFF:
            case sqlite3.SQLITE_FULL:
                return StorageFull("The disk is full. Nothing was saved; make room and try again.")
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return Busy("The database is busy. Try again in a moment.")
            case (
                sqlite3.SQLITE_IOERR
                | sqlite3.SQLITE_CORRUPT
                | sqlite3.SQLITE_READONLY
                | sqlite3.SQLITE_NOTADB
            ):
                return self._failed(error, code)
            case sqlite3.SQLITE_CONSTRAINT if code == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
                return NotFound(GONE)
            case sqlite3.SQLITE_CONSTRAINT:
                return Conflict("Something else is already there under this name or id.")
        return None

    def _failed(self, error: Exception, code: int) -> StorageFailed:
        failed = StorageFailed(f"The database file cannot be used: {error}. Look at the disk it is on.")
        if code in (sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC):
            # After a failed sync nobody knows what is on the disk; going on might acknowledge what is lost.
            self._refusal = failed
        return failed


_LOST = "The database cancelled the write. Nothing was saved; try again."

_WRITER = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    f"journal_size_limit = {JOURNAL_LIMIT_BYTES}",
)

_READER = ("query_only = ON", "wal_autocheckpoint = 0")


def _lock(path: Path) -> int:
    """Takes the file that says this database has an owner; the system lets go of it when the process ends."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise CannotStart(f"The database {path} cannot be opened: {error.strerror}.") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        owner = os.read(lock, 20).decode(errors="replace").strip() or "unknown"
        os.close(lock)
        raise DatabaseInUse(
            f"Another Tertulia (process {owner}) is using {path}. "
            "Stop it first, or give this one another data folder."
        ) from error
    os.truncate(lock, 0)
    os.write(lock, f"{os.getpid()}\n".encode())
    return lock


def _revision(connection: sqlite3.Connection) -> str | None:
    """Reading the schema also finds out whether the file is a database at all."""
    exists = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
    return migrate.revision_of(connection) if exists else None


def _upgrade(connection: sqlite3.Connection, wrapped: Connection, history: migrate.History) -> None:
    """The wrapping rolls back when it begins and when it ends, so all of ours happens in between."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        migrate.upgrade(wrapped, history)
        if connection.execute("PRAGMA foreign_key_check").fetchone():
            raise CannotStart("The upgrade would leave rows without their parents. Nothing was changed.")
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def _engine(connection: sqlite3.Connection) -> Engine:
    """For Alembic, which knows databases through SQLAlchemy only; closing it leaves our connection open."""
    return create_engine(
        "sqlite://", creator=lambda: connection, poolclass=StaticPool, isolation_level="AUTOCOMMIT"
    )


def _copy(connection: sqlite3.Connection, target: Path) -> None:
    """A copy that was read back, before anything is changed."""
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600))
    copy = sqlite3.connect(target)
    try:
        connection.backup(copy)
        if copy.execute("PRAGMA quick_check").fetchone() != ("ok",):
            raise CannotStart(
                f"The copy {target} taken before the upgrade is not sound. Nothing was changed."
            )
    finally:
        copy.close()
