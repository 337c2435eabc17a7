"""Database: transactions, events after the commit, one owner of a SQLite file, and failures."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tertulia.core.errors import (
    Busy,
    CannotStart,
    DatabaseInUse,
    NotFound,
    StorageFailed,
    StorageFull,
    TertuliaError,
)
from tertulia.core.events import Event, EventKind
from tertulia.store import config, events
from tertulia.store.database import Database, Tx
from tertulia.store.sql import sql
from tertulia.store.transaction_task import WAITING_LIMIT
from tests.patience import PATIENCE_S, soon
from tests.store_fixtures import Clock, Ids, contents


def set_key(tx: Tx, key: str, value: object = 1) -> None:
    config.set(tx, key, value)
    tx.emit("config", EventKind.CHANGED, "setting", key, {"value": value})


def set_keys(tx: Tx, *keys: str) -> None:
    for key in keys:
        set_key(tx, key)


async def keys(db: Database) -> list[str]:
    return list(await db.read(config.get_all))


def set_and_fail(tx: Tx) -> None:
    set_key(tx, "half done")
    raise RuntimeError("in the middle")


# ── transactions


async def test_a_committed_write_is_read_back(db: Database) -> None:
    await db.write(lambda tx: set_key(tx, "a"))
    assert await keys(db) == ["a"]


async def test_failing_work_is_rolled_back_and_raises_its_error(db: Database) -> None:
    received: list[Event] = []
    db.on_commit(received.extend)
    with pytest.raises(RuntimeError, match="in the middle"):
        await db.write(set_and_fail)
    assert await keys(db) == []
    assert received == []
    assert await db.read(lambda tx: events.last_number(tx, "config")) == 0


async def test_listeners_get_events_on_the_event_loop_before_the_writer_continues(db: Database) -> None:
    received: list[tuple[int, str]] = []
    db.on_commit(lambda events: received.extend((threading.get_ident(), event.id) for event in events))
    await db.write(lambda tx: set_keys(tx, "b", "a"))
    assert received == [(threading.get_ident(), "b"), (threading.get_ident(), "a")]


async def test_a_listener_gets_events_only_after_the_commit(db: Database, database_url: str) -> None:
    keys_at_event: list[list[str]] = []
    db.on_commit(lambda _: keys_at_event.append(list(db.read_now(config.get_all))))
    await db.write(lambda tx: set_key(tx, "a"))
    assert keys_at_event == [["a"]]


async def test_the_time_does_not_change_within_a_transaction(db: Database, clock: Clock) -> None:
    def read_time_twice(tx: Tx) -> tuple[int, int]:
        before = tx.now
        clock.forward(5)
        return before, tx.now

    before, after = await db.write(read_time_twice)
    assert before == after == clock.now - 5


async def test_a_read_sees_a_snapshot_and_cannot_write(db: Database) -> None:
    with pytest.raises(TertuliaError):
        await db.read(lambda tx: set_key(tx, "a"))

    def read_keys_twice(tx: Tx) -> tuple[list[str], list[str]]:
        before = list(config.get_all(tx))
        db.write_now(lambda write_tx: set_key(write_tx, "meanwhile"))
        return before, list(config.get_all(tx))

    assert await db.read(read_keys_twice) == ([], [])
    assert await keys(db) == ["meanwhile"]


def test_reads_and_writes_work_without_an_event_loop(db: Database) -> None:
    db.write_now(lambda tx: set_key(tx, "a"))
    assert db.read_now(config.get_all) == {"a": 1}
    with pytest.raises(NotFound):
        db.read_now(lambda tx: tx.one(sql("SELECT 1 AS one WHERE 1 = 2")))


async def test_a_cancelled_write_does_not_disturb_later_writes(db: Database) -> None:
    waiting = asyncio.ensure_future(db.write(lambda tx: set_key(tx, "a")))
    await asyncio.sleep(0)
    waiting.cancel()
    await db.write(lambda tx: set_key(tx, "b"))
    assert "b" in await keys(db)


async def test_a_closed_database_refuses_reads_and_writes(db: Database) -> None:
    db.close()
    with pytest.raises(Busy):
        await db.write(lambda tx: set_key(tx, "a"))
    with pytest.raises(Busy):
        await db.read(config.get_all)


def test_an_address_of_an_unsupported_database_is_refused(clock: Clock, ids: Ids) -> None:
    with pytest.raises(CannotStart, match="sqlite:///"):
        Database.open("mysql://somewhere", clock=clock, new_id=ids)


async def test_the_database_reports_its_name_and_version(db: Database, database_url: str) -> None:
    name, number = db.version.split()
    assert name.lower() in ("sqlite", "postgresql")
    assert number[0].isdigit()


# ── SQLite: commits in groups, one owner


@pytest.fixture(name="sqlite")
def sqlite_alone(sqlite_url: str, clock: Clock, ids: Ids) -> Iterator[Database]:
    db = Database.open(sqlite_url, clock=clock, new_id=ids)
    yield db
    db.close()


async def run_in_one_group(db: Database, *works: Callable[[Tx], Any]) -> list[Any]:
    """Queues all works while the writer is busy, so that they are committed in one group."""
    is_busy, may_go_on = threading.Event(), threading.Event()

    def block_writer(tx: Tx) -> None:
        is_busy.set()
        assert may_go_on.wait(5)

    first = asyncio.ensure_future(db.write(block_writer))
    await asyncio.to_thread(is_busy.wait, 5)
    rest = [asyncio.ensure_future(db.write(work)) for work in works]
    await asyncio.sleep(0)
    may_go_on.set()
    await first
    return await asyncio.gather(*rest, return_exceptions=True)


async def test_failing_work_in_a_group_commit_does_not_affect_the_others(sqlite: Database) -> None:
    received: list[Event] = []
    sqlite.on_commit(received.extend)
    before, failed, after = await run_in_one_group(
        sqlite, lambda tx: set_key(tx, "before"), set_and_fail, lambda tx: set_key(tx, "after")
    )
    assert (before, after) == (None, None)
    assert isinstance(failed, RuntimeError)
    assert await keys(sqlite) == ["after", "before"]
    assert [(event.id, event.number) for event in received] == [("before", 1), ("after", 2)]


async def test_a_group_of_writes_is_committed_at_once(sqlite: Database, sqlite_url: str) -> None:
    """Within the group, the last work sees the first one's write; a reader outside does not yet."""

    def read_both(tx: Tx) -> tuple[list[str], list[str]]:
        return list(config.get_all(tx)), list(sqlite.read_now(config.get_all))

    _, (inside, outside) = await run_in_one_group(sqlite, lambda tx: set_key(tx, "a"), read_both)
    assert (inside, outside) == (["a"], [])


