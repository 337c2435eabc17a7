"""Project files: the virtual path, the content, and how far the file is indexed."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from enum import StrEnum

from tertulia.core.errors import Invalid
from tertulia.core.text import visible

NAME_LIMIT_BYTES = 255
PATH_LIMIT_BYTES = 1024
DEPTH_LIMIT = 32
TAG_LIMIT = 50
SUMMARY_LIMIT = 1000
LISTED = 50
"""The file list of a prompt names single files up to this number; of more, it names the folders."""
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


class IndexPhase(StrEnum):
    """The indexing state of a file: queued ─▶ reading ─▶ indexing ─▶ indexed | not_indexed | failed"""

    QUEUED = "queued"
    READING = "reading"
    INDEXING = "indexing"
    INDEXED = "indexed"
    NOT_INDEXED = "not_indexed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class FileMetadata:
    always_in_context: bool = False
    retrieval_eligible: bool = True
    tool_accessible: bool = True
    tags: tuple[str, ...] = ()
    summary: str = ""


@dataclass(frozen=True, slots=True)
class MetadataChange:
    """A partial update of the metadata; a field without a value stays as it is."""

    always_in_context: bool | None = None
    retrieval_eligible: bool | None = None
    tool_accessible: bool | None = None
    tags: tuple[str, ...] | None = None
    summary: str | None = None

    def of(self, before: FileMetadata) -> FileMetadata:
        return FileMetadata(
            before.always_in_context if self.always_in_context is None else self.always_in_context,
            before.retrieval_eligible if self.retrieval_eligible is None else self.retrieval_eligible,
            before.tool_accessible if self.tool_accessible is None else self.tool_accessible,
            before.tags if self.tags is None else clean_tags(self.tags),
            before.summary if self.summary is None else clean_summary(self.summary),
        )


@dataclass(frozen=True, slots=True)
class IndexState:
    state: IndexPhase = IndexPhase.QUEUED
    chunks: int = 0
    percent: int = 0
    reason: str | None = None
    """Why the file is not indexed or failed, in words for a person."""


@dataclass(frozen=True, slots=True)
class ProjectFile:
    id: str
    project_id: str
    path: str
    mime_type: str
    size_bytes: int
    content_hash: str
    """SHA-256 of the content, in hex."""
    version: int
    metadata: FileMetadata
    index: IndexState
    created_by: str
    created_at: int
    updated_at: int
    upload_key: str | None = None
    """The client's key of the upload that stored the current content, if it sent one."""


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a file: the hash, the size, and the MIME type found in the bytes themselves."""

    hash: str
    size_bytes: int
    mime_type: str


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A line in the list of a project's files."""

    path: str
    size_bytes: int
    summary: str


@dataclass(frozen=True, slots=True)
class Folder:
    name: str
    """Ends with a slash; empty for the files outside all folders."""
    count: int
    """The number of files in it, at any depth."""


@dataclass(frozen=True, slots=True)
class FileListing:
    """The list of a project's files for a prompt: every file while they are few, else only the top
    folders."""

    count: int = 0
    entries: tuple[FileEntry, ...] = ()
    folders: tuple[Folder, ...] = ()


@dataclass(frozen=True, slots=True)
class Extracted:
    """The text extracted from a file."""

    text: str
    mime_type: str
    reason: str | None = None
    """Why the text is missing or incomplete, in words for a person."""
    has_failed: bool = False
    """The file is broken or harmful. A file without text has not failed."""


@dataclass(frozen=True, slots=True)
class FileLimits:
    upload_bytes: int = 100 << 20
    quota_bytes: int = 10 << 30
    """The most that all versions of one person's files may take up."""
    archive_entries: int = 10_000
    archive_bytes: int = 1 << 30
    """The most that an archive may unpack to."""
    archive_ratio: int = 100
    text_bytes: int = 20 << 20
    pdf_pages: int = 5_000
    parse_s: float = 60
    compare_s: float = 10
    compare_bytes: int = 2 << 20
    """The largest difference between two versions that a person can look at."""


@dataclass(frozen=True, slots=True)
class FileVersion:
    file_id: str
    number: int
    content_hash: str
    size_bytes: int
    mime_type: str
    created_by: str
    created_at: int


def clean_path(text: str) -> str:
    """Normalises a virtual path to its one spelling; refuses a path that could escape the project."""
    path = unicodedata.normalize("NFC", text)
    if "\\" in path or path.startswith("/") or (len(path) > 1 and path[1] == ":") or "://" in path:
        raise Invalid("A path is relative and uses forward slashes, like docs/plan.md.")
    names = [name for name in path.split("/") if name not in ("", ".")]
    if not names or len(names) > DEPTH_LIMIT:
        raise Invalid(f"A path has 1 to {DEPTH_LIMIT} parts, like docs/plan.md.")
    for name in names:
        _check_name(name)
    cleaned = "/".join(names)
    if len(cleaned.encode("utf-8", "surrogatepass")) > PATH_LIMIT_BYTES:
        raise Invalid(f"A path has at most {PATH_LIMIT_BYTES} bytes.")
    return cleaned


def _check_name(name: str) -> None:
    if name == ".." or name != name.strip():
        raise Invalid("A path cannot go up with .. and its parts do not begin or end with spaces.")
    if len(name.encode("utf-8", "surrogatepass")) > NAME_LIMIT_BYTES:
        raise Invalid(f"A file's name has at most {NAME_LIMIT_BYTES} bytes.")
    if any(c in _BIDI or unicodedata.category(c) in ("Cc", "Cs", "Co", "Zl", "Zp") for c in name):
        raise Invalid("A file's name cannot hold control characters.")
    if visible(name) != name:
        raise Invalid("A file's name cannot hold letters that nobody sees.")


def clean_summary(text: str) -> str:
    summary = " ".join(text.split())
    if len(summary) > SUMMARY_LIMIT:
        raise Invalid(f"A file's summary has at most {SUMMARY_LIMIT} characters.")
    return summary


def clean_tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    cleaned = tuple(dict.fromkeys(" ".join(tag.split()) for tag in tags if tag.strip()))
    if len(cleaned) > TAG_LIMIT or any(len(tag) > 50 for tag in cleaned):
        raise Invalid(f"A file has at most {TAG_LIMIT} tags of at most 50 characters.")
    return cleaned
