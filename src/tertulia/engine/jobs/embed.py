"""The embed job: gives chunks their vectors, a few at a time, so that other jobs get their turn between."""

from __future__ import annotations

from tertulia.core.files import IndexPhase, IndexState
from tertulia.core.jobs import EmbedChunks
from tertulia.engine.dependencies import Dependencies
from tertulia.engine.jobs.analyze_tables import analyze_tables
from tertulia.library.embedders import EmbeddingFailed
from tertulia.library.index import embed_due
from tertulia.store import files, jobs, vectors
from tertulia.store.database import Tx
from tertulia.store.vectors import PendingChunk

SLICE = 32
PLACED = 500
"""How many vectors from before the database could compare them are handed on to it at once."""
WORDS_PERCENT = 50
"""How far a file is when it can be found by its words."""


def embed_inline(dependencies: Dependencies, tx: Tx, job: EmbedChunks) -> bool:
    """Without weights there is nothing to do: everything waits, and the next start looks again."""
    return dependencies.library.embedder.unavailable_reason() is not None


async def embed(dependencies: Dependencies, job: EmbedChunks) -> None:
    if dependencies.library.embedder.unavailable_reason() is not None:
        return
    try:
        done = await embed_due(dependencies.library, SLICE, _go_on)
    except EmbeddingFailed as failed:
        # Not the job's fault: set aside after a few attempts, it would leave texts without vectors for good.
        wait_ms = round(failed.again_in_s * 1000)
        await dependencies.db.write(lambda tx: jobs.enqueue(tx, EmbedChunks(), run_at=tx.now + wait_ms))
        return
    if not done:
        await dependencies.db.write(lambda tx: _go_on(tx, done))
    await analyze_tables(dependencies)


def _go_on(tx: Tx, done: tuple[PendingChunk, ...]) -> None:
    """There may be more to do when this was as much as is done at once."""
    for file_id in sorted({one.file_id for one in done if one.file_id is not None}):
        show_progress(tx, file_id)
    placed = vectors.add_to_index(tx, PLACED)
    if len(done) == SLICE or placed:
        jobs.enqueue_once(tx, EmbedChunks())


def show_progress(tx: Tx, file_id: str) -> None:
    """A file that is indexed already stays so: its words are found while its vectors are made anew.

    While its words are still being written, how far that is says more.
    """
    file = files.find(tx, file_id)
    if file is None or file.index.state is not IndexPhase.INDEXING or file.index.percent < WORDS_PERCENT:
        return
    due, count = vectors.count_due_in_file(tx, file_id)
    percent = WORDS_PERCENT + (100 - WORDS_PERCENT) * (count - due) // max(1, count)
    state = IndexPhase.INDEXING if due else IndexPhase.INDEXED
    files.set_index(tx, file_id, IndexState(state, count, percent, file.index.reason))
