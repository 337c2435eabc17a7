"""The database: transactions, events after the commit, one owner, and what happens when something breaks."""

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
from sqlalchemy import text

from tertulia.core.errors import (
    Busy,
    CannotStart,
    DatabaseInUse,
    NotFound,
    StorageFailed,
    StorageFull,
    TertuliaError,
)
from tertulia.core.events import Event, Kind
from tertulia.store import config, events
from tertulia.store.database import Database, Tx
from tertulia.store.transactions import WAITING_LIMIT
from tests.patience import PATIENCE_S, soon
from tests.store_fixtures import Clock, Ids, contents


def put(tx: Tx, key: str, value: object = 1) -> None:
    config.set(tx, key, value)
    tx.emit("config", Kind.CHANGED, "setting", key, {"value": value})


def put_all(tx: Tx, *keys: str) -> None:
    for key in keys:
        put(tx, key)


async def keys(db: Database) -> list[str]:
    return list(await db.read(config.get_all))


def fail(tx: Tx) -> None:
    put(tx, "half done")
    raise RuntimeError("in the middle")


# ── one transaction each


async def test_what_is_written_is_read(db: Database) -> None:
    await db.write(lambda tx: put(tx, "a"))
    assert await keys(db) == ["a"]


async def test_work_that_fails_leaves_nothing_and_says_why(db: Database) -> None:
    heard: list[Event] = []
    db.on_commit(heard.extend)
    with pytest.raises(RuntimeError, match="in the middle"):
        await db.write(fail)
    assert await keys(db) == []
    assert heard == []
    assert await db.read(lambda tx: events.last_number(tx, "config")) == 0


async def test_events_are_heard_on_the_loop_before_the_writer_goes_on(db: Database) -> None:
    heard: list[tuple[int, str]] = []
    db.on_commit(lambda news: heard.extend((threading.get_ident(), event.id) for event in news))
    await db.write(lambda tx: put_all(tx, "b", "a"))
    assert heard == [(threading.get_ident(), "b"), (threading.get_ident(), "a")]


async def test_a_listener_hears_only_what_is_committed(db: Database, database_url: str) -> None:
    seen: list[list[str]] = []
    db.on_commit(lambda _: seen.append(list(db.read_now(config.get_all))))
    await db.write(lambda tx: put(tx, "a"))
    assert seen == [["a"]]


async def test_time_stands_still_within_a_transaction(db: Database, clock: Clock) -> None:
    def look_twice(tx: Tx) -> tuple[int, int]:
        before = tx.now
        clock.forward(5)
        return before, tx.now

    before, after = await db.write(look_twice)
    assert before == after == clock.now - 5


async def test_a_read_sees_one_moment_and_cannot_write(db: Database) -> None:
    with pytest.raises(TertuliaError):
        await db.read(lambda tx: put(tx, "a"))

    def look_twice(tx: Tx) -> tuple[list[str], list[str]]:
        before = list(config.get_all(tx))
        db.write_now(lambda other: put(other, "meanwhile"))
        return before, list(config.get_all(tx))

    assert await db.read(look_twice) == ([], [])
    assert await keys(db) == ["meanwhile"]


def test_a_terminal_waits_where_a_server_awaits(db: Database) -> None:
    db.write_now(lambda tx: put(tx, "a"))
    assert db.read_now(config.get_all) == {"a": 1}
    with pytest.raises(NotFound):
        db.read_now(lambda tx: tx.one(text("SELECT 1 AS one WHERE 1 = 2")))


async def test_whoever_stops_waiting_disturbs_nobody(db: Database) -> None:
    waiting = asyncio.ensure_future(db.write(lambda tx: put(tx, "a")))
    await asyncio.sleep(0)
    waiting.cancel()
    await db.write(lambda tx: put(tx, "b"))
    assert "b" in await keys(db)


async def test_a_closed_database_takes_no_work(db: Database) -> None:
    db.close()
    with pytest.raises(Busy):
        await db.write(lambda tx: put(tx, "a"))
    with pytest.raises(Busy):
        await db.read(config.get_all)


def test_an_address_of_another_kind_is_refused(clock: Clock, ids: Ids) -> None:
    with pytest.raises(CannotStart, match="sqlite:///"):
        Database.open("mysql://somewhere", clock=clock, new_id=ids)


