"""SQLite backend: one process owns the file; one thread writes and checkpoints, four others read.

Group commit: writes that wait together are committed together, each in its own savepoint, with one sync.
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
from tertulia.store.sql import Statement
from tertulia.store.text_index import Fts5, TextIndex
from tertulia.store.transaction_task import TransactionTask, check_capacity, to_app_error
from tertulia.store.transactions import GONE, Tx
from tertulia.store.vector_index import NoVectorIndex, VectorIndex

READERS = 4
BATCH_LIMIT = 256
BUSY_MS = 5_000
JOURNAL_LIMIT_BYTES = 64 << 20

TaskQueue = SimpleQueue[TransactionTask | None]


class Sqlite:
    error: type[Exception] = sqlite3.Error
    skip_locked = ""
    text_index: TextIndex = Fts5()
    vector_index: VectorIndex = NoVectorIndex()
    node = "the only one"
    vectors = "compared in the server's memory"
    is_shared = False

    def __init__(
        self, path: str, clock: Clock, new_id: NewId, history: migrate.MigrationHistory = migrate.HISTORY
    ) -> None:
        self.version = f"SQLite {sqlite3.sqlite_version}"
        self._path = Path(path)
        self._clock = clock
        self._new_id = new_id
        self._reads: TaskQueue = SimpleQueue()
        self._writes: TaskQueue = SimpleQueue()
        self._write_error: StorageFailed | None = None
        self._state_lock = threading.Lock()
        self._is_closed = False
        self._lock_descriptor = _lock_file(self._path)
        try:
            self._writer = self._open_writer(history)
            self._readers = [self._connect(_READER) for _ in range(READERS)]
        except BaseException:
            os.close(self._lock_descriptor)
            raise

    # ── opening

    def _open_writer(self, history: migrate.MigrationHistory) -> sqlite3.Connection:
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
        """Opens a connection. Without an isolation level the driver begins and commits nothing by itself."""
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

    def _migrate(self, writer: sqlite3.Connection, history: migrate.MigrationHistory) -> None:
        if _revision(writer) is not None:
            _copy(writer, self._path.with_name(f"{self._path.name}.before-{history.head}"))
        writer.execute("PRAGMA foreign_keys = OFF")  # a migration may rebuild a table that others refer to
        _upgrade(writer, history)
        writer.execute("PRAGMA foreign_keys = ON")

    def start(
        self,
        on_done: Callable[[Sequence[TransactionTask]], None],
        on_events: Callable[[Sequence[Event]], None],
        on_message: Callable[[str], None],
    ) -> None:
        """Starts the threads.

        No other process writes to the file, so all events come with finished tasks, and `on_events` and
        `on_message` are never called.
        """
        self._on_done = on_done
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

    def read(self, task: TransactionTask) -> None:
        self._submit(self._reads, task)

    def _submit(self, queue: TaskQueue, task: TransactionTask) -> None:
        with self._state_lock:
            check_capacity(self._is_closed, queue.qsize())
            queue.put(task)

    def _serve_reads(self, reader: sqlite3.Connection) -> None:
        while (task := self._reads.get()) is not None:
            self._perform_read(reader, task)
            self._on_done((task,))

    def _perform_read(self, reader: sqlite3.Connection, task: TransactionTask) -> None:
        try:
            reader.execute("BEGIN")
            task.perform(self._tx(reader), self)
            reader.rollback()
        except sqlite3.Error as error:
            task.fail(to_app_error(error, self))

    def _tx(self, connection: sqlite3.Connection) -> Tx:
        return Tx(connection.cursor(), self, self._clock, self._new_id)

    # ── writing

    def write(self, task: TransactionTask) -> None:
        self._submit(self._writes, task)

    def _serve_writes(self) -> None:
        while batch := self._next_batch():
            self._commit(batch)
            self._on_done(batch)

    def _next_batch(self) -> list[TransactionTask]:
        """All waiting writes, up to BATCH_LIMIT; empty when the backend is closing."""
        batch: list[TransactionTask] = []
        task = self._writes.get()
        while task is not None:
            batch.append(task)
            if len(batch) == BATCH_LIMIT:
                return batch
            try:
                task = self._writes.get_nowait()
            except Empty:
                return batch
        if batch:
            self._writes.put(None)
        return batch

    def _commit(self, batch: Sequence[TransactionTask]) -> None:
        try:
            if self._write_error is not None:
                raise self._write_error
            self._writer.execute("BEGIN IMMEDIATE")
            if len(batch) == 1:
                self._attempt_alone(batch[0])
                return
            for task in batch:
                self._attempt(task)
            self._writer.execute("COMMIT")
        except (sqlite3.Error, TertuliaError) as error:
            with suppress(sqlite3.Error):  # SQLite may have rolled back already
                self._writer.rollback()
            for task in batch:
                task.fail(to_app_error(error, self))

    def _attempt_alone(self, task: TransactionTask) -> None:
        """Runs a single write. A savepoint would make SQLite copy each page before it is changed."""
        task.perform(self._tx(self._writer), self)
        if task.error is None:
            self._writer.execute("COMMIT")
        else:
            self._writer.rollback()

    def _attempt(self, task: TransactionTask) -> None:
        self._writer.execute("SAVEPOINT task")
        task.perform(self._tx(self._writer), self)
        if task.error is not None:
            if not self._writer.in_transaction:  # SQLite rolled back the transaction with the other tasks
                raise task.error if isinstance(task.error, TertuliaError) else Busy(_ROLLED_BACK)
            self._writer.execute("ROLLBACK TO task")
        self._writer.execute("RELEASE task")

    # ── closing

    def close(self) -> None:
        """Closes the readers first: the last connection to close checkpoints, and that must be the writer."""
        with self._state_lock:
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
        os.close(self._lock_descriptor)

    # ── what differs from PostgreSQL

    def render(self, statement: Statement) -> str:
        return statement.text

    def lock(self, tx: Tx, name: str) -> None:
        """Does nothing: only one thread writes, so it needs no lock."""

    def register_commit_order(self, tx: Tx, topics: Sequence[str]) -> None:
        """Does nothing: one thread writes and returns all tasks, so they are in commit order already."""

    def notify(self, tx: Tx, text: str) -> None:
        """Does nothing: no other node uses this file."""

    def ahead_ms(self, tx: Tx) -> int:
        """Always 0: SQLite has no clock of its own."""
        return 0

    def analyze(self, tx: Tx) -> None:
        """Does nothing: SQLite plans our statements well without statistics."""

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
        failed = StorageFailed(f"The database file cannot be used: {error}. Check the disk it is on.")
        if code in (sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC):
            # After a failed sync the state of the disk is unknown: later writes might be confirmed and lost.
            self._write_error = failed
        return failed


_ROLLED_BACK = "The database cancelled the write. Nothing was saved; try again."

_WRITER = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    f"journal_size_limit = {JOURNAL_LIMIT_BYTES}",
)

_READER = ("query_only = ON", "wal_autocheckpoint = 0")


def _lock_file(path: Path) -> int:
    """Locks the file that marks the database as in use; the system unlocks it when the process ends."""
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
    """The schema revision. Reading it also finds out whether the file is a database at all."""
    exists = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
    return migrate.revision_of(connection) if exists else None


def _upgrade(connection: sqlite3.Connection, history: migrate.MigrationHistory) -> None:
    """Runs the missing migrations in one transaction and checks the foreign keys before it commits."""
    with migrate.for_alembic(connection, "sqlite://") as wrapped:
        connection.execute("BEGIN IMMEDIATE")
        try:
            migrate.upgrade(wrapped, history)
            if connection.execute("PRAGMA foreign_key_check").fetchone():
                raise CannotStart("The upgrade would leave rows without their parents. Nothing was changed.")
            connection.execute("COMMIT")
        except BaseException:
            connection.rollback()
            raise


def _copy(connection: sqlite3.Connection, target: Path) -> None:
    """Copies the database before a migration, and checks the copy."""
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
