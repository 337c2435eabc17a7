"""The index job: extracts a file's text, cuts it into chunks and adds them to the full-text index.

The vectors follow (embed.py). A large file is written in batches, so that other writers wait for one batch at
most.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial

from tertulia.core.errors import NotFound
from tertulia.core.files import Extracted, IndexPhase, IndexState, ProjectFile
from tertulia.core.jobs import EmbedChunks, IndexFile
from tertulia.engine.dependencies import Dependencies
from tertulia.engine.files import text_of
from tertulia.engine.jobs.analyze_tables import analyze_tables
from tertulia.engine.jobs.embed import TEXT_PERCENT, show_progress
from tertulia.library.index import of_file
from tertulia.store import chunks, files, jobs, projects, vectors
from tertulia.store.chunks import NewChunk
from tertulia.store.database import Tx
from tertulia.store.vectors import ReusableVectors

BATCH = 100
NOT_SEARCHED = "Its settings keep it out of search."
BROKEN = "Reading it failed; the server's log says why. Re-index all files to try again."


async def index_file(dependencies: Dependencies, job: IndexFile) -> None:
    """Writes the outcome to the file's index state, even if there is nothing to index."""
    file = await dependencies.db.read(lambda tx: files.find(tx, job.file_id))
    if file is None:
        return
    if not file.metadata.retrieval_eligible:
        await dependencies.db.write(
            lambda tx: _set_empty(tx, file, IndexState(IndexPhase.NOT_INDEXED, reason=NOT_SEARCHED))
        )
        return
    reading = IndexState(IndexPhase.READING, file.index.chunks)
    await dependencies.db.write(lambda tx: files.set_index(tx, job.file_id, reading, version=file.version))
    try:
        await _index(dependencies, file, await text_of(dependencies, file))
    except NotFound:
        if await dependencies.db.read(lambda tx: files.find(tx, job.file_id)) is not None:
            await _set_failed(dependencies, file)
            raise
    except Exception:
        await _set_failed(dependencies, file)
        raise
    await analyze_tables(dependencies)


async def _set_failed(dependencies: Dependencies, file: ProjectFile) -> None:
    """Shows the failure at the file; the job is tried again, and set aside after a few attempts."""
    state = IndexState(IndexPhase.FAILED, file.index.chunks, reason=BROKEN)
    await dependencies.db.write(lambda tx: files.set_index(tx, file.id, state, version=file.version))


async def _index(dependencies: Dependencies, file: ProjectFile, extracted: Extracted) -> None:
    if not extracted.text or extracted.has_failed:
        state = IndexPhase.FAILED if extracted.has_failed else IndexPhase.NOT_INDEXED
        await dependencies.db.write(
            lambda tx: _set_empty(tx, file, IndexState(state, reason=extracted.reason))
        )
        return
    settings = await dependencies.db.read(lambda tx: projects.find_settings(tx, file.project_id))
    lines = settings.retrieval_config.chunk_size
    has_vectors = dependencies.library.embedder.unavailable_reason() is None
    reusable = await dependencies.db.read(lambda tx: vectors.of_file(tx, file.id, file.path))
    done = 0
    async for batch, is_last in _batches(of_file(file, extracted.text, lines)):
        share = 1.0 if is_last else (batch[-1].location.end_char or 0) / len(extracted.text)
        after = _after(done + len(batch), share, has_vectors, extracted.reason)
        if not await dependencies.db.write(
            partial(_write, file=file, first=done, batch=batch, after=after, reusable=reusable)
        ):
            return
        done += len(batch)


async def _batches(new: Iterator[NewChunk]) -> AsyncIterator[tuple[Sequence[NewChunk], bool]]:
    """Batches of chunks, cut in a thread, each with whether it is the last."""

    def cut() -> tuple[NewChunk, ...]:
        return tuple(itertools.islice(new, BATCH))

    batch, more = await asyncio.to_thread(cut), True
    while more:
        following = await asyncio.to_thread(cut)
        more = bool(following)
        yield batch, not more
        batch = following


def _after(done: int, share: float, has_vectors: bool, reason: str | None) -> IndexState:
    """The index state when this many chunks are written, which hold this share of the text."""
    if share < 1 or (has_vectors and done):
        complete = TEXT_PERCENT if has_vectors else 100
        return IndexState(IndexPhase.INDEXING, done, int(complete * share), reason)
    return IndexState(IndexPhase.INDEXED, done, 100, reason)


def _write(
    tx: Tx,
    file: ProjectFile,
    first: int,
    batch: Sequence[NewChunk],
    after: IndexState,
    reusable: ReusableVectors,
) -> bool:
    """Writes a batch; the first one replaces the old chunks. False if the job has to stop."""
    if (
        not _can_continue(tx, file, first)
        or files.set_index(tx, file.id, after, version=file.version) is None
    ):
        return False
    if first == 0:
        chunks.remove_file(tx, file.id)
    numbers = chunks.add_to_file(tx, file.id, file.project_id, first, batch)
    # Unchanged chunks keep their vectors, which are not paid for again.
    if again := reusable.again(numbers, batch):
        vectors.save(tx, reusable.config, again)
        show_progress(tx, file.id)
    jobs.enqueue_once(tx, EmbedChunks())
    return True


def _can_continue(tx: Tx, file: ProjectFile, first: int) -> bool:
    """False if the file was deleted or queued again, or if another run has written in the meantime."""
    now = files.find(tx, file.id)
    if now is None:
        return False
    if first == 0:
        return now.index.state is IndexPhase.READING
    return now.index.state is IndexPhase.INDEXING and now.index.chunks == first


def _set_empty(tx: Tx, file: ProjectFile, state: IndexState) -> None:
    if files.set_index(tx, file.id, state, version=file.version) is not None:
        chunks.remove_file(tx, file.id)
