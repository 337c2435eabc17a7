"""Blob store: equal bytes stored once, on disk beside SQLite and in pieces in PostgreSQL."""

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

from tertulia.core.errors import Conflict, NotFound, StorageFailed
from tertulia.core.files import Content, ProjectFile
from tertulia.core.users import Actor
from tertulia.store import files
from tertulia.store.blob_backends import DiskBlobs, spooled
from tertulia.store.blob_upload import ROW_LIMIT, BlobUpload
from tertulia.store.blobs import GRACE_MS, Blobs
from tertulia.store.database import Database, Tx
from tertulia.store.sql import sql
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
    "just outside the row": LARGE[:ROW_LIMIT],
    "large": LARGE,
}


@pytest.fixture
def blobs(db: Database, ids: Ids, tmp_path: Path) -> Iterator[Blobs]:
    blobs_ = Blobs(db, tmp_path / "blobs", ids)
    yield blobs_
    blobs_.close()


async def save_file(
    db: Database, blobs: Blobs, ada: Actor, project_id: str, content: bytes, path: str = "a"
) -> ProjectFile:
    async with blobs.receive() as upload:
        await write_all(upload, content)

        def save(tx: Tx) -> ProjectFile:
            file_content = Content(upload.hash, upload.size_bytes, "application/octet-stream")
            with blobs.saving(tx, upload):
                return files.put(tx, ada, project_id, path, file_content)

        return await db.write(save)


async def write_all(upload: BlobUpload, content: bytes) -> None:
    for start in range(0, len(content), 65_000):
        await upload.write(content[start : start + 65_000])
    await upload.finish()


async def read_all(blobs: Blobs, hash: str) -> bytes:
    return b"".join([block async for block in blobs.read(hash)])