async def test_a_full_disk_fails_the_write_and_reading_still_works(sqlite: Database) -> None:
    await sqlite.write(lambda tx: set_key(tx, "kept"))
    limit = sql("PRAGMA max_page_count = 1")
    await sqlite.write(lambda tx: tx.execute(limit))
    outcomes = await run_in_one_group(
        sqlite, lambda tx: set_key(tx, "big", "x" * 1_000_000), lambda tx: set_key(tx, "b")
    )
    assert isinstance(outcomes[0], StorageFull)
    assert (await keys(sqlite))[-1] == "kept"
    await sqlite.write(lambda tx: tx.execute(sql("PRAGMA max_page_count = 1073741823")))
    await sqlite.write(lambda tx: set_key(tx, "later"))
    assert "later" in await keys(sqlite)


async def test_no_write_succeeds_after_a_failed_sync(sqlite: Database) -> None:
    await sqlite.write(lambda tx: set_key(tx, "kept"))

    def fail_to_sync(tx: Tx) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
        raise error

    for work in (fail_to_sync, lambda tx: set_key(tx, "later")):
        with pytest.raises(StorageFailed, match="disk"):
            await sqlite.write(work)
    assert await keys(sqlite) == ["kept"]


async def test_writes_beyond_the_queue_limit_are_refused(sqlite: Database) -> None:
    is_busy, may_go_on = threading.Event(), threading.Event()

    def block_writer(tx: Tx) -> None:
        is_busy.set()
        assert may_go_on.wait(5)

    first = asyncio.ensure_future(sqlite.write(block_writer))
    await asyncio.to_thread(is_busy.wait, 5)
    works = [asyncio.ensure_future(sqlite.write(lambda tx: "done")) for _ in range(WAITING_LIMIT + 3)]
    await asyncio.sleep(0)
    may_go_on.set()
    await first
    outcomes = await asyncio.gather(*works, return_exceptions=True)
    assert outcomes.count("done") == WAITING_LIMIT
    assert [type(outcome) for outcome in outcomes[WAITING_LIMIT:]] == [Busy] * 3


