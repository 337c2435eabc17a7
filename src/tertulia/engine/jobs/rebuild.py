"""Rebuilding: a project is read anew, a job for each file and each few rounds; what is found stays so."""

from __future__ import annotations

from tertulia.store import chunks, jobs
from tertulia.store.database import Tx

ROUNDS = 100
"""How many rounds of a conversation one job reads."""


def leave_rebuild(tx: Tx, project_id: str | None = None) -> int:
    """Leaves the jobs for a project, or for all; says how many."""
    count = 0
    for file_id in chunks.all_files(tx, project_id):
        jobs.add_once(tx, "index_file", file_id)
        count += 1
    for conversation_id, rounds in chunks.all_conversations(tx, project_id):
        for first in range(1, rounds + 1, ROUNDS):
            jobs.add_once(tx, "index_round", f"{conversation_id}:{first}:{first + ROUNDS - 1}:anew")
            count += 1
    return count
