"""Blobs: bytes kept once, on disk beside SQLite and in pieces inside PostgreSQL."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import text

from tertulia.core.errors import Conflict, NotFound, StorageFailed
from tertulia.core.files import Content, ProjectFile
from tertulia.core.users import Actor
from tertulia.store import files
from tertulia.store.blobs import GRACE_MS, Blobs
from tertulia.store.database import Database, Tx
from tertulia.store.incoming import ROW_LIMIT, Incoming
from tertulia.store.keeping import Disk, spooled
from tests.open_files import nothing_left_open
from tests.patience import PATIENCE_S, until
from tests.store_fixtures import Clock, Ids

LARGE = random.Random(1).randbytes(2 * ROW_LIMIT + 12_345)
SIZES = {
    "nothing": b"",
    "a word": b"word",
    "in memory": LARGE[: 60 << 10],
    "in a scratch file": LARGE[: 300 << 10],
    "just in the row": LARGE[: ROW_LIMIT - 1],
    "just on the shelf": LARGE[:ROW_LIMIT],
    "large": LARGE,
}


@pytest.fixture
def blobs(db: Database, ids: Ids, tmp_path: Path) -> Iterator[Blobs]:
    made = Blobs(db, tmp_path / "blobs", ids)
    yield made
    made.close()


async def keep(
    db: Database, blobs: Blobs, ada: Actor, project_id: str, content: bytes, path: str = "a"
) -> ProjectFile:
    async with blobs.receive() as arriving:
        await fill(arriving, content)

        def save(tx: Tx) -> ProjectFile:
            held = Content(arriving.hash, arriving.size_bytes, "application/octet-stream")
            with blobs.saving(tx, arriving):
                return files.put(tx, ada, project_id, path, held)

        return await db.write(save)


async def fill(arriving: Incoming, content: bytes) -> None:
    for start in range(0, len(content), 65_000):
        await arriving.write(content[start : start + 65_000])
    await arriving.finish()


async def whole(blobs: Blobs, hash: str) -> bytes:
    return b"".join([block async for block in blobs.read(hash)])


def on_disk(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def rows(db: Database) -> list[tuple[str, str]]:
    found = db.read_now(lambda tx: tx.execute(text("SELECT hash, keeping FROM blobs ORDER BY hash")))
    return [tuple(row) for row in found]


@pytest.mark.parametrize("content", SIZES.values(), ids=SIZES.keys())
async def test_what_went_in_comes_out(
    db: Database, blobs: Blobs, ada: Actor, adas_home: str, content: bytes
) -> None:
    made = await keep(db, blobs, ada, adas_home, content)
    assert made.content_hash == hashlib.sha256(content).hexdigest()
    assert made.size_bytes == len(content)
    assert await whole(blobs, made.content_hash) == content
    with await blobs.open(made.content_hash) as file:
        assert file.read() == content
        file.seek(0)
        assert file.read(10) == content[:10]


PARTS = [(0, 0), (0, 1), (5, 9), (0, ROW_LIMIT), (ROW_LIMIT - 1, ROW_LIMIT + 1), (ROW_LIMIT, 2 * ROW_LIMIT)]


@pytest.mark.parametrize("content", [LARGE[:100], LARGE], ids=["small", "large"])
async def test_a_part_comes_out_alone(
    db: Database, blobs: Blobs, ada: Actor, adas_home: str, content: bytes
) -> None:
    made = await keep(db, blobs, ada, adas_home, content)
    size = len(content)
    for start, end in (
        *PARTS,
        (size - 1, size),
        (size - 7, size + 7),
        (size, size + 1),
        (size + 5, size + 9),
    ):
        part = b"".join([block async for block in blobs.read(made.content_hash, start, end)])
        assert part == content[start:end]


async def test_of_a_large_one_nothing_is_read_but_the_part(
    db: Database, blobs: Blobs, ada: Actor, adas_home: str, tmp_path: Path
) -> None:
    """What stands around it could be gone."""
    made = await keep(db, blobs, ada, adas_home, LARGE)
    hash, start = made.content_hash, ROW_LIMIT + 10
    if db.is_shared:
        await db.write(lambda tx: tx.execute(text("DELETE FROM blob_pieces WHERE number <> 1")))
    else:
        os.truncate(tmp_path / "blobs" / hash[:2] / hash, start + 100)
    part = b"".join([block async for block in blobs.read(hash, start, start + 100)])
    assert part == LARGE[start : start + 100]


async def test_small_ones_stand_in_their_row_and_large_ones_on_the_shelf(
    db: Database, blobs: Blobs, ada: Actor, adas_home: str, tmp_path: Path
) -> None:
    await keep(db, blobs, ada, adas_home, LARGE[: ROW_LIMIT - 1])
    assert [keeping for _, keeping in rows(db)] == ["row"]
    assert on_disk(tmp_path / "blobs") == []
    large = await keep(db, blobs, ada, adas_home, LARGE)
    hash = large.content_hash
    if db.is_shared:
        assert on_disk(tmp_path / "blobs") == []
        count = await db.read(lambda tx: tx.one(text("SELECT COUNT(*) AS n FROM blob_pieces")).n)
        assert count == 3
    else:
        assert on_disk(tmp_path / "blobs") == [f"{hash[:2]}/{hash}"]
        assert (tmp_path / "blobs" / hash[:2] / hash).stat().st_mode & 0o777 == 0o600


async def test_the_same_bytes_are_kept_once(
    db: Database, blobs: Blobs, ada: Actor, adas_home: str, tmp_path: Path
) -> None:
    for path in ("a", "b", "c"):
        await keep(db, blobs, ada, adas_home, LARGE, path)
    assert len(rows(db)) == 1
    assert len(on_disk(tmp_path / "blobs")) == (0 if db.is_shared else 1)


async def test_what_is_not_saved_leaves_nothing(db: Database, blobs: Blobs, tmp_path: Path) -> None:
    async with blobs.receive() as arriving:
        await arriving.write(LARGE)
        assert db.is_shared or on_disk(tmp_path / "blobs") != []
    assert on_disk(tmp_path / "blobs") == []
    assert rows(db) == []


async def test_whoever_gives_up_in_the_middle_of_a_write_leaves_nothing(blobs: Blobs, tmp_path: Path) -> None:
    async def upload() -> None:
        async with blobs.receive() as arriving:
            while True:
                await arriving.write(LARGE)

    uploads = [asyncio.create_task(upload()) for _ in range(10)]
    await asyncio.sleep(0)
    for task in uploads:
        task.cancel()
    await asyncio.gather(*uploads, return_exceptions=True)
    assert on_disk(tmp_path / "blobs") == []


async def test_whoever_gives_up_looking_into_an_upload_leaves_nothing_open(blobs: Blobs) -> None:
    """The thread that looks goes on, and its file is not closed under it."""
    began, goes_on, found = threading.Event(), threading.Event(), []

    async def look() -> None:
        async with blobs.receive() as arriving:
            await fill(arriving, LARGE)
            await arriving.look(partial(read_late, arriving))

    def read_late(arriving: Incoming) -> None:
        began.set()
        goes_on.wait(PATIENCE_S)
        with arriving.file() as file:
            found.append(file.read())

    with nothing_left_open():
        looking = asyncio.create_task(look())
        await until(began.is_set)
        looking.cancel()
        await asyncio.sleep(0)
        goes_on.set()
        await asyncio.wait([looking])
        assert looking.cancelled()
        assert found == [LARGE]


async def test_a_cancelled_copy_of_a_blob_is_closed() -> None:
    began = asyncio.Event()

    async def blocks() -> AsyncGenerator[bytes]:
        yield b"some"
        began.set()
        await asyncio.Event().wait()

    with nothing_left_open():
        copying = asyncio.create_task(spooled(blocks()))
        await began.wait()
        copying.cancel()
        await asyncio.wait([copying])
        assert copying.cancelled()


async def test_a_blob_that_opens_too_late_is_closed(tmp_path: Path, ids: Ids) -> None:
    """It is a named pipe, which opens when someone writes to it: after the reader gave up."""
    disk, hash = Disk(tmp_path / "blobs", ids), "ab" * 32
    (tmp_path / "blobs" / "ab").mkdir()
    os.mkfifo(tmp_path / "blobs" / "ab" / hash)
    with nothing_left_open():
        opening = asyncio.create_task(disk.open(hash))
        await asyncio.sleep(0)
        opening.cancel()
        os.close(await asyncio.to_thread(os.open, tmp_path / "blobs" / "ab" / hash, os.O_WRONLY))
        await asyncio.wait([opening])
        assert opening.cancelled()
    disk.close()


async def test_a_reader_that_leaves_in_the_middle_leaves_nothing_open(
    db: Database, blobs: Blobs, ada: Actor, adas_home: str
) -> None:
    made = await keep(db, blobs, ada, adas_home, LARGE)
    with nothing_left_open():
        async with aclosing(blobs.read(made.content_hash)) as reading:
            assert LARGE.startswith(await anext(reading))


async def test_a_row_never_stands_alone_when_the_rest_is_refused(
    db: Database, blobs: Blobs, ada: Actor, adas_home: str, tmp_path: Path
) -> None:
    async with blobs.receive() as arriving:
        await fill(arriving, LARGE)

        def save(tx: Tx) -> None:
            with blobs.saving(tx, arriving):
                raise Conflict("Something else came between.")

        with pytest.raises(Conflict):
            await db.write(save)
    assert rows(db) == []
    assert on_disk(tmp_path / "blobs") == []
    made = await keep(db, blobs, ada, adas_home, LARGE)
    assert await whole(blobs, made.content_hash) == LARGE


async def test_bytes_that_lost_their_row_in_a_crash_are_swept_away(
    db: Database, blobs: Blobs, tmp_path: Path, clock: Clock
) -> None:
    async with blobs.receive() as arriving:
        await fill(arriving, LARGE)

        def crash(tx: Tx) -> None:
            with blobs.saving(tx, arriving):
                pass
            raise Conflict("killed here")

        with pytest.raises(Conflict):
            await db.write(crash)
    for name in on_disk(tmp_path / "blobs"):
        os.utime(tmp_path / "blobs" / name, (0, 0))
    await blobs.sweep(clock.now)
    assert on_disk(tmp_path / "blobs") == []


async def test_what_a_crash_left_unfinished_is_gone_at_the_next_start(
    db: Database, blobs: Blobs, ids: Ids, tmp_path: Path
) -> None:
    left = tmp_path / "blobs" / "incoming" / "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    left.write_bytes(b"half")
    if not db.is_shared:  # in a cluster a scratch file has no name that could be left
        Blobs(db, tmp_path / "blobs", ids).close()
        assert not left.exists()


async def test_a_blob_goes_some_time_after_its_last_use(
    db: Database, blobs: Blobs, ada: Actor, adas_home: str, tmp_path: Path, clock: Clock
) -> None:
    made = await keep(db, blobs, ada, adas_home, LARGE)
    clock.forward(10 * GRACE_MS)
    assert await blobs.sweep(clock.now - GRACE_MS) == 0
    await db.write(lambda tx: files.remove(tx, ada, adas_home, made.id))
    assert await blobs.sweep(clock.now - GRACE_MS) == 0
    assert await whole(blobs, made.content_hash) == LARGE
    clock.forward(GRACE_MS + 1)
    assert await blobs.sweep(clock.now - GRACE_MS) == 1
    assert rows(db) == []
    assert on_disk(tmp_path / "blobs") == []
    with pytest.raises(NotFound):
        await whole(blobs, made.content_hash)


async def test_a_sweep_and_an_upload_of_the_same_bytes_never_leave_a_row_alone(
    db: Database, blobs: Blobs, ada: Actor, adas_home: str, clock: Clock
) -> None:
    for n in range(6):
        made = await keep(db, blobs, ada, adas_home, LARGE, f"a{n}")
        await db.write(lambda tx, id=made.id: files.remove(tx, ada, adas_home, id))
        clock.forward(2 * GRACE_MS)
        _, again = await asyncio.gather(
            blobs.sweep(clock.now - GRACE_MS), keep(db, blobs, ada, adas_home, LARGE, f"b{n}")
        )
        assert await whole(blobs, again.content_hash) == LARGE
        await db.write(lambda tx, id=again.id: files.remove(tx, ada, adas_home, id))


async def test_a_reader_finishes_what_is_removed_meanwhile_or_fails_cleanly(
    db: Database, blobs: Blobs, ada: Actor, adas_home: str, clock: Clock
) -> None:
    made = await keep(db, blobs, ada, adas_home, LARGE)
    reading = blobs.read(made.content_hash)
    first = await anext(reading)
    await db.write(lambda tx: files.remove(tx, ada, adas_home, made.id))
    clock.forward(2 * GRACE_MS)
    await blobs.sweep(clock.now - GRACE_MS)
    rest = b"".join([block async for block in reading])
    assert LARGE.startswith(first + rest)


async def test_no_link_is_followed_out_of_the_folder(
    sqlite_url: str, ids: Ids, clock: Clock, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("outside")
    db = Database.open(sqlite_url, clock=clock, new_id=ids)
    blobs = Blobs(db, tmp_path / "blobs", ids)
    linked, folder_linked = "ab" + "0" * 62, "cd" + "0" * 62
    (tmp_path / "blobs" / "ab").mkdir()
    (tmp_path / "blobs" / "ab" / linked).symlink_to(secret)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / folder_linked).write_text("outside")
    (tmp_path / "blobs" / "cd").symlink_to(tmp_path / "elsewhere")

    def pretend(tx: Tx) -> None:
        add = text("INSERT INTO blobs (hash, size_bytes, keeping, used_at) VALUES (:hash, 7, 'disk', 0)")
        for hash in (linked, folder_linked, "../../secret"):
            tx.execute(add, hash=hash)

    db.write_now(pretend)
    for hash in (linked, folder_linked):
        with pytest.raises(StorageFailed):
            await whole(blobs, hash)
    with pytest.raises(NotFound):
        await whole(blobs, "../../secret")
    blobs.close()
    db.close()
