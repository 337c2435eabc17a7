"""Blob back ends: store large blobs on disk beside SQLite, or in pieces in PostgreSQL for all servers."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Protocol

from tertulia.core.closing import closed_on_failure
from tertulia.core.errors import NotFound, StorageFailed
from tertulia.core.ids import NewId
from tertulia.core.tasks import to_completion
from tertulia.store.blob_upload import BLOCK, BlobUpload, ScratchFile, translate_disk_errors
from tertulia.store.database import Database
from tertulia.store.sql import sql
from tertulia.store.transactions import GONE, Tx

PIECE = 1 << 20
_HASH = re.compile(r"[0-9a-f]{64}")
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class BlobBackend(Protocol):
    name: str
    """The value of the column `keeping` in the blob's row."""

    def scratch(self) -> ScratchFile: ...
    def put(self, tx: Tx, upload: BlobUpload) -> None: ...
    def read(self, hash: str, start: int, end: int) -> AsyncGenerator[bytes]: ...
    async def open(self, hash: str) -> BinaryIO: ...
    def remove(self, hash: str) -> None: ...
    def older_than(self, before_ms: int) -> list[str]: ...
    def close(self) -> None: ...


class DiskBlobs:
    """Stores each blob as a file ab/abcdef…, opened relative to the folder's descriptor; follows no links."""

    name = "disk"

    def __init__(self, folder: Path, new_id: NewId) -> None:
        self._new_id = new_id
        self._root = _open_folder(folder)
        self._incoming = self._folder("incoming")
        for name in os.listdir(self._incoming):  # left by a crash: no other process uses this folder
            os.unlink(name, dir_fd=self._incoming)

    def scratch(self) -> ScratchFile:
        name = self._new_id()
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with translate_disk_errors():
            return ScratchFile(os.open(name, flags, 0o600, dir_fd=self._incoming), name, self._incoming)

    def put(self, tx: Tx, upload: BlobUpload) -> None:
        """Moves the file into place before its row is committed, so no crash leaves a row without file."""
        scratch = upload.scratch()
        assert scratch.name is not None
        with translate_disk_errors(), self._subfolder(upload.hash[:2]) as folder:
            os.rename(scratch.name, upload.hash, src_dir_fd=self._incoming, dst_dir_fd=folder)
            os.fsync(folder)

    async def read(self, hash: str, start: int, end: int) -> AsyncGenerator[bytes]:
        with await self.open(hash) as file:
            file.seek(start)
            while block := await to_completion(asyncio.to_thread(file.read, min(BLOCK, end - start))):
                yield block
                start += len(block)

    async def open(self, hash: str) -> BinaryIO:
        return await _open_in_thread(lambda: self._open(hash))

    def _open(self, hash: str) -> BinaryIO:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with self._subfolder(_must_be_hash(hash)[:2]) as folder:
                return os.fdopen(os.open(hash, flags, dir_fd=folder), "rb")
        except OSError as error:
            raise StorageFailed(f"The bytes of a file cannot be read: {error.strerror}.") from error

    def remove(self, hash: str) -> None:
        with suppress(FileNotFoundError), self._subfolder(_must_be_hash(hash)[:2]) as folder:
            os.unlink(hash, dir_fd=folder)

    def older_than(self, before_ms: int) -> list[str]:
        return [hash for hash, changed_at in self._all() if changed_at < before_ms / 1000]

    def close(self) -> None:
        os.close(self._incoming)
        os.close(self._root)

    def _all(self) -> Iterator[tuple[str, float]]:
        for name in os.listdir(self._root):
            if len(name) == 2:
                with self._subfolder(name) as folder:
                    for hash in filter(_HASH.fullmatch, os.listdir(folder)):
                        yield hash, os.stat(hash, dir_fd=folder, follow_symlinks=False).st_mtime

    @contextmanager
    def _subfolder(self, name: str) -> Iterator[int]:
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
        return os.open(name, _FOLDER_FLAGS, dir_fd=self._root)


def _open_folder(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return os.open(folder.resolve(), _FOLDER_FLAGS)


def _must_be_hash(hash: str) -> str:
    if not _HASH.fullmatch(hash):
        raise NotFound(GONE)
    return hash


class DatabaseBlobs:
    """Stores a blob as rows of one megabyte each. Scratch files have no name."""

    name = "pieces"

    def __init__(self, db: Database, folder: Path) -> None:
        self._db = db
        self._scratch = folder / "incoming"
        self._scratch.mkdir(parents=True, exist_ok=True, mode=0o700)

    def scratch(self) -> ScratchFile:
        with translate_disk_errors(), tempfile.TemporaryFile(dir=self._scratch) as file:
            return ScratchFile(os.dup(file.fileno()))

    def put(self, tx: Tx, upload: BlobUpload) -> None:
        with upload.file() as file:
            for number, piece in enumerate(iter(lambda: file.read(PIECE), b"")):
                tx.execute(_ADD_PIECE, hash=upload.hash, number=number, content=piece)

    async def read(self, hash: str, start: int, end: int) -> AsyncGenerator[bytes]:
        while start < end:
            number, offset = divmod(start, PIECE)
            row = await self._db.read(lambda tx, n=number: tx.maybe(_PIECE, hash=hash, number=n))  # type: ignore[misc]
            if row is None:
                return
            yield bytes(row.content[offset : offset + end - start])
            start += PIECE - offset

    async def open(self, hash: str) -> BinaryIO:
        return await spooled(self.read(hash, 0, sys.maxsize), self._scratch)

    def remove(self, hash: str) -> None:
        """Nothing to do: the pieces were deleted with the blob's row (cascade)."""

    def older_than(self, before_ms: int) -> list[str]:
        return []

    def close(self) -> None:
        """Nothing to do: no file is open."""


_ADD_PIECE = sql("INSERT INTO blob_pieces (hash, number, content) VALUES (:hash, :number, :content)")

_PIECE = sql("SELECT content FROM blob_pieces WHERE hash = :hash AND number = :number")


async def _open_in_thread(open_file: Callable[[], BinaryIO]) -> BinaryIO:
    """Opens a file in a thread; if the caller is cancelled meanwhile, closes it."""
    opening = asyncio.ensure_future(asyncio.to_thread(open_file))
    try:
        return await to_completion(opening)
    except asyncio.CancelledError:
        if opening.done() and not opening.cancelled() and opening.exception() is None:
            opening.result().close()
        raise


async def spooled(blocks: AsyncGenerator[bytes], folder: Path | None = None) -> BinaryIO:
    """Copies the blocks to a temporary file and returns it, ready to read from its start."""
    file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - the caller closes it
    with closed_on_failure(file):
        async with aclosing(blocks):
            async for block in blocks:
                await to_completion(asyncio.to_thread(file.write, block))
        file.seek(0)
    return file
