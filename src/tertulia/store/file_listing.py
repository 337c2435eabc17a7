"""File listing: pages of a project's files for people, and the lists of files in prompts."""

from __future__ import annotations

import base64
import binascii
import json
from collections import Counter
from dataclasses import dataclass

from tertulia.core.errors import Invalid
from tertulia.core.files import LISTED, FileEntry, FileListing, Folder, ProjectFile, clean_path
from tertulia.core.users import Actor
from tertulia.store import access
from tertulia.store.files import COLUMNS, from_row
from tertulia.store.sql import sql
from tertulia.store.transactions import Tx

PAGE_LIMIT = 100


@dataclass(frozen=True, slots=True)
class FilePage:
    items: tuple[ProjectFile, ...]
    next: str | None
    """The cursor of the next page; None on the last page."""


def page(
    tx: Tx,
    actor: Actor,
    project_id: str,
    *,
    limit: int,
    cursor: str | None = None,
    prefix: str = "",
    tag: str | None = None,
) -> FilePage:
    """A page of a project's files in the order of their paths."""
    access.to_project(tx, actor, project_id)
    limit = max(1, min(limit, PAGE_LIMIT))
    rows = tx.execute(
        _PAGE,
        project_id=project_id,
        after="" if cursor is None else _read_cursor(cursor),
        prefix=prefix,
        tag="" if tag is None else json.dumps(tag, ensure_ascii=False),
        limit=limit + 1,
    )
    items = tuple(from_row(row) for row in rows[:limit])
    return FilePage(items, _write_cursor(items[-1]) if len(rows) > limit else None)


# A file has a tag if removing the quoted tag from the JSON list changes the text.
_PAGE = sql(f"""
    SELECT {COLUMNS} FROM project_files AS f
    WHERE f.project_id = :project_id AND f.path > :after
        AND SUBSTR(f.path, 1, LENGTH(:prefix)) = :prefix
        AND (:tag = '' OR REPLACE(f.tags, :tag, '') <> f.tags)
    ORDER BY f.path LIMIT :limit
""")


def _write_cursor(last: ProjectFile) -> str:
    return base64.urlsafe_b64encode(last.path.encode()).decode()


def _read_cursor(cursor: str) -> str:
    """The path in a cursor. A forged cursor only moves the reader within the same list."""
    try:
        return clean_path(base64.b64decode(cursor.encode(), altchars=b"-_", validate=True).decode())
    except (binascii.Error, UnicodeError, Invalid):
        raise Invalid("This page does not exist. Begin again with the first one.") from None


def always_included(tx: Tx, project_id: str) -> tuple[ProjectFile, ...]:
    """The files that every prompt of the project shows, in the order of their paths."""
    return tuple(from_row(row) for row in tx.execute(_ALWAYS, project_id=project_id))


_ALWAYS = sql(f"""
    SELECT {COLUMNS} FROM project_files AS f
    WHERE f.project_id = :project_id AND f.always_in_context ORDER BY f.path
""")


def of_project(tx: Tx, project_id: str) -> FileListing:
    """A project's files in the order of their paths; if there are many, its top-level folders instead."""
    count: int = tx.one(_COUNT, project_id=project_id).files
    if not count:
        return FileListing()
    if count > LISTED:
        counts = Counter(_top(row.path) for row in tx.execute(_PATHS, project_id=project_id))
        return FileListing(count, folders=tuple(Folder(*folder) for folder in sorted(counts.items())))
    rows = tx.execute(_ENTRIES, project_id=project_id)
    return FileListing(count, tuple(FileEntry(row.path, row.size_bytes, row.summary) for row in rows))


def _top(path: str) -> str:
    first, slash, _ = path.partition("/")
    return f"{first}/" if slash else ""


_COUNT = sql("SELECT COUNT(*) AS files FROM project_files WHERE project_id = :project_id")

_PATHS = sql("SELECT path FROM project_files WHERE project_id = :project_id")


_ENTRIES = sql("""
    SELECT f.path, f.size_bytes, f.summary FROM project_files AS f
    WHERE f.project_id = :project_id ORDER BY f.path
""")
