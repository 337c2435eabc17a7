"""Rebuild: enqueues the jobs that index a project again; until they have run, the old index is searched."""

from __future__ import annotations

from tertulia.core.jobs import IndexFile, IndexRounds
from tertulia.store import chunks, jobs
from tertulia.store.database import Tx

ROUNDS_PER_JOB = 100


def enqueue_rebuild(tx: Tx, project_id: str | None = None) -> int:
    """Enqueues a job for each file and for each stretch of rounds of a project, or of all projects.

    Returns how many. Each file's and each conversation's own queue is used, so that new content is not
    delayed.
    """
    count = 0
    for file_id, queue in chunks.all_files(tx, project_id):
        jobs.enqueue_once(tx, IndexFile(file_id), queue=queue)
        count += 1
    for conversation_id, queue, rounds in chunks.all_conversations(tx, project_id):
        for first in range(1, rounds + 1, ROUNDS_PER_JOB):
            job = IndexRounds(conversation_id, first, first + ROUNDS_PER_JOB - 1, anew=True)
            jobs.enqueue_once(tx, job, queue=queue)
            count += 1
    return count
