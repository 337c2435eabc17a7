"""Project files: adds, changes and removes them; every change emits an event in the project's topic.

`file_listing.py` lists files, and `versions.py` reads their earlier versions.
"""

from __future__ import annotations

import json
from functools import lru_cache

from tertulia.core.errors import Conflict, VersionConflict
from tertulia.core.events import EventKind, project_topic
from tertulia.core.files import (
    Content,
    FileMetadata,
    IndexPhase,
    IndexState,
    MetadataChange,
    ProjectFile,
    clean_path,
)
from tertulia.core.jobs import IndexFile
from tertulia.core.users import Actor
from tertulia.store import access, blob_cleanup, events, jobs, receipts, versions
from tertulia.store.column_values import as_json
from tertulia.store.sql import sql
from tertulia.store.transactions import Row, Tx

COLUMNS = """
    f.id, f.project_id, f.path, f.mime_type, f.size_bytes, f.content_hash, f.version, f.always_in_context,
    f.retrieval_eligible, f.tool_accessible, f.tags, f.summary, f.index_state, f.index_chunks,
    f.index_percent, f.index_reason, f.created_by, f.created_at, f.updated_at, f.upload_key
"""


# ── adding


def begin(tx: Tx, actor: Actor, project_id: str, file_id: str | None = None) -> int:
    """Checks that the actor may upload; returns how many bytes the actor's files use."""
    if file_id is not None:
        get(tx, actor, project_id, file_id)
    access.to_project(tx, actor, project_id).must_write()
    return used_bytes(tx, actor.user_id)


def put(
    tx: Tx, actor: Actor, project_id: str, path: str, content: Content, upload_key: str | None = None
) -> ProjectFile:
    """Stores content at a path: as a new file, its next version, or unchanged if the content is equal."""
    tx.lock(project_topic(project_id))
    access.to_project(tx, actor, project_id).must_write()
    normal_path = clean_path(path)
    row = tx.maybe(_BY_PATH, project_id=project_id, path=normal_path)
    if row is None:
        return _add(tx, actor, project_id, normal_path, content, upload_key)
    return _change(tx, actor, from_row(row), content, upload_key)


_BY_PATH = sql(
    f"SELECT {COLUMNS} FROM project_files AS f WHERE f.project_id = :project_id AND f.path = :path"
)


def _add(
    tx: Tx, actor: Actor, project_id: str, path: str, content: Content, upload_key: str | None
) -> ProjectFile:
    file_id = tx.new_id()
    tx.execute(
        _ADD,
        id=file_id,
        project_id=project_id,
        path=path,
        mime_type=content.mime_type,
        size_bytes=content.size_bytes,
        content_hash=content.hash,
        created_by=actor.user_id,
        now=tx.now,
        upload_key=upload_key,
    )
    versions.add(tx, actor.user_id, file_id, 1, content, upload_key)
    _enqueue_index_job(tx, actor.user_id, project_id, file_id, 1)
    return _changed(tx, file_id)


_ADD = sql("""
    INSERT INTO project_files (
        id, project_id, path, mime_type, size_bytes, content_hash, version, always_in_context,
        retrieval_eligible, tool_accessible, tags, summary, index_state, index_chunks, index_percent,
        created_by, created_at, updated_at, upload_key
    )
    VALUES (
        :id, :project_id, :path, :mime_type, :size_bytes, :content_hash, 1, FALSE, TRUE, TRUE, '[]', '',
        'queued', 0, 0, :created_by, :now, :now, :upload_key
    )
""")


def _enqueue_index_job(
    tx: Tx, user_id: str, project_id: str, file_id: str, version: int | None = None
) -> None:
    """Adds the job that indexes the file: once per version, and each time when no version is given.

    The queue is per project and user, so many files of one user do not delay others.
    """
    key = None if version is None else _index_key(file_id, version)
    jobs.enqueue(tx, IndexFile(file_id), key=key, queue=f"{project_id}:{user_id}")


def _index_key(file_id: str, version: int) -> str:
    return f"{IndexFile.kind}:{file_id}:{version}"


def _changed(tx: Tx, file_id: str) -> ProjectFile:
    """Emits an event with the file's current value in the project's topic, and returns the value."""
    file = from_row(tx.one(_READ, id=file_id))
    tx.emit(project_topic(file.project_id), EventKind.CHANGED, "file", file.id, file)
    return file