def on_disk(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def rows(db: Database) -> list[tuple[str, str]]:
    all_rows = db.read_now(lambda tx: tx.execute(sql("SELECT hash, keeping FROM blobs ORDER BY hash")))
    return [tuple(row) for row in all_rows]


@pytest.mark.parametrize("content", SIZES.values(), ids=SIZES.keys())
async def test_a_saved_blob_is_read_back_unchanged(
    db: Database, blobs: Blobs, ada: Actor, adas_home: str, content: bytes
) -> None:
    saved_file = await save_file(db, blobs, ada, adas_home, content)
    assert saved_file.content_hash == hashlib.sha256(content).hexdigest()
    assert saved_file.size_bytes == len(content)
    assert await read_all(blobs, saved_file.content_hash) == content
    with await blobs.open(saved_file.content_hash) as file:
        assert file.read() == content
        file.seek(0)
        assert file.read(10) == content[:10]


RANGES = [(0, 0), (0, 1), (5, 9), (0, ROW_LIMIT), (ROW_LIMIT - 1, ROW_LIMIT + 1), (ROW_LIMIT, 2 * ROW_LIMIT)]


@pytest.mark.parametrize("content", [LARGE[:100], LARGE], ids=["small", "large"])
async def test_a_byte_range_of_a_blob_is_read(
    db: Database, blobs: Blobs, ada: Actor, adas_home: str, content: bytes
) -> None:
    saved_file = await save_file(db, blobs, ada, adas_home, content)
    size = len(content)
    for start, end in (
        *RANGES,
        (size - 1, size),
        (size - 7, size + 7),
        (size, size + 1),
        (size + 5, size + 9),
    ):
        byte_range = b"".join([block async for block in blobs.read(saved_file.content_hash, start, end)])
        assert byte_range == content[start:end]


async def test_reading_a_range_of_a_large_blob_touches_only_the_pieces_it_needs(
    db: Database, blobs: Blobs, ada: Actor, adas_home: str, tmp_path: Path
) -> None:
    """The rest of the blob is destroyed before the range is read."""
    saved_file = await save_file(db, blobs, ada, adas_home, LARGE)
    hash, start = saved_file.content_hash, ROW_LIMIT + 10
    if db.is_shared:
        await db.write(lambda tx: tx.execute(sql("DELETE FROM blob_pieces WHERE number <> 1")))
    else:
        os.truncate(tmp_path / "blobs" / hash[:2] / hash, start + 100)
    byte_range = b"".join([block async for block in blobs.read(hash, start, start + 100)])
    assert byte_range == LARGE[start : start + 100]


async def test_small_blobs_are_stored_in_their_row_and_large_ones_outside(
    db: Database, blobs: Blobs, ada: Actor, adas_home: str, tmp_path: Path
) -> None:
    await save_file(db, blobs, ada, adas_home, LARGE[: ROW_LIMIT - 1])
    assert [keeping for _, keeping in rows(db)] == ["row"]
    assert on_disk(tmp_path / "blobs") == []
    large = await save_file(db, blobs, ada, adas_home, LARGE)
    hash = large.content_hash
    if db.is_shared:
        assert on_disk(tmp_path / "blobs") == []
        count = await db.read(lambda tx: tx.one(sql("SELECT COUNT(*) AS n FROM blob_pieces")).n)
        assert count == 3
    else:
        assert on_disk(tmp_path / "blobs") == [f"{hash[:2]}/{hash}"]
        assert (tmp_path / "blobs" / hash[:2] / hash).stat().st_mode & 0o777 == 0o600


async def test_equal_bytes_are_stored_once(
    db: Database, blobs: Blobs, ada: Actor, adas_home: str, tmp_path: Path
) -> None:
    for path in ("a", "b", "c"):
        await save_file(db, blobs, ada, adas_home, LARGE, path)
    assert len(rows(db)) == 1
    assert len(on_disk(tmp_path / "blobs")) == (0 if db.is_shared else 1)


async def test_an_upload_that_is_not_saved_leaves_no_file_and_no_row(
    db: Database, blobs: Blobs, tmp_path: Path
) -> None:
    async with blobs.receive() as upload:
        await upload.write(LARGE)
        assert db.is_shared or on_disk(tmp_path / "blobs") != []
    assert on_disk(tmp_path / "blobs") == []
    assert rows(db) == []


async def test_uploads_cancelled_during_a_write_leave_no_file(blobs: Blobs, tmp_path: Path) -> None:
    async def upload() -> None:
        async with blobs.receive() as blob_upload:
            while True:
                await blob_upload.write(LARGE)

    uploads = [asyncio.create_task(upload()) for _ in range(10)]
    await asyncio.sleep(0)
    for task in uploads:
        task.cancel()
    await asyncio.gather(*uploads, return_exceptions=True)
    assert on_disk(tmp_path / "blobs") == []


async def test_cancelling_a_thread_that_reads_an_upload_leaves_no_file_open(blobs: Blobs) -> None:
    """The thread goes on reading, and its file is not closed meanwhile."""
    has_begun, may_go_on, contents = threading.Event(), threading.Event(), []

    async def read_in_thread() -> None:
        async with blobs.receive() as upload:
            await write_all(upload, LARGE)
            await upload.run_in_thread(partial(read_late, upload))

    def read_late(upload: BlobUpload) -> None:
        has_begun.set()
        may_go_on.wait(PATIENCE_S)
        with upload.file() as file:
            contents.append(file.read())

    with nothing_left_open():
        reading = asyncio.create_task(read_in_thread())
        await until(has_begun.is_set)
        reading.cancel()
        await asyncio.sleep(0)
        may_go_on.set()
        await asyncio.wait([reading])
        assert reading.cancelled()
        assert contents == [LARGE]


async def test_a_cancelled_copy_of_a_blob_closes_its_file() -> None:
    has_begun = asyncio.Event()

    async def blocks() -> AsyncGenerator[bytes]:
        yield b"some"
        has_begun.set()
        await asyncio.Event().wait()

    with nothing_left_open():
        copying = asyncio.create_task(spooled(blocks()))
        await has_begun.wait()
        copying.cancel()
        await asyncio.wait([copying])
        assert copying.cancelled()


async def test_a_blob_that_opens_after_its_reader_was_cancelled_is_closed(tmp_path: Path, ids: Ids) -> None:
    """The blob is a named pipe, which opens only when it has a writer: after the reader was cancelled."""
    disk, hash = DiskBlobs(tmp_path / "blobs", ids), "ab" * 32
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


async def test_a_reader_that_stops_halfway_leaves_no_file_open(
    db: Database, blobs: Blobs, ada: Actor, adas_home: str
) -> None:
    saved_file = await save_file(db, blobs, ada, adas_home, LARGE)
    with nothing_left_open():
        async with aclosing(blobs.read(saved_file.content_hash)) as reading:
            assert LARGE.startswith(await anext(reading))


async def test_an_error_while_saving_leaves_neither_a_row_nor_a_file(
    db: Database, blobs: Blobs, ada: Actor, adas_home: str, tmp_path: Path
) -> None:
    async with blobs.receive() as upload:
        await write_all(upload, LARGE)

        def save(tx: Tx) -> None:
            with blobs.saving(tx, upload):
                raise Conflict("Something else came between.")

        with pytest.raises(Conflict):
            await db.write(save)
    assert rows(db) == []
    assert on_disk(tmp_path / "blobs") == []
    saved_file = await save_file(db, blobs, ada, adas_home, LARGE)
    assert await read_all(blobs, saved_file.content_hash) == LARGE


async def test_a_sweep_removes_stored_bytes_without_a_row(
    db: Database, blobs: Blobs, tmp_path: Path, clock: Clock
) -> None:
    async with blobs.receive() as upload:
        await write_all(upload, LARGE)

        def crash(tx: Tx) -> None:
            with blobs.saving(tx, upload):
                pass
            raise Conflict("killed here")

        with pytest.raises(Conflict):
            await db.write(crash)
    for name in on_disk(tmp_path / "blobs"):
        os.utime(tmp_path / "blobs" / name, (0, 0))
    await blobs.sweep(clock.now)
    assert on_disk(tmp_path / "blobs") == []


async def test_the_next_start_removes_scratch_files_that_a_crash_left(
    db: Database, blobs: Blobs, ids: Ids, tmp_path: Path
) -> None:
    scratch_file = tmp_path / "blobs" / "incoming" / "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    scratch_file.write_bytes(b"half")
    if not db.is_shared:  # with PostgreSQL a scratch file has no name, so a crash leaves none
        Blobs(db, tmp_path / "blobs", ids).close()
        assert not scratch_file.exists()


async def test_an_unreferenced_blob_is_removed_after_the_grace_period(
    db: Database, blobs: Blobs, ada: Actor, adas_home: str, tmp_path: Path, clock: Clock
) -> None:
    saved_file = await save_file(db, blobs, ada, adas_home, LARGE)
    clock.forward(10 * GRACE_MS)
    assert await blobs.sweep(clock.now - GRACE_MS) == 0
    await db.write(lambda tx: files.remove(tx, ada, adas_home, saved_file.id))
    assert await blobs.sweep(clock.now - GRACE_MS) == 0
    assert await read_all(blobs, saved_file.content_hash) == LARGE
    clock.forward(GRACE_MS + 1)
    assert await blobs.sweep(clock.now - GRACE_MS) == 1
    assert rows(db) == []
    assert on_disk(tmp_path / "blobs") == []
    with pytest.raises(NotFound):
        await read_all(blobs, saved_file.content_hash)


async def test_a_sweep_during_an_upload_of_equal_bytes_leaves_the_blob_readable(
    db: Database, blobs: Blobs, ada: Actor, adas_home: str, clock: Clock
) -> None:
    for n in range(6):
        saved_file = await save_file(db, blobs, ada, adas_home, LARGE, f"a{n}")
        await db.write(lambda tx, id=saved_file.id: files.remove(tx, ada, adas_home, id))
        clock.forward(2 * GRACE_MS)
        _, second_file = await asyncio.gather(
            blobs.sweep(clock.now - GRACE_MS), save_file(db, blobs, ada, adas_home, LARGE, f"b{n}")
        )
        assert await read_all(blobs, second_file.content_hash) == LARGE
        await db.write(lambda tx, id=second_file.id: files.remove(tx, ada, adas_home, id))


async def test_a_reader_of_a_blob_removed_meanwhile_gets_no_wrong_bytes(
    db: Database, blobs: Blobs, ada: Actor, adas_home: str, clock: Clock
) -> None:
    saved_file = await save_file(db, blobs, ada, adas_home, LARGE)
    reading = blobs.read(saved_file.content_hash)
    first = await anext(reading)
    await db.write(lambda tx: files.remove(tx, ada, adas_home, saved_file.id))
    clock.forward(2 * GRACE_MS)
    await blobs.sweep(clock.now - GRACE_MS)
    rest = b"".join([block async for block in reading])
    assert LARGE.startswith(first + rest)


async def test_links_out_of_the_blob_folder_are_not_followed(
    sqlite_url: str, ids: Ids, clock: Clock, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("outside")
    db = Database.open(sqlite_url, clock=clock, new_id=ids)
    blobs = Blobs(db, tmp_path / "blobs", ids)
    file_link, folder_link = "ab" + "0" * 62, "cd" + "0" * 62
    (tmp_path / "blobs" / "ab").mkdir()
    (tmp_path / "blobs" / "ab" / file_link).symlink_to(secret)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / folder_link).write_text("outside")
    (tmp_path / "blobs" / "cd").symlink_to(tmp_path / "elsewhere")

    def add_rows(tx: Tx) -> None:
        add = sql("INSERT INTO blobs (hash, size_bytes, keeping, used_at) VALUES (:hash, 7, 'disk', 0)")
        for hash in (file_link, folder_link, "../../secret"):
            tx.execute(add, hash=hash)

    db.write_now(add_rows)
    for hash in (file_link, folder_link):
        with pytest.raises(StorageFailed):
            await read_all(blobs, hash)
    with pytest.raises(NotFound):
        await read_all(blobs, "../../secret")
    blobs.close()
    db.close()
