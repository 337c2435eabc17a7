"""Blobs: bytes kept once, by their hash.

Small ones stand in their row; large ones on disk, or in pieces in PostgreSQL (keeping.py). Bytes arrive in
a scratch file (incoming.py) and are whole, hashed and synced before the transaction that refers to them. A
blob nobody refers to is swept away some time after.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import BinaryIO

from sqlalchemy import text

from tertulia.core.errors import NotFound
from tertulia.core.ids import NewId
from tertulia.store.database import Database
from tertulia.store.incoming import HEAD, ROW_LIMIT, Incoming
from tertulia.store.keeping import Disk, Keeping, Pieces, spooled
from tertulia.store.transactions import GONE, Tx

GRACE_MS = 3_600_000
"""A blob nobody refers to stays this long: readers finish, and an upload has the time to be referred to."""


class Blobs:
    def __init__(self, db: Database, folder: Path, new_id: NewId) -> None:
        self._db = db
        self._keeping: Keeping = Pieces(db, folder) if db.is_shared else Disk(folder, new_id)

    # ── in

    def receive(self) -> Incoming:
        """For bytes that are about to arrive; use it in an `async with` block."""
        return Incoming(self._keeping.scratch)

    @contextmanager
    def saving(self, tx: Tx, arrived: Incoming) -> Iterator[None]:
        """Keeps what has arrived, in the transaction that refers to it from inside this block.

        A large one is put in its place last, so that a refusal in between leaves nothing there.
        """
        tx.hold(f"blob:{arrived.hash}")
        is_new = tx.maybe(_TOUCH, hash=arrived.hash, now=tx.now) is None
        is_small = arrived.size_bytes < ROW_LIMIT
        if is_new:
            tx.execute(
                _ADD,
                hash=arrived.hash,
                size_bytes=arrived.size_bytes,
                keeping="row" if is_small else self._keeping.name,
                content=arrived.content() if is_small else None,
                now=tx.now,
            )
        yield
        if is_new and not is_small:
            self._keeping.put(tx, arrived)

    # ── out

    async def read(self, hash: str, start: int = 0, end: int = sys.maxsize) -> AsyncGenerator[bytes]:
        """The bytes from one place up to another, block by block; of a large blob no others are read."""
        row = await self._db.read(lambda tx: tx.maybe(_GET, hash=hash))
        if row is None:
            raise NotFound(GONE)
        if row.keeping == "row":
            yield bytes(row.content[start:end])
            return
        async with aclosing(self._keeping.read(hash, start, end)) as blocks:
            async for block in blocks:
                yield block

    async def head(self, hash: str, size: int = HEAD) -> bytes:
        """The first bytes, by default enough to see what they are."""
        return b"".join([block async for block in self.read(hash, 0, size)])

    async def open(self, hash: str) -> BinaryIO:
        """A file of the bytes to read from, which has no name anyone else could use."""
        row = await self._db.read(lambda tx: tx.maybe(_GET, hash=hash))
        if row is None:
            raise NotFound(GONE)
        return await (spooled(self.read(hash)) if row.keeping == "row" else self._keeping.open(hash))

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
        """What stands there without a row: a crash came between the two."""
        standing = await asyncio.to_thread(self._keeping.older_than, before_ms)
        kept = await self._db.read(lambda tx: tx.execute(_LARGE))
        return set(standing) - {row.hash for row in kept}

    async def _clear(self, hash: str) -> None:
        """In the one thread that writes: nobody can begin to refer to the hash while its bytes go."""

        def clear(tx: Tx) -> None:
            if tx.maybe(_IS_KEPT, hash=hash) is None:
                self._keeping.remove(hash)

        await self._db.write(clear)

    def close(self) -> None:
        self._keeping.close()


_TOUCH = text("UPDATE blobs SET used_at = :now WHERE hash = :hash RETURNING hash")

_ADD = text("""
    INSERT INTO blobs (hash, size_bytes, keeping, content, used_at)
    VALUES (:hash, :size_bytes, :keeping, :content, :now)
""")

_GET = text("SELECT keeping, content FROM blobs WHERE hash = :hash")

_LARGE = text("SELECT hash FROM blobs WHERE keeping <> 'row'")

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
