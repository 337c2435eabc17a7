"""Blob store (content-addressed): stores equal bytes once, under their SHA-256 hash.

Small blobs are stored in their database row, large ones on disk, or in pieces in PostgreSQL
(blob_backends.py). An upload is written to a scratch file (blob_upload.py); it is complete, hashed and synced
before the transaction that refers to it. A sweep deletes blobs that nothing has referred to for a while.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import BinaryIO

from tertulia.core.errors import NotFound
from tertulia.core.ids import NewId
from tertulia.store.blob_backends import BlobBackend, DatabaseBlobs, DiskBlobs, spooled
from tertulia.store.blob_upload import HEAD, ROW_LIMIT, BlobUpload
from tertulia.store.database import Database
from tertulia.store.sql import sql
from tertulia.store.transactions import GONE, Tx

GRACE_MS = 3_600_000
"""An unreferenced blob is kept this long, so readers can finish and new uploads can still be referred to."""


class Blobs:
    def __init__(self, db: Database, folder: Path, new_id: NewId) -> None:
        self._db = db
        self._backend: BlobBackend = DatabaseBlobs(db, folder) if db.is_shared else DiskBlobs(folder, new_id)

    # ── writing

    def receive(self) -> BlobUpload:
        """Begins an upload; use it in an `async with` block."""
        return BlobUpload(self._backend.scratch)

    @contextmanager
    def saving(self, tx: Tx, upload: BlobUpload) -> Iterator[None]:
        """Saves a finished upload in the transaction that refers to it from inside this block.

        A large blob gets its final place after the block, so that an error in the block leaves no file.
        """
        tx.lock(f"blob:{upload.hash}")
        is_new = tx.maybe(_TOUCH, hash=upload.hash, now=tx.now) is None
        is_small = upload.size_bytes < ROW_LIMIT
        if is_new:
            tx.execute(
                _ADD,
                hash=upload.hash,
                size_bytes=upload.size_bytes,
                keeping="row" if is_small else self._backend.name,
                content=upload.content() if is_small else None,
                now=tx.now,
            )
        yield
        if is_new and not is_small:
            self._backend.put(tx, upload)

    # ── reading

    async def read(self, hash: str, start: int = 0, end: int = sys.maxsize) -> AsyncGenerator[bytes]:
        """Yields the bytes from start to end, block by block; of a large blob only that range is read."""
        row = await self._db.read(lambda tx: tx.maybe(_GET, hash=hash))
        if row is None:
            raise NotFound(GONE)
        if row.keeping == "row":
            yield bytes(row.content[start:end])
            return
        async with aclosing(self._backend.read(hash, start, end)) as blocks:
            async for block in blocks:
                yield block

    async def head(self, hash: str, size: int = HEAD) -> bytes:
        """The first bytes, by default enough to detect the file type."""
        return b"".join([block async for block in self.read(hash, 0, size)])

    async def open(self, hash: str) -> BinaryIO:
        """Opens the bytes as a file to read from; the caller gets no path to it."""
        row = await self._db.read(lambda tx: tx.maybe(_GET, hash=hash))
        if row is None:
            raise NotFound(GONE)
        return await (spooled(self.read(hash)) if row.keeping == "row" else self._backend.open(hash))

    # ── deleting

    async def sweep(self, before_ms: int) -> int:
        """Deletes blobs that are unreferenced and unused since this time; returns how many."""
        unused = await self._db.read(lambda tx: tx.execute(_UNUSED, before=before_ms))
        removed_count = 0
        for row in unused:
            removed_count += await self._db.write(lambda tx, hash=row.hash: _remove(tx, hash, before_ms))  # type: ignore[misc]
            await self._remove_orphan(row.hash)
        for hash in await self._orphans(before_ms):
            await self._remove_orphan(hash)
        return removed_count

    async def _orphans(self, before_ms: int) -> set[str]:
        """Hashes of stored files without a database row: a crash came between writing the two."""
        stored_hashes = await asyncio.to_thread(self._backend.older_than, before_ms)
        rows = await self._db.read(lambda tx: tx.execute(_LARGE_HASHES))
        return set(stored_hashes) - {row.hash for row in rows}

    async def _remove_orphan(self, hash: str) -> None:
        """Deletes the stored file if its row is gone; runs as a write, so that no row appears meanwhile."""

        def clear(tx: Tx) -> None:
            if tx.maybe(_HAS_ROW, hash=hash) is None:
                self._backend.remove(hash)

        await self._db.write(clear)

    def close(self) -> None:
        self._backend.close()


_TOUCH = sql("UPDATE blobs SET used_at = :now WHERE hash = :hash RETURNING hash")

_ADD = sql("""
    INSERT INTO blobs (hash, size_bytes, keeping, content, used_at)
    VALUES (:hash, :size_bytes, :keeping, :content, :now)
""")

_GET = sql("SELECT keeping, content FROM blobs WHERE hash = :hash")

_LARGE_HASHES = sql("SELECT hash FROM blobs WHERE keeping <> 'row'")

_HAS_ROW = sql("SELECT 1 FROM blobs WHERE hash = :hash")

_NOT_IN_USE = """
    NOT EXISTS (SELECT 1 FROM file_versions AS v WHERE v.content_hash = blobs.hash)
    AND NOT EXISTS (SELECT 1 FROM attachments AS a WHERE a.content_hash = blobs.hash)
"""

_UNUSED = sql(f"SELECT hash FROM blobs WHERE used_at < :before AND {_NOT_IN_USE}")

_REMOVE = sql(f"DELETE FROM blobs WHERE hash = :hash AND used_at < :before AND {_NOT_IN_USE} RETURNING hash")


def _remove(tx: Tx, hash: str, before_ms: int) -> int:
    tx.lock(f"blob:{hash}")
    return len(tx.execute(_REMOVE, hash=hash, before=before_ms))
