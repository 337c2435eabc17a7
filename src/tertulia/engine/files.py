"""What people do with files: bring them in, change them, read them, compare them."""

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
"""Characters of a text that are shown at once."""


class HasContent(Protocol):
    """Whatever refers to bytes and knows what they are."""

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
    """The file's text: as it was read before, or read now and kept."""
    hash, mime_type = file.content_hash, file.mime_type
    kept = await dependencies.db.read(lambda tx: extracted_texts.find(tx, hash, mime_type, VERSION))
    if kept is not None:
        return kept
    extracted = await _extracted(dependencies, file)
    await dependencies.db.write(lambda tx: extracted_texts.save(tx, hash, VERSION, extracted))
    return extracted


async def _extracted(dependencies: Dependencies, file: HasContent) -> Extracted:
    with await dependencies.blobs.open(file.content_hash) as opened:
        return await dependencies.extractor.text(opened, file.mime_type, file.content_hash)


def texts_kept(
    tx: Tx, files: Sequence[HasSizedContent], readable: frozenset[str]
) -> tuple[Extracted | None, ...]:
    """The texts of several that were read before; None where one was not.

    What is not readable together with the others is not taken into memory: NOT_READ stands in its place.
    """
    return tuple(
        extracted_texts.find(tx, file.content_hash, file.mime_type, VERSION)
        if file.id in readable
        else NOT_READ
        for file in files
    )


NOT_READ = Extracted("", "")
"""In place of a text that was not read, because no model has space for it."""


def readable_within(most_bytes: int, files: Iterable[HasSizedContent]) -> frozenset[str]:
    """Ids of those that hold no more together, the first first; one that is too large keeps no other away."""
    ids = []
    for file in files:
        if file.size_bytes <= most_bytes:
            most_bytes -= file.size_bytes
            ids.append(file.id)
    return frozenset(ids)


async def lines_of(dependencies: Dependencies, file: HasContent, start_line: int, end_line: int) -> TextLines:
    """Some lines of the text, or as many as are shown at once."""

    def read(tx: Tx) -> TextLines | None:
        return extracted_texts.lines(
            tx, file.content_hash, file.mime_type, VERSION, start_line, end_line, LINES_LIMIT
        )

    found = await dependencies.db.read(read)
    if found is None:  # Whoever only looks leaves nothing behind: it is read, and not kept.
        extracted = await _extracted(dependencies, file)
        found = extracted_texts.lines_in(extracted, start_line, end_line, LINES_LIMIT)
    if found.reason and not found.total_lines and not is_a_text_kind(file.mime_type):
        raise Invalid(found.reason)
    return found


class Files:
    def __init__(
        self, dependencies: Dependencies, job_left: Callable[[], None], uploads: Uploads | None = None
    ) -> None:
        self._dependencies = dependencies
        self._job_left = job_left
        self._uploads = uploads or Uploads(dependencies, job_left)

    # ── bringing in

    async def add(
        self, actor: Actor, project_id: str, path: str, chunks: Chunks, upload_key: str | None = None
    ) -> ProjectFile:
        """A file of that path with what arrives: a new one, or its next version."""
        cleaned = clean_path(path)
        return await self._uploads.take(
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
        """The next version, unless the file is no longer at the version that was read."""
        file = await self._dependencies.db.read(lambda tx: files.get(tx, actor, project_id, file_id))
        return await self._uploads.take(
            actor,
            project_id,
            file.path,
            chunks,
            lambda tx, content: files.change(tx, actor, project_id, file_id, content, seen),
        )

    async def unzip(
        self, actor: Actor, project_id: str, folder: str, chunks: Chunks, upload_key: str | None = None
    ) -> UploadResult:
        """The files of an archive, each at its path below the folder."""
        cleaned = clean_path(folder) if folder.strip("/") else ""
        return await self._uploads.unzip(actor, project_id, cleaned, chunks, upload_key)

    async def cancel_upload(self, actor: Actor, project_id: str, upload_key: str) -> None:
        await self._uploads.cancel(actor, project_id, upload_key)

    # ── changing

    async def rename(self, actor: Actor, project_id: str, file_id: str, path: str) -> ProjectFile:
        """Another path; among kinds of text, its ending says anew which it is."""
        cleaned = clean_path(path)
        file = await self._dependencies.db.read(lambda tx: files.get(tx, actor, project_id, file_id))
        seen = await self._seen(file, cleaned)
        return await self._changed(lambda tx: files.rename(tx, actor, project_id, file_id, cleaned, seen))

    async def _seen(self, held: ProjectFile | FileVersion, path: str) -> Content:
        """What it holds, as it is called under that path."""
        kind = held.mime_type
        if is_a_text_kind(kind):
            kind = text_kind(path, await self._dependencies.blobs.head(held.content_hash))
        return Content(held.content_hash, held.size_bytes, kind)

    async def set_metadata(
        self, actor: Actor, project_id: str, file_id: str, change: MetadataChange
    ) -> ProjectFile:
        return await self._changed(lambda tx: files.set_metadata(tx, actor, project_id, file_id, change))

    async def restore(self, actor: Actor, project_id: str, file_id: str, number: int) -> ProjectFile:
        """What it held then, as its next version: nothing in between is lost."""

        def read(tx: Tx) -> tuple[ProjectFile, FileVersion]:
            file = files.get(tx, actor, project_id, file_id)
            return file, versions.get(tx, actor, project_id, file_id, number)

        file, then = await self._dependencies.db.read(read)
        held = await self._seen(then, file.path)
        return await self._changed(lambda tx: files.change(tx, actor, project_id, file_id, held))

    async def remove(self, actor: Actor, project_id: str, file_id: str) -> None:
        """With all versions; whoever is reading it for the index stops at once."""
        file = await self._dependencies.db.write(lambda tx: files.remove(tx, actor, project_id, file_id))
        self._dependencies.extractor.abandon(file.content_hash)
        self._job_left()

    async def _changed(self, change: Callable[[Tx], ProjectFile]) -> ProjectFile:
        file = await self._dependencies.db.write(change)
        self._job_left()
        return file

    # ── reading

    async def lines(
        self, actor: Actor, project_id: str, file_id: str, start_line: int, end_line: int
    ) -> tuple[ProjectFile, TextLines]:
        file = await self._dependencies.db.read(lambda tx: files.get(tx, actor, project_id, file_id))
        return file, await lines_of(self._dependencies, file, start_line, end_line)

    async def diff(self, actor: Actor, project_id: str, file_id: str, number: int, against: int) -> str:
        """What changed in the text from one version to the other; version 0 is nothing at all."""

        def read(tx: Tx) -> tuple[ProjectFile, list[FileVersion | None]]:
            file = files.get(tx, actor, project_id, file_id)
            numbers = (against, number)
            return file, [versions.get(tx, actor, project_id, file_id, n) if n else None for n in numbers]

        file, compared = await self._dependencies.db.read(read)
        old, new = [await self._comparable(version) for version in compared]
        changed = await self._dependencies.extractor.diff(old, new)
        if not changed:
            return ""
        return f"--- {file.path} (version {against})\n+++ {file.path} (version {number})\n{changed}"

    async def _comparable(self, version: FileVersion | None) -> str:
        if version is None:
            return ""
        extracted = await text_of(self._dependencies, version)
        if not extracted.text and not is_a_text_kind(version.mime_type):
            raise Invalid(f"Version {version.number} cannot be compared. {extracted.reason}")
        return extracted.text
