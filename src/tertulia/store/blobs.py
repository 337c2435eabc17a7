"""Blobs: bytes kept once, by their hash.

Small ones stand in their row. Large ones stand on a shelf: on disk beside SQLite, in pieces in PostgreSQL,
where every node reaches them. Bytes arrive in a scratch file and are whole, hashed and synced before the
transaction that refers to them; what is not saved leaves nothing behind. A blob nobody refers to is swept
away some time after.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

from sqlalchemy import text

from tertulia.core.errors import NotFound, StorageFailed, StorageFull
from tertulia.core.ids import NewId
from tertulia.store.database import Database
from tertulia.store.transactions import GONE, Tx

ROW_LIMIT = 1 << 20
"""From here on, bytes stand on the shelf."""
MEMORY_LIMIT = 64 << 10
"""What of an upload is held in memory before it goes to a scratch file."""
BLOCK = 256 << 10
PIECE = 1 << 20
HEAD = 64 << 10
GRACE_MS = 3_600_000
"""A blob nobody refers to stays this long: readers finish, and an upload has the time to be referred to."""

_HASH = re.compile(r"[0-9a-f]{64}")
T = TypeVar("T")


class Blobs:
    def __init__(self, db: Database, folder: Path, new_id: NewId) -> None:
        self._db = db
        self._shelf: Shelf = Pieces(db, folder) if db.is_shared else Disk(folder, new_id)

    # ── in

    def receive(self) -> Incoming:
        """For bytes that are about to arrive; use it in an `async with` block."""
        return Incoming(self._shelf.scratch)

    @contextmanager
    def saving(self, tx: Tx, arrived: Incoming) -> Iterator[None]:
        """Keeps what has arrived, in the transaction that refers to it from inside this block.

        Its place on the shelf is taken last, so that a refusal in between leaves nothing there.
        """
        tx.hold(f"blob:{arrived.hash}")
        is_new = tx.maybe(_TOUCH, hash=arrived.hash, now=tx.now) is None
        is_small = arrived.size_bytes < ROW_LIMIT
        if is_new:
            tx.execute(
                _ADD,
                hash=arrived.hash,
                size_bytes=arrived.size_bytes,
                keeping="row" if is_small else self._shelf.keeping,
                content=arrived.content() if is_small else None,
                now=tx.now,
            )
        yield
        if is_new and not is_small:
            self._shelf.put(tx, arrived)

    # ── out

    async def read(self, hash: str) -> AsyncIterator[bytes]:
        """The bytes, block by block."""
        row = await self._db.read(lambda tx: tx.maybe(_GET, hash=hash))
        if row is None:
            raise NotFound(GONE)
        if row.keeping == "row":
            yield bytes(row.content)
            return
        async for block in self._shelf.read(hash):
            yield block

    async def head(self, hash: str) -> bytes:
        """The first bytes, enough to see what they are."""
        blocks = self.read(hash)
        async for block in blocks:
            await blocks.aclose()  # type: ignore[attr-defined]
            return block[:HEAD]
        return b""

    async def open(self, hash: str) -> BinaryIO:
        """A file of the bytes to read from, which has no name anyone else could use."""
        row = await self._db.read(lambda tx: tx.maybe(_GET, hash=hash))
        if row is None:
            raise NotFound(GONE)
        return await (_spooled(self.read(hash)) if row.keeping == "row" else self._shelf.open(hash))

    # ── away

    async def sweep(self, before_ms: int) -> int:
        """Removes what nobody has referred to since; returns how many blobs went."""
        found = await self._db.read(lambda tx: tx.execute(_UNUSED, before=before_ms))
        gone = 0
        for row in found:
            gone += await self._db.write(lambda tx, hash=row.hash: _remove(tx, hash, before_ms))  # type: ignore[misc]
            await self._clear(row.hash)
        for hash in await self._strays(before_ms):
            await self._clear(hash)
        return gone

    async def _strays(self, before_ms: int) -> set[str]:
        """What stands on the shelf without a row: a crash came between the two."""
        standing = await asyncio.to_thread(self._shelf.older_than, before_ms)
        kept = await self._db.read(lambda tx: tx.execute(_ON_SHELF))
        return set(standing) - {row.hash for row in kept}

    async def _clear(self, hash: str) -> None:
        """In the one thread that writes: nobody can begin to refer to the hash while its bytes go."""

        def clear(tx: Tx) -> None:
            if tx.maybe(_IS_KEPT, hash=hash) is None:
                self._shelf.remove(hash)

        await self._db.write(clear)

    def close(self) -> None:
        self._shelf.close()


_TOUCH = text("UPDATE blobs SET used_at = :now WHERE hash = :hash RETURNING hash")

_ADD = text("""
    INSERT INTO blobs (hash, size_bytes, keeping, content, used_at)
    VALUES (:hash, :size_bytes, :keeping, :content, :now)
