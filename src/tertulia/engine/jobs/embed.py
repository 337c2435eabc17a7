"""The embedding job: computes vectors for chunks, a few at a time, so that other jobs run in between."""

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
INDEX_BATCH = 500
"""How many stored vectors are added to a new vector index at once."""
TEXT_PERCENT = 50
"""A file's progress when its full text is indexed."""


def embed_inline(dependencies: Dependencies, tx: Tx, job: EmbedChunks) -> bool:
    """Without an embedding model the job is done: the chunks wait until the next start."""
    return dependencies.library.embedder.unavailable_reason() is not None


async def embed(dependencies: Dependencies, job: EmbedChunks) -> None:
    if dependencies.library.embedder.unavailable_reason() is not None:
        return
    try:
        done = await embed_due(dependencies.library, SLICE, _continue)
    except EmbeddingFailed as failed:
        # A failed job would be set aside after a few attempts, and leave the chunks without vectors for good.
        wait_ms = round(failed.again_in_s * 1000)
        await dependencies.db.write(lambda tx: jobs.enqueue(tx, EmbedChunks(), run_at=tx.now + wait_ms))
        return
    if not done:
        await dependencies.db.write(lambda tx: _continue(tx, done))
    await analyze_tables(dependencies)


def _continue(tx: Tx, done: tuple[PendingChunk, ...]) -> None:
    """Shows the progress, and enqueues the next job if there may be more to do."""
    for file_id in sorted({chunk.file_id for chunk in done if chunk.file_id is not None}):
        show_progress(tx, file_id)
    has_indexed = vectors.add_to_index(tx, INDEX_BATCH)
    if len(done) == SLICE or has_indexed:
        jobs.enqueue_once(tx, EmbedChunks())


def show_progress(tx: Tx, file_id: str) -> None:
    """Writes how many of a file's chunks have vectors, once its full text is indexed.

    A file that is already indexed stays so while its vectors are computed again.
    """
    file = files.find(tx, file_id)
    if file is None or file.index.state is not IndexPhase.INDEXING or file.index.percent < TEXT_PERCENT:
        return
    due, count = vectors.count_due_in_file(tx, file_id)
    percent = TEXT_PERCENT + (100 - TEXT_PERCENT) * (count - due) // max(1, count)
    state = IndexPhase.INDEXING if due else IndexPhase.INDEXED
    files.set_index(tx, file_id, IndexState(state, count, percent, file.index.reason))
