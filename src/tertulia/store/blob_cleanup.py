"""Blob cleanup: schedules jobs that delete blobs which no file refers to any more, at most one per hour."""

from __future__ import annotations

from tertulia.core.jobs import SweepBlobs
from tertulia.store import jobs
from tertulia.store.sql import sql
from tertulia.store.transactions import Tx

SWEEP_AFTER_MS = 3_900_000
"""A little longer than an unreferenced blob is kept."""


def release_file(tx: Tx, file_id: str) -> None:
    """Releases the blobs of all versions of a file that is about to be deleted."""
    tx.execute(_RELEASE_FILE, file_id=file_id, now=tx.now)
    later(tx)


_RELEASE_FILE = sql("""
    UPDATE blobs SET used_at = :now
    WHERE hash IN (SELECT content_hash FROM file_versions WHERE file_id = :file_id)
""")


def release_project(tx: Tx, project_id: str) -> None:
    """Releases the blobs of all files of a project that is about to be deleted."""
    tx.execute(_RELEASE_PROJECT, project_id=project_id, now=tx.now)
    later(tx)


_RELEASE_PROJECT = sql("""
    UPDATE blobs SET used_at = :now WHERE hash IN (
        SELECT v.content_hash FROM file_versions AS v JOIN project_files AS f ON f.id = v.file_id
        WHERE f.project_id = :project_id
    )
""")


def later(tx: Tx) -> None:
    """Enqueues a cleanup job; all of the same hour share one."""
    due = tx.now + SWEEP_AFTER_MS
    jobs.enqueue(tx, SweepBlobs(), key=f"{SweepBlobs.kind}:{due // 3_600_000}", run_at=due)


def daily(tx: Tx) -> None:
    """Enqueues the cleanup at the server's start, at most once a day, for blobs that a crash left."""
    jobs.enqueue(tx, SweepBlobs(), key=f"{SweepBlobs.kind}:day:{tx.now // 86_400_000}")
