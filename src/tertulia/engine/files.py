"""Files: the commands of a person (upload, change, read, compare), and the extracted texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from tertulia.core.errors import Invalid
from tertulia.core.files import Content, Extracted, FileVersion, MetadataChange, ProjectFile, clean_path
from tertulia.core.users import Actor
from tertulia.engine.dependencies import Dependencies
from tertulia.engine.uploads import Chunks, UploadResult, Uploads
from tertulia.library.extract import VERSION
from tertulia.library.mime import is_a_text_kind, text_kind
from tertulia.store import extracted_texts, files, versions
from tertulia.store.database import Tx
from tertulia.store.extracted_texts import TextLines

LINES_LIMIT = 1 << 20
"""The most characters of a text in one response."""


class HasContent(Protocol):
    """A file, a version or an attachment: anything that refers to stored bytes."""

    @property
    def content_hash(self) -> str: ...
    @property
    def mime_type(self) -> str: ...


class HasSizedContent(HasContent, Protocol):
    @property
    def id(self) -> str: ...
    @property
    def size_bytes(self) -> int: ...


async def text_of(dependencies: Dependencies, file: HasContent) -> Extracted:
    """The file's extracted text. It is stored, so that each content is extracted once."""
    hash, mime_type = file.content_hash, file.mime_type
    stored = await dependencies.db.read(lambda tx: extracted_texts.find(tx, hash, mime_type, VERSION))
    if stored is not None:
        return stored
    extracted = await _extracted(dependencies, file)
    await dependencies.db.write(lambda tx: extracted_texts.save(tx, hash, VERSION, extracted))
    return extracted


async def _extracted(dependencies: Dependencies, file: HasContent) -> Extracted:
    with await dependencies.blobs.open(file.content_hash) as opened:
        return await dependencies.extractor.text(opened, file.mime_type, file.content_hash)


def stored_texts(
    tx: Tx, files: Sequence[HasSizedContent], readable: frozenset[str]
) -> tuple[Extracted | None, ...]:
    """The stored text of each file; None for one that has not been extracted yet.

    A file whose id is not in `readable` is not loaded: NOT_READ stands in its place.
    """
    return tuple(
        extracted_texts.find(tx, file.content_hash, file.mime_type, VERSION)
        if file.id in readable
        else NOT_READ
        for file in files
    )


NOT_READ = Extracted("", "")
"""Stands for a text that was not read, because no model has space for it."""


def readable_within(limit_bytes: int, files: Iterable[HasSizedContent]) -> frozenset[str]:
    """Ids of the files that fit the limit together, in order; a file that is too large is skipped."""
    ids = []
    for file in files:
        if file.size_bytes <= limit_bytes:
            limit_bytes -= file.size_bytes
            ids.append(file.id)
    return frozenset(ids)


async def lines_of(dependencies: Dependencies, file: HasContent, start_line: int, end_line: int) -> TextLines:
    """These lines of the text, up to LINES_LIMIT."""

    def read(tx: Tx) -> TextLines | None:
        return extracted_texts.lines(
            tx, file.content_hash, file.mime_type, VERSION, start_line, end_line, LINES_LIMIT
        )

    lines = await dependencies.db.read(read)
    if lines is None:  # A read request must not write: the text is extracted, but not stored.
        extracted = await _extracted(dependencies, file)
        lines = extracted_texts.lines_in(extracted, start_line, end_line, LINES_LIMIT)
    if lines.reason and not lines.total_lines and not is_a_text_kind(file.mime_type):
        raise Invalid(lines.reason)
    return lines


