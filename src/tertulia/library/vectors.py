"""Vectors: those of a project in one block of memory, compared with a question all at once.

Up to EXACT vectors every one is compared in full. Above, their signs are compared first, and only the nearest
thousand in full: a tenth of the time, and of a thousand neighbours two are missed.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tertulia.core.chunks import Source
from tertulia.store import vectors
from tertulia.store.database import Database, Tx
from tertulia.store.retrieval import Scored
from tertulia.store.vectors import LibraryState, Vectors

EXACT = 20_000
RESCORED = 1_000
COPIED = 4
"""Comparing so many rows takes no longer than copying one."""
MEMORY_BYTES = 512 << 20
"""What all blocks together may take; the one asked longest ago goes first."""

Array = Any


@dataclass(frozen=True, slots=True)
class Block:
    config: int
    state: LibraryState
    numbers: Array
    are_files: Array
    vectors: Array
    """Half floats, a row each; full floats while there are few."""
    signs: Array | None
    """A row for each 64 dimensions, and a column for each vector: so they are compared fastest."""

    @property
    def size_bytes(self) -> int:
        return int(
            self.vectors.nbytes + self.numbers.nbytes + (0 if self.signs is None else self.signs.nbytes)
        )

    def nearest(
        self, vector: bytes, source: Source, limit: int, within: Sequence[int] | None = None
    ) -> tuple[Scored, ...]:
        """The best of one kind, best first; `within` names the only numbers that count."""
        asked = np.frombuffer(vector, dtype=np.float16).astype(np.float32)
        rows = np.flatnonzero(self.are_files == (source is Source.FILE))
        if within is not None:
            rows = rows[np.isin(self.numbers[rows], np.asarray(within, dtype=np.int64))]
        if self.signs is not None and len(rows) > EXACT:
            rows = self._likely(asked, rows)
        if len(rows) == 0:
            return ()
        scores, numbers = self._scores(asked, rows), self.numbers[rows]
        return tuple(
            Scored(int(numbers[place]), float(scores[place])) for place in _top(scores, numbers, limit)
        )

    def _scores(self, asked: Array, rows: Array) -> Array:
        # Not by @: its threads spin, and on a busy machine take many times what one core does alone.
        if self.signs is None and len(rows) * COPIED > len(self.vectors):
            return np.einsum("ij,j->i", self.vectors, asked)[rows]
        return np.einsum("ij,j->i", self.vectors[rows].astype(np.float32, copy=False), asked)

    def _likely(self, asked: Array, rows: Array) -> Array:
        assert self.signs is not None
        apart = np.zeros(len(self.numbers), dtype=np.uint16)
        for signs, one in zip(self.signs, _signs(asked[None, :]), strict=True):
            apart += np.bitwise_count(signs ^ one)
        apart = apart if len(rows) == len(apart) else apart[rows]
        return rows[apart <= np.partition(apart, RESCORED - 1)[RESCORED - 1]]  # and all that are as near


def _top(scores: Array, numbers: Array, limit: int) -> Array:
    """The places of the best, best first; of equals those with the lowest numbers."""
    if len(scores) > limit:
        least = -np.partition(-scores, limit - 1)[limit - 1]
        likely = np.flatnonzero(scores >= least)
    else:
        likely = np.arange(len(scores))
    return likely[np.lexsort((numbers[likely], -scores[likely]))][:limit]


def _signs(vectors: Array) -> Array:
    """One bit for each dimension, in words of 64."""
    bits = np.packbits(vectors > 0, axis=1)
    return np.ascontiguousarray(np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8))).view(np.uint64).T)


class Blocks:
    """The blocks of the projects that were searched last."""

    def __init__(self, memory_bytes: int = MEMORY_BYTES) -> None:
        self._memory_bytes = memory_bytes
        self._blocks: OrderedDict[str, Block] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}

    def known(self, project_id: str, config: int, state: LibraryState) -> Block | None:
        """The block of a project that has not changed since it was read."""
        block = self._blocks.get(project_id)
        if block is None or (block.config, block.state) != (config, state):
            return None
        self._blocks.move_to_end(project_id)
        return block

    async def block(self, db: Database, project_id: str, config: int, dimensions: int) -> Block:
        """What the database holds now; only what came since the last time is read."""
        async with self._locks.setdefault(project_id, asyncio.Lock()):
            known = self._blocks.get(project_id)
            if known is not None and known.config != config:
                known = None
            news = await db.read(lambda tx: _news(tx, project_id, config, known))
            if known is None or news.state != known.state:
                known = await asyncio.to_thread(_joined, known, news, config, dimensions)
            self._keep(project_id, known)
            return known

    def _keep(self, project_id: str, block: Block) -> None:
        self._blocks[project_id] = block
        self._blocks.move_to_end(project_id)
        while len(self._blocks) > 1 and self._size() > self._memory_bytes:
            gone, _ = self._blocks.popitem(last=False)
            self._locks.pop(gone, None)

    def _size(self) -> int:
        return sum(block.size_bytes for block in self._blocks.values())


@dataclass(frozen=True, slots=True)
class _News:
    state: LibraryState
    vectors: Vectors
    alive: tuple[int, ...] | None
    """All that are left, when some were removed."""


def _news(tx: Tx, project_id: str, config: int, known: Block | None) -> _News:
    state = vectors.state(tx, project_id)
    if known is not None and state == known.state:
        return _News(state, Vectors((), (), b""), None)
    after = known.state.generation if known else 0
    has_removals = known is not None and state.removals != known.state.removals
    return _News(
        state,
        vectors.of_project(tx, project_id, config, after),
        vectors.numbers(tx, project_id) if has_removals else None,
    )


def _joined(known: Block | None, news: _News, config: int, dimensions: int) -> Block:
    numbers = np.asarray(news.vectors.numbers, dtype=np.int64)
    are_files = np.asarray(news.vectors.are_files, dtype=bool)
    vectors = np.frombuffer(news.vectors.joined, dtype=np.float16).reshape(len(numbers), dimensions)
    signs = _signs(vectors)
    if known is not None:
        kept = ~np.isin(known.numbers, numbers)
        if news.alive is not None:
            kept &= np.isin(known.numbers, np.asarray(news.alive, dtype=np.int64))
        numbers = np.concatenate([known.numbers[kept], numbers])
        are_files = np.concatenate([known.are_files[kept], are_files])
        old = known.vectors[kept].astype(np.float16, copy=False)
        vectors = np.concatenate([old, vectors])
        old_signs = _signs(old) if known.signs is None else known.signs[:, kept]
        signs = np.concatenate([old_signs, signs], axis=1)
    if len(numbers) > EXACT:
        return Block(config, news.state, numbers, are_files, vectors, signs)
    return Block(config, news.state, numbers, are_files, vectors.astype(np.float32), None)