_READ = sql(f"SELECT {COLUMNS} FROM project_files AS f WHERE f.id = :id")


def from_row(row: Row) -> ProjectFile:
    return ProjectFile(
        id=row.id,
        project_id=row.project_id,
        path=row.path,
        mime_type=row.mime_type,
        size_bytes=row.size_bytes,
        content_hash=row.content_hash,
        version=row.version,
        metadata=FileMetadata(
            always_in_context=bool(row.always_in_context),
            retrieval_eligible=bool(row.retrieval_eligible),
            tool_accessible=bool(row.tool_accessible),
            tags=_tags(row.tags),
            summary=row.summary,
        ),
        index=IndexState(IndexPhase(row.index_state), row.index_chunks, row.index_percent, row.index_reason),
        created_by=row.created_by,
        created_at=row.created_at,
        updated_at=row.updated_at,
        upload_key=row.upload_key,
    )


@lru_cache(maxsize=1024)
def _tags(json_text: str) -> tuple[str, ...]:
    return tuple(json.loads(json_text))


# ── reading


def get(tx: Tx, actor: Actor, project_id: str, file_id: str) -> ProjectFile:
    return from_row(tx.one(_GET, actor_id=actor.user_id, project_id=project_id, id=file_id))


_GET = sql(f"""
    SELECT {COLUMNS} FROM project_files AS f JOIN projects AS p ON p.id = f.project_id
    {access.MEMBER_OF_PROJECT} WHERE f.id = :id AND f.project_id = :project_id
""")


def find(tx: Tx, file_id: str) -> ProjectFile | None:
    """The file, or None if it is deleted; without a permission check, for jobs."""
    row = tx.maybe(_READ, id=file_id)
    return from_row(row) if row else None


def used_bytes(tx: Tx, user_id: str) -> int:
    """The bytes of all file versions and attachments a user has uploaded, equal contents counted once."""
    size: int = tx.one(_USED, user_id=user_id).used
    return int(size)


_USED = sql("""
    SELECT COALESCE(SUM(size_bytes), 0) AS used
    FROM (
        SELECT content_hash, size_bytes FROM file_versions WHERE created_by = :user_id
        UNION SELECT content_hash, size_bytes FROM attachments WHERE created_by = :user_id
    ) AS once
""")


# ── changing


def change(
    tx: Tx, actor: Actor, project_id: str, file_id: str, content: Content, seen: int | str | None = None
) -> ProjectFile:
    """Stores the next version; raises VersionConflict if `seen` is not the current version number or hash."""
    file = _writable(tx, actor, project_id, file_id)
    if seen not in (None, file.version, file.content_hash):
        yours = f"version {seen}" if isinstance(seen, int) else "an earlier one"
        raise VersionConflict(
            f"This file is at version {file.version} by now; you changed {yours}. "
            "Read it again and decide which to keep."
        )
    return _change(tx, actor, file, content)


def _writable(tx: Tx, actor: Actor, project_id: str, file_id: str) -> ProjectFile:
    tx.lock(project_topic(project_id))
    file = get(tx, actor, project_id, file_id)
    access.to_project(tx, actor, project_id).must_write()
    return file


def _change(
    tx: Tx, actor: Actor, file: ProjectFile, content: Content, upload_key: str | None = None
) -> ProjectFile:
    if (content.hash, content.mime_type) == (file.content_hash, file.mime_type):
        return _keep_for_other_uploads(tx, file, upload_key)
    version = file.version + 1
    tx.execute(
        _CHANGE,
        id=file.id,
        mime_type=content.mime_type,
        size_bytes=content.size_bytes,
        content_hash=content.hash,
        version=version,
        now=tx.now,
        upload_key=upload_key,
    )
    versions.add(tx, actor.user_id, file.id, version, content, upload_key)
    _enqueue_index_job(tx, actor.user_id, file.project_id, file.id, version)
    return _changed(tx, file.id)


_CHANGE = sql("""
    UPDATE project_files SET mime_type = :mime_type, size_bytes = :size_bytes, content_hash = :content_hash,
        version = :version, index_state = 'queued', index_chunks = 0, index_percent = 0, index_reason = NULL,
        updated_at = :now, upload_key = :upload_key
    WHERE id = :id
""")


