"""Rebuilding: a project is read anew, a job for each file and each few rounds; what is found stays so."""

from __future__ import annotations

from tertulia.store import chunks, jobs
from tertulia.store.database import Tx

ROUNDS = 100
"""How many rounds of a conversation one job reads."""


def enqueue_rebuild(tx: Tx, project_id: str | None = None) -> int:
    """Leaves the jobs for a project, or for all; says how many. What is new meanwhile is not kept waiting."""
    count = 0
    for file_id, queue in chunks.all_files(tx, project_id):
        jobs.add_once(tx, "index_file", file_id, queue=queue)
        count += 1
    for conversation_id, queue, rounds in chunks.all_conversations(tx, project_id):
        for first in range(1, rounds + 1, ROUNDS):
            payload = f"{conversation_id}:{first}:{first + ROUNDS - 1}:anew"
            jobs.add_once(tx, "index_round", payload, queue=queue)
            count += 1
    return count