async def test_the_running_version_is_reported(db: Database, database_url: str) -> None:
    name, number = db.version.split()
    assert name.lower() in ("sqlite", "postgresql")
    assert number[0].isdigit()


# ── SQLite: commits in groups, one owner


@pytest.fixture(name="sqlite")
def sqlite_alone(sqlite_url: str, clock: Clock, ids: Ids) -> Iterator[Database]:
    opened = Database.open(sqlite_url, clock=clock, new_id=ids)
    yield opened
    opened.close()


async def together(db: Database, *works: Callable[[Tx], Any]) -> list[Any]:
    """Has all of them wait while the writer is busy, so that they are committed in one group."""
    busy, go_on = threading.Event(), threading.Event()

    def hold_up(tx: Tx) -> None:
        busy.set()
        assert go_on.wait(5)

    first = asyncio.ensure_future(db.write(hold_up))
    await asyncio.to_thread(busy.wait, 5)
    rest = [asyncio.ensure_future(db.write(work)) for work in works]
    await asyncio.sleep(0)
    go_on.set()
    await first
    return await asyncio.gather(*rest, return_exceptions=True)


async def test_in_a_group_one_that_fails_leaves_the_others(sqlite: Database) -> None:
    heard: list[Event] = []
    sqlite.on_commit(heard.extend)
    before, failed, after = await together(
        sqlite, lambda tx: put(tx, "before"), fail, lambda tx: put(tx, "after")
    )
    assert (before, after) == (None, None)
    assert isinstance(failed, RuntimeError)
    assert await keys(sqlite) == ["after", "before"]
    assert [(event.id, event.number) for event in heard] == [("before", 1), ("after", 2)]


async def test_a_group_is_committed_as_one(sqlite: Database, sqlite_url: str) -> None:
    """Inside the group, the last sees what the first wrote while nobody outside does."""

    def look(tx: Tx) -> tuple[list[str], list[str]]:
        return list(config.get_all(tx)), list(sqlite.read_now(config.get_all))

    _, (inside, outside) = await together(sqlite, lambda tx: put(tx, "a"), look)
    assert (inside, outside) == (["a"], [])


async def test_when_the_disk_is_full_the_group_is_told_and_reading_goes_on(sqlite: Database) -> None:
    await sqlite.write(lambda tx: put(tx, "kept"))
    limit = text("PRAGMA max_page_count = 1")
    await sqlite.write(lambda tx: tx.execute(limit))
    outcomes = await together(sqlite, lambda tx: put(tx, "big", "x" * 1_000_000), lambda tx: put(tx, "b"))
    assert isinstance(outcomes[0], StorageFull)
    assert (await keys(sqlite))[-1] == "kept"
    await sqlite.write(lambda tx: tx.execute(text("PRAGMA max_page_count = 1073741823")))
    await sqlite.write(lambda tx: put(tx, "later"))
    assert "later" in await keys(sqlite)


async def test_after_a_failed_sync_nothing_more_is_acknowledged(sqlite: Database) -> None:
    await sqlite.write(lambda tx: put(tx, "kept"))

    def lose_the_disk(tx: Tx) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
        raise error

    for work in (lose_the_disk, lambda tx: put(tx, "later")):
        with pytest.raises(StorageFailed, match="disk"):
            await sqlite.write(work)
    assert await keys(sqlite) == ["kept"]


async def test_work_nobody_could_wait_for_is_refused(sqlite: Database) -> None:
    busy, go_on = threading.Event(), threading.Event()

    def hold_up(tx: Tx) -> None:
        busy.set()
        assert go_on.wait(5)

    first = asyncio.ensure_future(sqlite.write(hold_up))
    await asyncio.to_thread(busy.wait, 5)
    works = [asyncio.ensure_future(sqlite.write(lambda tx: "done")) for _ in range(WAITING_LIMIT + 3)]
    await asyncio.sleep(0)
    go_on.set()
    await first
    outcomes = await asyncio.gather(*works, return_exceptions=True)
    assert outcomes.count("done") == WAITING_LIMIT
    assert [type(refused) for refused in outcomes[WAITING_LIMIT:]] == [Busy] * 3