def _keep_for_other_uploads(tx: Tx, file: ProjectFile, upload_key: str | None) -> ProjectFile:
    """Handles a second upload of equal content: cancelling the first upload no longer removes the file."""
    if file.upload_key in (None, upload_key):
        return file
    tx.execute(_CLEAR_UPLOAD_KEY, id=file.id)
    tx.execute(_CLEAR_VERSION_UPLOAD_KEY, id=file.id, number=file.version)
    return _changed(tx, file.id)


_CLEAR_UPLOAD_KEY = sql("UPDATE project_files SET upload_key = NULL WHERE id = :id")

_CLEAR_VERSION_UPLOAD_KEY = sql("""
    UPDATE file_versions SET upload_key = NULL WHERE file_id = :id AND number = :number
""")


def rename(
    tx: Tx, actor: Actor, project_id: str, file_id: str, path: str, seen: Content | None = None
) -> ProjectFile:
    """Moves a file to another path and indexes it again; the new name may change its MIME type.

    `seen` carries the MIME type detected for the new path; it is used if its hash is still current.
    """
    normal_path = clean_path(path)
    file = _writable(tx, actor, project_id, file_id)
    if normal_path == file.path:
        return file
    if tx.maybe(_BY_PATH, project_id=project_id, path=normal_path) is not None:
        raise Conflict(
            f"There is already a file at {normal_path}. Choose another path, or delete that file first."
        )
    mime_type = seen.mime_type if seen and seen.hash == file.content_hash else file.mime_type
    tx.execute(_RENAME, id=file_id, path=normal_path, mime_type=mime_type, now=tx.now)
    _enqueue_index_job(tx, actor.user_id, project_id, file_id)
    return _changed(tx, file_id)


_RENAME = sql("""
    UPDATE project_files SET path = :path, mime_type = :mime_type, index_state = 'queued', index_percent = 0,
        index_reason = NULL, updated_at = :now
    WHERE id = :id
""")


def set_metadata(tx: Tx, actor: Actor, project_id: str, file_id: str, change: MetadataChange) -> ProjectFile:
    """Changes the metadata of a file; indexes it again if `retrieval_eligible` changed."""
    before = _writable(tx, actor, project_id, file_id)
    metadata = change.of(before.metadata)
    tx.execute(
        _SET_METADATA,
        id=file_id,
        always_in_context=metadata.always_in_context,
        retrieval_eligible=metadata.retrieval_eligible,
        tool_accessible=metadata.tool_accessible,
        tags=as_json(metadata.tags),
        summary=metadata.summary,
        now=tx.now,
    )
    if before.metadata.retrieval_eligible != metadata.retrieval_eligible:
        tx.execute(_SET_INDEX, id=file_id, state="queued", chunks=before.index.chunks, percent=0, reason=None)
        _enqueue_index_job(tx, actor.user_id, project_id, file_id)
    return _changed(tx, file_id)


_SET_METADATA = sql("""
    UPDATE project_files SET always_in_context = :always_in_context, retrieval_eligible = :retrieval_eligible,
        tool_accessible = :tool_accessible, tags = :tags, summary = :summary, updated_at = :now
    WHERE id = :id
""")


def set_index(tx: Tx, file_id: str, index: IndexState, *, version: int | None = None) -> ProjectFile | None:
    """Stores the indexing progress; returns None if the file is deleted or has another version by now."""
    file = find(tx, file_id)
    if file is None or version not in (None, file.version):
        return None
    if file.index == index:
        return file
    tx.execute(
        _SET_INDEX,
        id=file_id,
        state=index.state.value,
        chunks=index.chunks,
        percent=index.percent,
        reason=index.reason,
    )
    return _changed(tx, file_id)


_SET_INDEX = sql("""
    UPDATE project_files SET index_state = :state, index_chunks = :chunks, index_percent = :percent,
        index_reason = :reason
    WHERE id = :id
""")


# ── removing


