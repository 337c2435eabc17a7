"""Vector cache: holds the vectors of a project in one block of memory for fast similarity search.

Up to EXACT_LIMIT vectors, all are compared in full. With more, their signs are compared first (binary
quantization) and only the nearest thousand in full, which takes a tenth of the time and misses 2 of 1,000
neighbours.
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
from tertulia.store.retrieval import ScoredChunk
from tertulia.store.vectors import VectorBatch, VectorGeneration

EXACT_LIMIT = 20_000
RESCORE_COUNT = 1_000
COPY_COST = 4
"""Copying one row takes as long as comparing this many."""
MEMORY_BYTES = 512 << 20
"""The limit for all projects together; the least recently used is dropped first."""

Array = Any


@dataclass(frozen=True, slots=True)
class ProjectVectors:
    """The vectors of one project as they were at one state of the database."""

    config: int
    state: VectorGeneration
    numbers: Array
    are_files: Array
    vectors: Array
    """A row per vector: half floats, or full floats up to EXACT_LIMIT vectors."""
    signs: Array | None
    """A row per 64 dimensions and a column per vector, which compares fastest; None up to EXACT_LIMIT."""

    @property
    def size_bytes(self) -> int:
        return int(
            self.vectors.nbytes + self.numbers.nbytes + (0 if self.signs is None else self.signs.nbytes)
        )

    def nearest(
        self, vector: bytes, source: Source, limit: int, within: Sequence[int] | None = None
    ) -> tuple[ScoredChunk, ...]:
        """The most similar chunks of a source, best first, out of the numbers in `within` if given."""
        query = np.frombuffer(vector, dtype=np.float16).astype(np.float32)
        rows = np.flatnonzero(self.are_files == (source is Source.FILE))
        if within is not None:
            rows = rows[np.isin(self.numbers[rows], np.asarray(within, dtype=np.int64))]
        if self.signs is not None and len(rows) > EXACT_LIMIT:
            rows = self._nearest_by_signs(query, rows)
        if len(rows) == 0:
            return ()
        scores, numbers = self._scores(query, rows), self.numbers[rows]
        return tuple(
            ScoredChunk(int(numbers[index]), float(scores[index])) for index in _top(scores, numbers, limit)
        )

    def _scores(self, query: Array, rows: Array) -> Array:
        # einsum, not @: the threads of @ spin, which on a busy machine is many times slower than one core.
        if self.signs is None and len(rows) * COPY_COST > len(self.vectors):
            return np.einsum("ij,j->i", self.vectors, query)[rows]
        return np.einsum("ij,j->i", self.vectors[rows].astype(np.float32, copy=False), query)

    def _nearest_by_signs(self, query: Array, rows: Array) -> Array:
        """The RESCORE_COUNT rows whose signs differ least from the query's, and rows that tie with them."""
        assert self.signs is not None
        distances = np.zeros(len(self.numbers), dtype=np.uint16)
        for signs, query_signs in zip(self.signs, _signs(query[None, :]), strict=True):
            distances += np.bitwise_count(signs ^ query_signs)
        distances = distances if len(rows) == len(distances) else distances[rows]
        return rows[distances <= np.partition(distances, RESCORE_COUNT - 1)[RESCORE_COUNT - 1]]


def _top(scores: Array, numbers: Array, limit: int) -> Array:
    """The indexes of the best scores, best first; equal scores by the lowest number."""
    if len(scores) > limit:
        lowest = -np.partition(-scores, limit - 1)[limit - 1]
        candidates = np.flatnonzero(scores >= lowest)
    else:
        candidates = np.arange(len(scores))
    return candidates[np.lexsort((numbers[candidates], -scores[candidates]))][:limit]


def _signs(vectors: Array) -> Array:
    """The signs of the vectors, with one bit per dimension, packed into 64-bit words."""
    bits = np.packbits(vectors > 0, axis=1)
    return np.ascontiguousarray(np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8))).view(np.uint64).T)


