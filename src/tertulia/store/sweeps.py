"""Sweeps: bytes that were let go are swept away some time after, once for all of the same hour."""

from __future__ import annotations

from sqlalchemy import text

from tertulia.store import jobs
from tertulia.store.transactions import Tx

SWEEP_JOB = "sweep_blobs"
SWEEP_AFTER_MS = 3_900_000
"""A little more than the time a blob stays that nobody refers to."""


def release_file(tx: Tx, file_id: str) -> None:
    """The file is about to go with all its versions."""
    tx.execute(_RELEASE_FILE, file_id=file_id, now=tx.now)
    later(tx)


_RELEASE_FILE = text("""
    UPDATE blobs SET used_at = :now
    WHERE hash IN (SELECT content_hash FROM file_versions WHERE file_id = :file_id)
""")


def release_project(tx: Tx, project_id: str) -> None:
    """The project is about to go, and its files with it."""
    tx.execute(_RELEASE_PROJECT, project_id=project_id, now=tx.now)
    later(tx)


_RELEASE_PROJECT = text("""
    UPDATE blobs SET used_at = :now WHERE hash IN (
        SELECT v.content_hash FROM file_versions AS v JOIN project_files AS f ON f.id = v.file_id
        WHERE f.project_id = :project_id
    )
""")


def later(tx: Tx) -> None:
    due = tx.now + SWEEP_AFTER_MS
    jobs.add(tx, SWEEP_JOB, "", key=f"{SWEEP_JOB}:{due // 3_600_000}", run_at=due)


def daily(tx: Tx) -> None:
    """At the start: for what a crash left."""
    jobs.add(tx, SWEEP_JOB, "", key=f"{SWEEP_JOB}:day:{tx.now // 86_400_000}")
