"""An embedder that remembers, across runs, what it was asked: vectors are kept by the text they are of.

TERTULIA_CACHE says where: a run that was ended goes on where it was, and the next one takes minutes.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tertulia.library.embedders import Embedder, OnCharge, not_charged

CACHE = Path(os.environ.get("TERTULIA_CACHE", Path(tempfile.gettempdir()) / "tertulia-vectors.db"))


class Remembering:
    def __init__(self, inner: Embedder, path: Path = CACHE) -> None:
        self._inner = inner
        self.model, self.dimensions = inner.model, inner.dimensions
        self._kept = sqlite3.connect(path, isolation_level=None)
        self._kept.execute("PRAGMA journal_mode = WAL")
        self._kept.execute("PRAGMA busy_timeout = 20000")
        self._kept.execute(
            "CREATE TABLE IF NOT EXISTS kept (hash BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID"
        )

    def unavailable_reason(self) -> str | None:
        return self._inner.unavailable_reason()

    async def embed(
        self, texts: Sequence[str], *, is_query: bool = False, billed: OnCharge = not_charged
    ) -> tuple[bytes, ...]:
        hashes = [hashlib.sha256(one.encode()).digest() for one in texts]
        found = {
            h: self._kept.execute("SELECT vector FROM kept WHERE hash = ?", (h,)).fetchone() for h in hashes
        }
        missing = {h: one for h, one in zip(hashes, texts, strict=True) if found[h] is None}
        made = await self._inner.embed(list(missing.values()), is_query=is_query) if missing else ()
        for h, vector in zip(missing, made, strict=True):
            self._kept.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (h, vector))
            found[h] = (vector,)
        return tuple(found[h][0] for h in hashes)

    async def close(self) -> None:
        await self._inner.close()