class VectorCache:
    """The vectors of recently searched projects, with least-recently-used eviction."""

    def __init__(self, memory_bytes: int = MEMORY_BYTES) -> None:
        self._memory_bytes = memory_bytes
        self._by_project: OrderedDict[str, ProjectVectors] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}

    def known(self, project_id: str, config: int, state: VectorGeneration) -> ProjectVectors | None:
        """The cached vectors of a project; None if they are not cached or not up to date."""
        cached = self._by_project.get(project_id)
        if cached is None or (cached.config, cached.state) != (config, state):
            return None
        self._by_project.move_to_end(project_id)
        return cached

    async def block(self, db: Database, project_id: str, config: int, dimensions: int) -> ProjectVectors:
        """The current vectors of a project; reads only what has changed since the last call."""
        async with self._locks.setdefault(project_id, asyncio.Lock()):
            cached = self._by_project.get(project_id)
            if cached is not None and cached.config != config:
                cached = None
            update = await db.read(lambda tx: _read_update(tx, project_id, config, cached))
            if cached is None or update.state != cached.state:
                cached = await asyncio.to_thread(_updated, cached, update, config, dimensions)
            self._store(project_id, cached)
            return cached

    def _store(self, project_id: str, cached: ProjectVectors) -> None:
        self._by_project[project_id] = cached
        self._by_project.move_to_end(project_id)
        while len(self._by_project) > 1 and self._size() > self._memory_bytes:
            evicted, _ = self._by_project.popitem(last=False)
            self._locks.pop(evicted, None)

    def _size(self) -> int:
        return sum(cached.size_bytes for cached in self._by_project.values())


@dataclass(frozen=True, slots=True)
class _VectorUpdate:
    """The vectors that were added or replaced since a cached state."""

    state: VectorGeneration
    vectors: VectorBatch
    remaining: tuple[int, ...] | None
    """The numbers of all chunks that still exist, if some were removed; else None."""


def _read_update(tx: Tx, project_id: str, config: int, cached: ProjectVectors | None) -> _VectorUpdate:
    state = vectors.generation(tx, project_id)
    if cached is not None and state == cached.state:
        return _VectorUpdate(state, VectorBatch((), (), b""), None)
    after = cached.state.generation if cached else 0
    has_removals = cached is not None and state.removals != cached.state.removals
    return _VectorUpdate(
        state,
        vectors.of_project(tx, project_id, config, after),
        vectors.numbers(tx, project_id) if has_removals else None,
    )


def _updated(
    cached: ProjectVectors | None, update: _VectorUpdate, config: int, dimensions: int
) -> ProjectVectors:
    """The cached vectors without the removed and replaced ones, joined with the new ones."""
    numbers = np.asarray(update.vectors.numbers, dtype=np.int64)
    are_files = np.asarray(update.vectors.are_files, dtype=bool)
    vectors = np.frombuffer(update.vectors.joined, dtype=np.float16).reshape(len(numbers), dimensions)
    signs = _signs(vectors)
    if cached is not None:
        is_unchanged = ~np.isin(cached.numbers, numbers)
        if update.remaining is not None:
            is_unchanged &= np.isin(cached.numbers, np.asarray(update.remaining, dtype=np.int64))
        numbers = np.concatenate([cached.numbers[is_unchanged], numbers])
        are_files = np.concatenate([cached.are_files[is_unchanged], are_files])
        old = cached.vectors[is_unchanged].astype(np.float16, copy=False)
        vectors = np.concatenate([old, vectors])
        old_signs = _signs(old) if cached.signs is None else cached.signs[:, is_unchanged]
        signs = np.concatenate([old_signs, signs], axis=1)
    if len(numbers) > EXACT_LIMIT:
        return ProjectVectors(config, update.state, numbers, are_files, vectors, signs)
    return ProjectVectors(config, update.state, numbers, are_files, vectors.astype(np.float32), None)