async def test_what_is_acknowledged_is_on_the_disk(sqlite: Database) -> None:
    def durability(tx: Tx) -> tuple[str, int, int]:
        [mode], [sync], [keys] = (
            tx.one(text(f"PRAGMA {name}")) for name in ("journal_mode", "synchronous", "foreign_keys")
        )
        return mode, sync, keys

    assert await sqlite.write(durability) == ("wal", 2, 1)


async def test_only_the_writer_checkpoints(sqlite: Database) -> None:
    pragma = text("PRAGMA wal_autocheckpoint")
    assert (await sqlite.read(lambda tx: tx.one(pragma)))[0] == 0
    assert (await sqlite.write(lambda tx: tx.one(pragma)))[0] > 0


async def test_a_second_server_is_refused_by_name(
    sqlite: Database, sqlite_url: str, clock: Clock, ids: Ids
) -> None:
    with pytest.raises(DatabaseInUse, match=f"process {os.getpid()}"):
        Database.open(sqlite_url, clock=clock, new_id=ids)
    await sqlite.write(lambda tx: put(tx, "undisturbed"))
    sqlite.close()
    again = Database.open(sqlite_url, clock=clock, new_id=ids)
    assert await keys(again) == ["undisturbed"]
    again.close()


def test_nobody_else_can_read_the_file(sqlite: Database, tmp_path: Path) -> None:
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes["tertulia.db"] == 0o600
    assert set(modes.values()) == {0o600}


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, clock: Clock, ids: Ids) -> None:
    path = tmp_path / "tertulia.db"
    path.write_bytes(b"not a database " * 1000)
    with pytest.raises(CannotStart, match=str(path)):
        Database.open(f"sqlite:///{path}", clock=clock, new_id=ids)
    assert path.read_bytes() == b"not a database " * 1000


async def test_a_page_that_was_damaged_is_not_served(
    sqlite_url: str, clock: Clock, ids: Ids, tmp_path: Path
) -> None:
    db = Database.open(sqlite_url, clock=clock, new_id=ids)
    await db.write(lambda tx: put(tx, "a", "x" * 500))
    db.close()
    path = tmp_path / "tertulia.db"
    pages = bytearray(path.read_bytes())
    at = pages.index(b"x" * 500)
    page = at - at % 4096
    pages[page : page + 4096] = os.urandom(4096)
    path.write_bytes(pages)
    db = Database.open(sqlite_url, clock=clock, new_id=ids)
    with pytest.raises(StorageFailed):
        await db.read(config.get_all)
    db.close()


def test_a_folder_that_cannot_be_made_is_named(clock: Clock, ids: Ids) -> None:
    with pytest.raises(CannotStart, match="/proc/nowhere"):
        Database.open("sqlite:////proc/nowhere/tertulia.db", clock=clock, new_id=ids)


# ── PostgreSQL: several writers, several nodes, lines that break


@pytest.fixture(name="postgres")
def postgres_alone(postgres_url: str, clock: Clock, ids: Ids) -> Iterator[Database]:
    opened = Database.open(postgres_url, clock=clock, new_id=ids)
    yield opened
    opened.close()


async def test_two_that_wait_for_each_other_are_tried_again_unseen(postgres: Database) -> None:
    both = threading.Barrier(2, timeout=PATIENCE_S)
    tries: list[str] = []

    def hold(tx: Tx, first: str, second: str) -> None:
        tries.append(first)
        tx.hold(first)
        if len(tries) <= 2:
            both.wait()
        tx.hold(second)
        put(tx, first)

    await asyncio.gather(
        postgres.write(lambda tx: hold(tx, "left", "right")),
        postgres.write(lambda tx: hold(tx, "right", "left")),
    )
    assert await keys(postgres) == ["left", "right"]
    assert len(tries) == 3


async def test_a_lost_line_is_busy_and_then_taken_up_again(postgres: Database, postgres_url: str) -> None:
    def cut(tx: Tx) -> None:
        put(tx, "lost")
        pid = tx.one(text("SELECT pg_backend_pid() AS pid")).pid
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", (pid,))
        put(tx, "never")

    with pytest.raises(Busy) as refused:
        await postgres.write(cut)
    assert refused.value.retry_after_s > 0
    assert await keys(postgres) == []
    await postgres.write(lambda tx: put(tx, "after"))
    assert await keys(postgres) == ["after"]