class Files:
    def __init__(
        self, dependencies: Dependencies, wake_workers: Callable[[], None], uploads: Uploads | None = None
    ) -> None:
        self._dependencies = dependencies
        self._wake_workers = wake_workers
        self._uploads = uploads or Uploads(dependencies, wake_workers)

    # ── uploading

    async def add(
        self, actor: Actor, project_id: str, path: str, chunks: Chunks, upload_key: str | None = None
    ) -> ProjectFile:
        """Uploads a file to this path: a new one, or the next version of the one there."""
        cleaned = clean_path(path)
        return await self._uploads.add(
            actor,
            project_id,
            cleaned,
            chunks,
            lambda tx, content: files.put(tx, actor, project_id, cleaned, content, upload_key),
            upload_key,
        )

    async def change(
        self, actor: Actor, project_id: str, file_id: str, chunks: Chunks, seen: int | str | None = None
    ) -> ProjectFile:
        """Uploads the next version, unless the file has changed since the version in `seen`."""
        file = await self._dependencies.db.read(lambda tx: files.get(tx, actor, project_id, file_id))
        return await self._uploads.add(
            actor,
            project_id,
            file.path,
            chunks,
            lambda tx, content: files.change(tx, actor, project_id, file_id, content, seen),
        )

    async def unzip(
        self, actor: Actor, project_id: str, folder: str, chunks: Chunks, upload_key: str | None = None
    ) -> UploadResult:
        """Adds the files of an archive, each at its path below the folder."""
        cleaned = clean_path(folder) if folder.strip("/") else ""
        return await self._uploads.unzip(actor, project_id, cleaned, chunks, upload_key)

    async def cancel_upload(self, actor: Actor, project_id: str, upload_key: str) -> None:
        await self._uploads.cancel(actor, project_id, upload_key)

    # ── changing

    async def rename(self, actor: Actor, project_id: str, file_id: str, path: str) -> ProjectFile:
        """Moves the file to another path. For a text, the new file extension decides its MIME type."""
        cleaned = clean_path(path)
        file = await self._dependencies.db.read(lambda tx: files.get(tx, actor, project_id, file_id))
        content = await self._content_at(file, cleaned)
        return await self._changed(lambda tx: files.rename(tx, actor, project_id, file_id, cleaned, content))

    async def _content_at(self, file: ProjectFile | FileVersion, path: str) -> Content:
        """The file's content, with the MIME type that it has at this path."""
        kind = file.mime_type
        if is_a_text_kind(kind):
            kind = text_kind(path, await self._dependencies.blobs.head(file.content_hash))
        return Content(file.content_hash, file.size_bytes, kind)

    async def set_metadata(
        self, actor: Actor, project_id: str, file_id: str, change: MetadataChange
    ) -> ProjectFile:
        return await self._changed(lambda tx: files.set_metadata(tx, actor, project_id, file_id, change))

    async def restore(self, actor: Actor, project_id: str, file_id: str, number: int) -> ProjectFile:
        """Adds the content of an earlier version as the next one; the versions in between stay."""

        def read(tx: Tx) -> tuple[ProjectFile, FileVersion]:
            file = files.get(tx, actor, project_id, file_id)
            return file, versions.get(tx, actor, project_id, file_id, number)

        file, version = await self._dependencies.db.read(read)
        content = await self._content_at(version, file.path)
        return await self._changed(lambda tx: files.change(tx, actor, project_id, file_id, content))

    async def remove(self, actor: Actor, project_id: str, file_id: str) -> None:
        """Removes the file with all versions; an extraction that is running stops at once."""
        file = await self._dependencies.db.write(lambda tx: files.remove(tx, actor, project_id, file_id))
        self._dependencies.extractor.abandon(file.content_hash)
        self._wake_workers()

    async def _changed(self, change: Callable[[Tx], ProjectFile]) -> ProjectFile:
        file = await self._dependencies.db.write(change)
        self._wake_workers()
        return file

    # ── reading

    async def lines(
        self, actor: Actor, project_id: str, file_id: str, start_line: int, end_line: int
    ) -> tuple[ProjectFile, TextLines]:
        file = await self._dependencies.db.read(lambda tx: files.get(tx, actor, project_id, file_id))
        return file, await lines_of(self._dependencies, file, start_line, end_line)

    async def diff(self, actor: Actor, project_id: str, file_id: str, number: int, against: int) -> str:
        """The changes of the text between two versions; version 0 is an empty file."""

        def read(tx: Tx) -> tuple[ProjectFile, list[FileVersion | None]]:
            file = files.get(tx, actor, project_id, file_id)
            numbers = (against, number)
            return file, [versions.get(tx, actor, project_id, file_id, n) if n else None for n in numbers]

        file, compared = await self._dependencies.db.read(read)
        old, new = [await self._text_to_compare(version) for version in compared]
        changed = await self._dependencies.extractor.diff(old, new)
        if not changed:
            return ""
        return f"--- {file.path} (version {against})\n+++ {file.path} (version {number})\n{changed}"

    async def _text_to_compare(self, version: FileVersion | None) -> str:
        if version is None:
            return ""
        extracted = await text_of(self._dependencies, version)
        if not extracted.text and not is_a_text_kind(version.mime_type):
            raise Invalid(f"Version {version.number} cannot be compared. {extracted.reason}")
        return extracted.text