async def test_sqlite_syncs_each_commit_to_disk(sqlite: Database) -> None:
    def pragmas(tx: Tx) -> tuple[str, int, int]:
        [mode], [sync], [foreign_keys] = (
            tx.one(sql(f"PRAGMA {name}")) for name in ("journal_mode", "synchronous", "foreign_keys")
        )
        return mode, sync, foreign_keys

    assert await sqlite.write(pragmas) == ("wal", 2, 1)


async def test_only_the_writer_connection_checkpoints_the_wal(sqlite: Database) -> None:
    pragma = sql("PRAGMA wal_autocheckpoint")
    assert (await sqlite.read(lambda tx: tx.one(pragma)))[0] == 0
    assert (await sqlite.write(lambda tx: tx.one(pragma)))[0] > 0


async def test_a_second_server_on_one_file_is_refused_with_the_first_ones_process_id(
    sqlite: Database, sqlite_url: str, clock: Clock, ids: Ids
) -> None:
    with pytest.raises(DatabaseInUse, match=f"process {os.getpid()}"):
        Database.open(sqlite_url, clock=clock, new_id=ids)
    await sqlite.write(lambda tx: set_key(tx, "undisturbed"))
    sqlite.close()
    reopened = Database.open(sqlite_url, clock=clock, new_id=ids)
    assert await keys(reopened) == ["undisturbed"]
    reopened.close()


def test_only_the_owner_may_read_the_database_file(sqlite: Database, tmp_path: Path) -> None:
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes["tertulia.db"] == 0o600
    assert set(modes.values()) == {0o600}


def test_a_file_that_is_no_database_is_refused_and_not_changed(
    tmp_path: Path, clock: Clock, ids: Ids
) -> None:
    path = tmp_path / "tertulia.db"
    path.write_bytes(b"not a database " * 1000)
    with pytest.raises(CannotStart, match=str(path)):
        Database.open(f"sqlite:///{path}", clock=clock, new_id=ids)
    assert path.read_bytes() == b"not a database " * 1000


async def test_reading_a_damaged_page_fails(sqlite_url: str, clock: Clock, ids: Ids, tmp_path: Path) -> None:
    db = Database.open(sqlite_url, clock=clock, new_id=ids)
    await db.write(lambda tx: set_key(tx, "a", "x" * 500))
    db.close()
    path = tmp_path / "tertulia.db"
    pages = bytearray(path.read_bytes())
    offset = pages.index(b"x" * 500)
    page_start = offset - offset % 4096
    pages[page_start : page_start + 4096] = os.urandom(4096)
    path.write_bytes(pages)
    db = Database.open(sqlite_url, clock=clock, new_id=ids)
    with pytest.raises(StorageFailed):
        await db.read(config.get_all)
    db.close()


def test_the_error_names_a_folder_that_cannot_be_created(clock: Clock, ids: Ids) -> None:
    with pytest.raises(CannotStart, match="/proc/nowhere"):
        Database.open("sqlite:////proc/nowhere/tertulia.db", clock=clock, new_id=ids)


# ── PostgreSQL: several writers, several servers, lost connections


@pytest.fixture(name="postgres")
def postgres_alone(postgres_url: str, clock: Clock, ids: Ids) -> Iterator[Database]:
    db = Database.open(postgres_url, clock=clock, new_id=ids)
    yield db
    db.close()


async def test_a_deadlock_is_retried_and_both_writes_succeed(postgres: Database) -> None:
    both_locked = threading.Barrier(2, timeout=PATIENCE_S)
    attempts: list[str] = []

    def lock_both(tx: Tx, first: str, second: str) -> None:
        attempts.append(first)
        tx.lock(first)
        if len(attempts) <= 2:
            both_locked.wait()
        tx.lock(second)
        set_key(tx, first)

    await asyncio.gather(
        postgres.write(lambda tx: lock_both(tx, "left", "right")),
        postgres.write(lambda tx: lock_both(tx, "right", "left")),
    )
    assert await keys(postgres) == ["left", "right"]
    assert len(attempts) == 3


async def test_a_lost_connection_fails_with_busy_and_the_next_write_reconnects(
    postgres: Database, postgres_url: str
) -> None:
    def cut_connection(tx: Tx) -> None:
        set_key(tx, "lost")
        pid = tx.one(sql("SELECT pg_backend_pid() AS pid")).pid
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
        set_key(tx, "never")

    with pytest.raises(Busy) as raised:
        await postgres.write(cut_connection)
    assert raised.value.retry_after_s > 0
    assert await keys(postgres) == []
    await postgres.write(lambda tx: set_key(tx, "after"))
    assert await keys(postgres) == ["after"]