""")

_GET = text("SELECT keeping, content FROM blobs WHERE hash = :hash")

_ON_SHELF = text("SELECT hash FROM blobs WHERE keeping <> 'row'")

_IS_KEPT = text("SELECT 1 FROM blobs WHERE hash = :hash")

_NOT_IN_USE = """
    NOT EXISTS (SELECT 1 FROM file_versions AS v WHERE v.content_hash = blobs.hash)
    AND NOT EXISTS (SELECT 1 FROM attachments AS a WHERE a.content_hash = blobs.hash)
"""

_UNUSED = text(f"SELECT hash FROM blobs WHERE used_at < :before AND {_NOT_IN_USE}")

_REMOVE = text(f"DELETE FROM blobs WHERE hash = :hash AND used_at < :before AND {_NOT_IN_USE} RETURNING hash")


def _remove(tx: Tx, hash: str, before_ms: int) -> int:
    tx.hold(f"blob:{hash}")
    return len(tx.execute(_REMOVE, hash=hash, before=before_ms))


async def _spooled(blocks: AsyncIterator[bytes], folder: Path | None = None) -> BinaryIO:
    file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - it is handed on
    async for block in blocks:
        await asyncio.to_thread(file.write, block)
    file.seek(0)
    return file


def _written(content: bytes | bytearray) -> BinaryIO:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - it is handed on
    file.write(content)
    file.seek(0)
    return file


class Incoming:
    """Bytes on their way in. Nothing of them remains unless they are saved."""

    def __init__(self, make_scratch: Callable[[], Scratch]) -> None:
        self._make_scratch = make_scratch
        self._scratch: Scratch | None = None
        self._waiting = bytearray()
        self._digest = hashlib.sha256()
        self._busy: asyncio.Future[None] | None = None
        self.head = b""
        """The first bytes, enough to see what they are."""
        self.size_bytes = 0
        self.hash = ""
        """Known when all has arrived."""

    async def __aenter__(self) -> Incoming:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.discard()

    async def discard(self) -> None:
        """Lets go of what has arrived; what was saved of it stays saved."""
        if self._busy is not None and not self._busy.done():
            await asyncio.wait([self._busy])  # whoever gave up waiting, the thread still writes to the file
        scratch, self._scratch = self._scratch, None
        if scratch is not None:
            scratch.close()

    async def write(self, data: bytes) -> None:
        self._waiting += data
        self.size_bytes += len(data)
        if len(self._waiting) >= BLOCK:
            await self._in_thread(self._flush)

    async def finish(self) -> None:
        """All has arrived; what will stand on the shelf is safe on the disk."""
        await self._in_thread(self._finish)

    def content(self) -> bytes:
        """All of it: for a small one."""
        if self._scratch is None:
            return bytes(self._waiting)
        with self.file() as file:
            return file.read()

    def file(self) -> BinaryIO:
        """To look inside; closing it changes nothing."""
        if self._scratch is None:
            return _written(self._waiting)
        file = os.fdopen(os.dup(self._scratch.fd), "rb")
        file.seek(0)
        return file

    def scratch(self) -> Scratch:
        assert self._scratch is not None
        return self._scratch

    async def _in_thread(self, work: Callable[[], None]) -> None:
        self._busy = asyncio.ensure_future(asyncio.to_thread(work))
        await asyncio.shield(self._busy)

    def _flush(self) -> None:
        if self._scratch is None:
            self._scratch = self._make_scratch()
        self._take_in()
        with _told(), memoryview(self._waiting) as view:
            done = 0
            while done < len(view):
                done += os.write(self._scratch.fd, view[done:])
        self._waiting = bytearray()

    def _finish(self) -> None:
        if self._scratch is None and len(self._waiting) <= MEMORY_LIMIT:
            self._take_in()
        else:
            self._flush()
        if self._scratch is not None and self.size_bytes >= ROW_LIMIT:
            with _told():
                os.fsync(self._scratch.fd)
        self.hash = self._digest.hexdigest()

    def _take_in(self) -> None:
        self._digest.update(self._waiting)
        self.head += bytes(self._waiting[: HEAD - len(self.head)])


class Scratch:
    """A file that is being written; gone when it is closed, unless it was moved away."""

    def __init__(self, fd: int, name: str | None = None, folder: int | None = None) -> None:
        self.fd = fd
        self.name = name
        self._folder = folder

    def close(self) -> None:
        os.close(self.fd)
        if self.name is not None:
            with suppress(FileNotFoundError):
                os.unlink(self.name, dir_fd=self._folder)


class Shelf(Protocol):
    """Where large blobs stand."""

    keeping: str

    def scratch(self) -> Scratch: ...
    def put(self, tx: Tx, arrived: Incoming) -> None: ...
    def read(self, hash: str) -> AsyncIterator[bytes]: ...
    async def open(self, hash: str) -> BinaryIO: ...
    def remove(self, hash: str) -> None: ...
    def older_than(self, before_ms: int) -> list[str]: ...
    def close(self) -> None: ...


class Disk:
    """One file per blob, ab/abcdef…, opened under the folder's own descriptor; no link is followed."""

    keeping = "disk"

    def __init__(self, folder: Path, new_id: NewId) -> None:
        self._new_id = new_id
        self._root = _open_folder(folder)
        self._incoming = self._folder("incoming")
        for name in os.listdir(self._incoming):  # left by a crash: nobody else works in this folder
            os.unlink(name, dir_fd=self._incoming)

    def scratch(self) -> Scratch:
        name = self._new_id()
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with _told():
            return Scratch(os.open(name, flags, 0o600, dir_fd=self._incoming), name, self._incoming)

    def put(self, tx: Tx, arrived: Incoming) -> None:
        """On the disk before its row is: a crash may leave a file without a row, never a row alone."""
        scratch = arrived.scratch()
        assert scratch.name is not None
        with _told(), self._opened(arrived.hash[:2]) as folder:
            os.rename(scratch.name, arrived.hash, src_dir_fd=self._incoming, dst_dir_fd=folder)
            os.fsync(folder)

    async def read(self, hash: str) -> AsyncIterator[bytes]:
        with await self.open(hash) as file:
            while block := await asyncio.to_thread(file.read, BLOCK):
                yield block

    async def open(self, hash: str) -> BinaryIO:
        return await asyncio.to_thread(self._open, hash)

    def _open(self, hash: str) -> BinaryIO:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with self._opened(_checked(hash)[:2]) as folder:
                return os.fdopen(os.open(hash, flags, dir_fd=folder), "rb")
        except OSError as error:
            raise StorageFailed(f"The bytes of a file cannot be read: {error.strerror}.") from error

    def remove(self, hash: str) -> None:
        with suppress(FileNotFoundError), self._opened(_checked(hash)[:2]) as folder:
            os.unlink(hash, dir_fd=folder)

    def older_than(self, before_ms: int) -> list[str]:
        return [hash for hash, changed_at in self._all() if changed_at < before_ms / 1000]

    def close(self) -> None:
        os.close(self._incoming)
        os.close(self._root)

    def _all(self) -> Iterator[tuple[str, float]]:
        for name in os.listdir(self._root):
            if len(name) == 2:
                with self._opened(name) as folder:
                    for hash in filter(_HASH.fullmatch, os.listdir(folder)):
                        yield hash, os.stat(hash, dir_fd=folder, follow_symlinks=False).st_mtime

    @contextmanager
    def _opened(self, name: str) -> Iterator[int]:
        folder = self._folder(name)
        try:
            yield folder
        finally:
            os.close(folder)

    def _folder(self, name: str) -> int:
        try:
            os.mkdir(name, 0o700, dir_fd=self._root)
            os.fsync(self._root)
        except FileExistsError:
            pass
        return os.open(name, _FOLDER, dir_fd=self._root)


