"""File versions: every content that a file has had. The newest version is its current content."""

from __future__ import annotations

from tertulia.core.errors import NotFound
from tertulia.core.files import Content, FileVersion
from tertulia.core.users import Actor
from tertulia.store import access
from tertulia.store.sql import sql
from tertulia.store.transactions import GONE, Row, Tx


def add(
    tx: Tx, user_id: str, file_id: str, number: int, content: Content, upload_key: str | None = None
) -> None:
    tx.execute(
        _ADD,
        file_id=file_id,
        number=number,
        content_hash=content.hash,
        size_bytes=content.size_bytes,
        mime_type=content.mime_type,
        created_by=user_id,
        now=tx.now,
        upload_key=upload_key,
    )


_ADD = sql("""
    INSERT INTO file_versions (
        file_id, number, content_hash, size_bytes, mime_type, created_by, created_at, upload_key
    )
    VALUES (
        :file_id, :number, :content_hash, :size_bytes, :mime_type, :created_by, :now, :upload_key
    )
""")


def of_file(tx: Tx, actor: Actor, project_id: str, file_id: str) -> tuple[FileVersion, ...]:
    """A file's versions, newest first.

    Every file has at least one, so without rows the file does not exist or is hidden from the actor.
    """
    rows = tx.execute(_OF_FILE, actor_id=actor.user_id, project_id=project_id, file_id=file_id)
    if not rows:
        raise NotFound(GONE)
    return tuple(_version(row) for row in rows)


_SELECT_VISIBLE = f"""
    SELECT v.file_id, v.number, v.content_hash, v.size_bytes, v.mime_type, v.created_by, v.created_at
    FROM file_versions AS v JOIN project_files AS f ON f.id = v.file_id
    JOIN projects AS p ON p.id = f.project_id {access.MEMBER_OF_PROJECT}
    WHERE f.id = :file_id AND f.project_id = :project_id
"""

_OF_FILE = sql(f"{_SELECT_VISIBLE} ORDER BY v.number DESC")


def _version(row: Row) -> FileVersion:
    return FileVersion(
        row.file_id,
        row.number,
        row.content_hash,
        row.size_bytes,
        row.mime_type,
        row.created_by,
        row.created_at,
    )


def get(tx: Tx, actor: Actor, project_id: str, file_id: str, number: int) -> FileVersion:
    file = {"actor_id": actor.user_id, "project_id": project_id, "file_id": file_id}
    return _version(tx.one(_GET, **file, number=number))


_GET = sql(f"{_SELECT_VISIBLE} AND v.number = :number")