async def test_a_node_hears_what_another_commits(
    postgres: Database, postgres_url: str, clock: Clock, ids: Ids
) -> None:
    other = Database.open(postgres_url, clock=clock, new_id=ids)
    heard: asyncio.Queue[Event] = asyncio.Queue()

    def hear(news: Sequence[Event]) -> None:
        for event in news:
            heard.put_nowait(event)

    other.on_commit(hear)
    await other.read(config.get_all)
    own: list[Event] = []
    postgres.on_commit(own.extend)
    last = 0
    async with soon():
        while heard.empty():  # until its listener has begun to listen
            last += 1
            await postgres.write(lambda tx: put(tx, "early"))
        number = 0
        while number < last:
            number = (await heard.get()).number
        await postgres.write(lambda tx: put_all(tx, "k1", "k2", "k3"))
        news = [await heard.get() for _ in range(3)]
    assert news == own[-3:]
    await asyncio.to_thread(other.close)


async def test_nodes_that_write_in_one_place_hear_everything_in_order(
    postgres: Database, postgres_url: str, clock: Clock, ids: Ids
) -> None:
    other = Database.open(postgres_url, clock=clock, new_id=ids)
    nodes = (postgres, other)
    heard: tuple[list[int], list[int]] = ([], [])
    more = asyncio.Event()

    def hear(news: Sequence[Event], numbers: list[int]) -> None:
        numbers.extend(event.number for event in news)
        more.set()

    for node, numbers in zip(nodes, heard, strict=True):
        node.on_commit(partial(hear, numbers=numbers))
        await node.read(config.get_all)

    async def all_heard() -> int:
        """Both have heard the last there is."""
        last = await postgres.read(lambda tx: events.last_number(tx, "config"))
        while any(last not in numbers for numbers in heard):
            more.clear()
            await more.wait()
        return last

    async with soon():
        while not all(heard):  # until both listeners have begun to listen
            for node in nodes:
                await node.write(lambda tx: put(tx, "early"))
        begun = await all_heard()
        await asyncio.gather(
            *(node.write(lambda tx, n=n: put(tx, f"k{n}")) for n in range(40) for node in nodes)
        )
        last = await all_heard()
    for numbers in heard:
        assert [number for number in numbers if number > begun] == list(range(begun + 1, last + 1))
    await asyncio.to_thread(other.close)


async def test_a_commit_in_many_places_is_heard_whole(
    postgres: Database, postgres_url: str, clock: Clock, ids: Ids
) -> None:
    other = Database.open(postgres_url, clock=clock, new_id=ids)
    heard: set[str] = set()
    done = asyncio.Event()

    def hear(news: Sequence[Event]) -> None:
        heard.update(event.place for event in news)
        if len(heard) > 400:
            done.set()

    other.on_commit(hear)
    await other.read(config.get_all)

    def say(tx: Tx) -> None:
        for number in range(401):
            tx.emit(f"conversation:{number:026}", Kind.CHANGED, "note", "1", {})

    async with soon():
        while not done.is_set():
            await postgres.write(say)
            await asyncio.sleep(0)
    await asyncio.to_thread(other.close)
    assert len(heard) == 401


@pytest.mark.parametrize(
    ("off_ms", "told"),
    [(3_600_000, "s ahead of the database's"), (-3_600_000, "s behind the database's"), (0, None)],
)
def test_a_clock_that_is_not_the_databases_is_told(
    postgres_url: str, ids: Ids, off_ms: int, told: str | None
) -> None:
    db = Database.open(postgres_url, clock=lambda: time.time_ns() // 1_000_000 + off_ms, new_id=ids)
    trouble = db.clock_trouble()
    db.close()
    assert trouble is None if told is None else told in str(trouble)


def test_a_file_knows_no_other_clock(sqlite_url: str, clock: Clock, ids: Ids) -> None:
    db = Database.open(sqlite_url, clock=clock, new_id=ids)
    assert db.clock_trouble() is None
    db.close()


def test_a_server_that_is_not_there_is_named(clock: Clock, ids: Ids) -> None:
    with pytest.raises(CannotStart, match="PostgreSQL cannot be used"):
        Database.open("postgresql://nobody@/none?host=/nowhere", clock=clock, new_id=ids)


async def test_both_databases_hold_the_same_tables(db: Database) -> None:
    assert all(rows == [] for rows in contents(db).values())