async def test_a_server_gets_the_events_of_another_server(
    postgres: Database, postgres_url: str, clock: Clock, ids: Ids
) -> None:
    second = Database.open(postgres_url, clock=clock, new_id=ids)
    received: asyncio.Queue[Event] = asyncio.Queue()

    def on_events(events_: Sequence[Event]) -> None:
        for event in events_:
            received.put_nowait(event)

    second.on_commit(on_events)
    await second.read(config.get_all)
    own_events: list[Event] = []
    postgres.on_commit(own_events.extend)
    last = 0
    async with soon():
        while received.empty():  # until the other server's listener has started
            last += 1
            await postgres.write(lambda tx: set_key(tx, "early"))
        number = 0
        while number < last:
            number = (await received.get()).number
        await postgres.write(lambda tx: set_keys(tx, "k1", "k2", "k3"))
        events_ = [await received.get() for _ in range(3)]
    assert events_ == own_events[-3:]
    await asyncio.to_thread(second.close)


async def test_servers_that_write_to_one_topic_get_all_events_in_order(
    postgres: Database, postgres_url: str, clock: Clock, ids: Ids
) -> None:
    second = Database.open(postgres_url, clock=clock, new_id=ids)
    servers = (postgres, second)
    received: tuple[list[int], list[int]] = ([], [])
    has_more = asyncio.Event()

    def on_events(events_: Sequence[Event], numbers: list[int]) -> None:
        numbers.extend(event.number for event in events_)
        has_more.set()

    for server, numbers in zip(servers, received, strict=True):
        server.on_commit(partial(on_events, numbers=numbers))
        await server.read(config.get_all)

    async def wait_for_all() -> int:
        """Waits until both servers have received the newest event; returns its number."""
        last = await postgres.read(lambda tx: events.last_number(tx, "config"))
        while any(last not in numbers for numbers in received):
            has_more.clear()
            await has_more.wait()
        return last

    async with soon():
        while not all(received):  # until the listeners of both servers have started
            for server in servers:
                await server.write(lambda tx: set_key(tx, "early"))
        first_number = await wait_for_all()
        await asyncio.gather(
            *(server.write(lambda tx, n=n: set_key(tx, f"k{n}")) for n in range(40) for server in servers)
        )
        last = await wait_for_all()
    for numbers in received:
        assert [number for number in numbers if number > first_number] == list(
            range(first_number + 1, last + 1)
        )
    await asyncio.to_thread(second.close)


async def test_another_server_gets_every_event_of_a_commit_to_many_topics(
    postgres: Database, postgres_url: str, clock: Clock, ids: Ids
) -> None:
    second = Database.open(postgres_url, clock=clock, new_id=ids)
    topics: set[str] = set()
    done = asyncio.Event()

    def on_events(events_: Sequence[Event]) -> None:
        topics.update(event.topic for event in events_)
        if len(topics) > 400:
            done.set()

    second.on_commit(on_events)
    await second.read(config.get_all)

    def emit_all(tx: Tx) -> None:
        for number in range(401):
            tx.emit(f"conversation:{number:026}", EventKind.CHANGED, "note", "1", {})

    async with soon():
        while not done.is_set():
            await postgres.write(emit_all)
            await asyncio.sleep(0)
    await asyncio.to_thread(second.close)
    assert len(topics) == 401


@pytest.mark.parametrize(
    ("offset_ms", "warning"),
    [(3_600_000, "s ahead of the database's"), (-3_600_000, "s behind the database's"), (0, None)],
)
def test_a_clock_that_differs_from_the_databases_causes_a_warning(
    postgres_url: str, ids: Ids, offset_ms: int, warning: str | None
) -> None:
    db = Database.open(postgres_url, clock=lambda: time.time_ns() // 1_000_000 + offset_ms, new_id=ids)
    actual = db.clock_warning()
    db.close()
    assert actual is None if warning is None else warning in str(actual)


def test_sqlite_never_warns_about_the_clock(sqlite_url: str, clock: Clock, ids: Ids) -> None:
    db = Database.open(sqlite_url, clock=clock, new_id=ids)
    assert db.clock_warning() is None
    db.close()


def test_an_unreachable_postgresql_server_is_reported(clock: Clock, ids: Ids) -> None:
    with pytest.raises(CannotStart, match="PostgreSQL cannot be used"):
        Database.open("postgresql://nobody@/none?host=/nowhere", clock=clock, new_id=ids)


async def test_both_databases_have_the_same_tables(db: Database) -> None:
    assert all(rows == [] for rows in contents(db).values())