def remove(tx: Tx, actor: Actor, project_id: str, file_id: str) -> ProjectFile:
    """Removes the file with all its versions, and cancels its waiting index jobs."""
    file = _writable(tx, actor, project_id, file_id)
    blob_cleanup.release_file(tx, file_id)
    tx.execute(_REMOVE, id=file_id)
    jobs.cancel(tx, IndexFile(file_id))
    receipts.redact_retrieved(tx, project_id, file_id)
    events.redact(tx, project_topic(project_id), "file", file_id)
    tx.emit(project_topic(project_id), EventKind.REMOVED, "file", file_id)
    return file


_REMOVE = sql("DELETE FROM project_files WHERE id = :id")


def take_back(tx: Tx, actor: Actor, project_id: str, upload_key: str) -> tuple[str, ...]:
    """Undoes one of the actor's uploads: removes its new files and restores the previous version of others.

    Files that were changed again since then stay. Returns the hashes of the removed contents.
    """
    tx.lock(project_topic(project_id))
    access.to_project(tx, actor, project_id).must_write()
    upload = {"project_id": project_id, "upload_key": upload_key, "user_id": actor.user_id}
    removed_hashes: list[str] = []
    while rows := tx.execute(_FILES_OF_UPLOAD, **upload):
        for row in rows:
            removed_hashes.append(row.content_hash)
            _undo_version(tx, actor, from_row(row))
    return tuple(removed_hashes)


_FILES_OF_UPLOAD = sql(f"""
    SELECT {COLUMNS} FROM project_files AS f
    JOIN file_versions AS v ON v.file_id = f.id AND v.number = f.version
    WHERE f.project_id = :project_id AND f.upload_key = :upload_key AND v.created_by = :user_id
""")


def _undo_version(tx: Tx, actor: Actor, file: ProjectFile) -> None:
    if file.version == 1:
        remove(tx, actor, file.project_id, file.id)
        return
    blob_cleanup.release_file(tx, file.id)
    tx.execute(_REMOVE_VERSION, id=file.id, number=file.version)
    tx.execute(_RESTORE_VERSION, id=file.id, number=file.version - 1, now=tx.now)
    jobs.free_key(tx, _index_key(file.id, file.version))
    _enqueue_index_job(tx, actor.user_id, file.project_id, file.id)
    _changed(tx, file.id)


_REMOVE_VERSION = sql("DELETE FROM file_versions WHERE file_id = :id AND number = :number")

_RESTORE_VERSION = sql("""
    UPDATE project_files SET (mime_type, size_bytes, content_hash, version, upload_key) = (
        SELECT v.mime_type, v.size_bytes, v.content_hash, v.number, v.upload_key
        FROM file_versions AS v WHERE v.file_id = :id AND v.number = :number
    ), index_state = 'queued', index_percent = 0, index_reason = NULL, updated_at = :now
    WHERE id = :id
""")


def recover(tx: Tx) -> None:
    """Runs at start: adds lost index jobs again, and a daily clean-up job for bytes that a crash left."""
    for row in tx.execute(_WITHOUT_JOB):
        _enqueue_index_job(tx, row.created_by, row.project_id, row.id)
    blob_cleanup.daily(tx)


_PAYLOAD = """'{"file_id":"' || f.id || '"}'"""
"""The payload of a file's index job, as core/jobs.py encodes it."""

# The jobs are read once, not once for each file: there may be thousands of both.
_WITHOUT_JOB = sql(f"""
    SELECT f.id, f.project_id, f.created_by FROM project_files AS f
    WHERE f.index_state IN ('queued', 'reading') AND {_PAYLOAD} NOT IN (
        SELECT payload FROM jobs WHERE kind = 'index_file' AND state IN ('waiting', 'running')
    )
""")


def release_project(tx: Tx, project_id: str) -> None:
    """Releases the blobs and removes the index jobs of a project that is about to be deleted."""
    if tx.maybe(_HAS_FILES, project_id=project_id):
        blob_cleanup.release_project(tx, project_id)
        tx.execute(_CANCEL_PROJECT_JOBS, project_id=project_id)


_HAS_FILES = sql("SELECT 1 FROM project_files WHERE project_id = :project_id LIMIT 1")

_CANCEL_PROJECT_JOBS = sql(f"""
    DELETE FROM jobs WHERE state = 'waiting' AND kind = 'index_file' AND payload IN (
        SELECT {_PAYLOAD} FROM project_files AS f WHERE f.project_id = :project_id
    )
""")