class Pieces:
    """Rows of a megabyte each; the scratch file has no name at all."""

    keeping = "pieces"

    def __init__(self, db: Database, folder: Path) -> None:
        self._db = db
        self._scratch = folder / "incoming"
        self._scratch.mkdir(parents=True, exist_ok=True, mode=0o700)

    def scratch(self) -> Scratch:
        with _told(), tempfile.TemporaryFile(dir=self._scratch) as file:
            return Scratch(os.dup(file.fileno()))

    def put(self, tx: Tx, arrived: Incoming) -> None:
        with arrived.file() as file:
            for number, piece in enumerate(iter(lambda: file.read(PIECE), b"")):
                tx.execute(_ADD_PIECE, hash=arrived.hash, number=number, content=piece)

    async def read(self, hash: str) -> AsyncIterator[bytes]:
        number = 0
        while row := await self._db.read(lambda tx, n=number: tx.maybe(_PIECE, hash=hash, number=n)):  # type: ignore[misc]
            yield bytes(row.content)
            number += 1

    async def open(self, hash: str) -> BinaryIO:
        return await _spooled(self.read(hash), self._scratch)

    def remove(self, hash: str) -> None:
        """They went with their blob's row."""

    def older_than(self, before_ms: int) -> list[str]:
        return []

    def close(self) -> None:
        """Nothing is open."""


_ADD_PIECE = text("INSERT INTO blob_pieces (hash, number, content) VALUES (:hash, :number, :content)")

_PIECE = text("SELECT content FROM blob_pieces WHERE hash = :hash AND number = :number")

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def _open_folder(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return os.open(folder.resolve(), _FOLDER)


def _checked(hash: str) -> str:
    if not _HASH.fullmatch(hash):
        raise NotFound(GONE)
    return hash


@contextmanager
def _told() -> Iterator[None]:
    """What the disk refuses, in words for a person."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull("The disk is full. Nothing was saved; make room and try again.") from error
        raise StorageFailed(f"The folder of blobs cannot be written: {error.strerror}.") from error
