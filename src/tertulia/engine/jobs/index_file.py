"""The index job: reads a file's text, cuts it into chunks and puts them where they are found.

Words come first, so that the file can be found; its vectors follow (embed.py). A large file is written in
batches, and nobody waits for more than one of them.
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
from tertulia.engine.jobs.embed import WORDS_PERCENT, show_progress
from tertulia.library.index import of_file
from tertulia.store import chunks, files, jobs, projects, vectors
from tertulia.store.chunks import NewChunk
from tertulia.store.database import Tx
from tertulia.store.vectors import ReusableVectors

BATCH = 100
LEFT_OUT = "Its settings keep it out of search."
BROKEN = "Reading it failed; the server's log says why. Re-index all files to try again."


async def index_file(dependencies: Dependencies, job: IndexFile) -> None:
    """What becomes of it is written beside the file, also when that is nothing."""
    file = await dependencies.db.read(lambda tx: files.find(tx, job.file_id))
    if file is None:
        return
    if not file.metadata.retrieval_eligible:
        await dependencies.db.write(
            lambda tx: _nothing(tx, file, IndexState(IndexPhase.NOT_INDEXED, reason=LEFT_OUT))
        )
        return
    reading = IndexState(IndexPhase.READING, file.index.chunks)
    await dependencies.db.write(lambda tx: files.set_index(tx, job.file_id, reading, version=file.version))
    try:
        await _index(dependencies, file, await text_of(dependencies, file))
    except NotFound:
        if await dependencies.db.read(lambda tx: files.find(tx, job.file_id)) is not None:
            await _broken(dependencies, file)
            raise
    except Exception:
        await _broken(dependencies, file)
        raise
    await analyze_tables(dependencies)


async def _broken(dependencies: Dependencies, file: ProjectFile) -> None:
    """The job is tried again, and set aside after a few attempts: whoever looks at the file sees that."""
    state = IndexState(IndexPhase.FAILED, file.index.chunks, reason=BROKEN)
    await dependencies.db.write(lambda tx: files.set_index(tx, file.id, state, version=file.version))


async def _index(dependencies: Dependencies, file: ProjectFile, extracted: Extracted) -> None:
    if not extracted.text or extracted.has_failed:
        state = IndexPhase.FAILED if extracted.has_failed else IndexPhase.NOT_INDEXED
        await dependencies.db.write(lambda tx: _nothing(tx, file, IndexState(state, reason=extracted.reason)))
        return
    settings = await dependencies.db.read(lambda tx: projects.find_settings(tx, file.project_id))
    lines = settings.retrieval_config.chunk_size
    has_meaning = dependencies.library.embedder.unavailable_reason() is None
    kept = await dependencies.db.read(lambda tx: vectors.of_file(tx, file.id, file.path))
    done = 0
    async for batch, is_last in _batches(of_file(file, extracted.text, lines)):
        share = 1.0 if is_last else (batch[-1].location.end_char or 0) / len(extracted.text)
        after = _after(done + len(batch), share, has_meaning, extracted.reason)
        if not await dependencies.db.write(
            partial(_write, file=file, first=done, batch=batch, after=after, kept=kept)
        ):
            return
        done += len(batch)


async def _batches(new: Iterator[NewChunk]) -> AsyncIterator[tuple[Sequence[NewChunk], bool]]:
    """A few at a time, cut beside the event loop, and whether they are the last."""

    def cut() -> tuple[NewChunk, ...]:
        return tuple(itertools.islice(new, BATCH))

    batch, more = await asyncio.to_thread(cut), True
    while more:
        following = await asyncio.to_thread(cut)
        more = bool(following)
        yield batch, not more
        batch = following


def _after(done: int, share: float, has_meaning: bool, reason: str | None) -> IndexState:
    """How far it is when so many chunks, and with them this share of the text, are written."""
    if share < 1 or (has_meaning and done):
        words = WORDS_PERCENT if has_meaning else 100
        return IndexState(IndexPhase.INDEXING, done, int(words * share), reason)
    return IndexState(IndexPhase.INDEXED, done, 100, reason)


def _write(
    tx: Tx, file: ProjectFile, first: int, batch: Sequence[NewChunk], after: IndexState, kept: ReusableVectors
) -> bool:
    """The first batch takes the place of what was there. False: there is nothing to go on with."""
    if not _goes_on(tx, file, first) or files.set_index(tx, file.id, after, version=file.version) is None:
        return False
    if first == 0:
        chunks.remove_file(tx, file.id)
    numbers = chunks.add_to_file(tx, file.id, file.project_id, first, batch)
    # What was not changed is found by meaning at once, and is not paid for again.
    if again := kept.again(numbers, batch):
        vectors.save(tx, kept.config, again)
        show_progress(tx, file.id)
    jobs.enqueue_once(tx, EmbedChunks())
    return True


def _goes_on(tx: Tx, file: ProjectFile, first: int) -> bool:
    """Not when the file is gone or waits to be read anew, nor when another run has written meanwhile."""
    now = files.find(tx, file.id)
    if now is None:
        return False
    if first == 0:
        return now.index.state is IndexPhase.READING
    return now.index.state is IndexPhase.INDEXING and now.index.chunks == first


def _nothing(tx: Tx, file: ProjectFile, state: IndexState) -> None:
    if files.set_index(tx, file.id, state, version=file.version) is not None:
        chunks.remove_file(tx, file.id)
