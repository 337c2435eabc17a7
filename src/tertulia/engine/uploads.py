"""Uploads: receive bytes and save them as files, within the limits per file and per person."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import IO, Generic, TypeVar

from tertulia.core.errors import Invalid, QuotaSpent, TooLarge
from tertulia.core.files import Content, FileLimits, ProjectFile, clean_path
from tertulia.core.tasks import to_completion
from tertulia.core.users import Actor
from tertulia.engine.dependencies import Dependencies
from tertulia.library.extract.extractor import (
    ArchiveEnd,
    ArchiveEntry,
    ArchivePart,
    ArchiveSize,
    CorruptEntry,
)
from tertulia.library.mime import mime_of
from tertulia.store import files, uploads
from tertulia.store.blob_upload import BlobUpload
from tertulia.store.database import Tx

BATCH_FILES = 50
BATCH_BYTES = 8 << 20
"""The most of an archive that is saved in one transaction."""
REJECTED_LIMIT = 1000
"""The most rejected files that a result lists."""

Chunks = AsyncIterator[bytes]
T = TypeVar("T")
Refer = Callable[[Tx, Content], T]
"""Creates the file or attachment that refers to the bytes, in the transaction that saves them."""


@dataclass(frozen=True, slots=True)
class RejectedFile:
    path: str
    reason: str


@dataclass(slots=True)
class UploadResult:
    """The saved and the rejected files of one archive."""

    items: list[ProjectFile] = field(default_factory=list)
    refused: list[RejectedFile] = field(default_factory=list)

    def reject(self, path: str, reason: str) -> None:
        if len(self.refused) < REJECTED_LIMIT:
            self.refused.append(RejectedFile(path[:300], reason))


@dataclass(frozen=True, slots=True)
class StagedFile(Generic[T]):
    """A complete upload with its MIME type, ready to be saved."""

    upload: BlobUpload
    content: Content
    refer: Refer[T]


class Uploads:
    def __init__(self, dependencies: Dependencies, wake_workers: Callable[[], None]) -> None:
        self._dependencies = dependencies
        self._wake_workers = wake_workers
        self._arriving: dict[str, int] = {}
        """The bytes of running uploads, by user."""

    @property
    def limits(self) -> FileLimits:
        return self._dependencies.limits

    async def add(
        self,
        actor: Actor,
        project_id: str,
        path: str,
        chunks: Chunks,
        refer: Refer[T],
        upload_key: str | None = None,
    ) -> T:
        """Receives one file and saves it; if that fails, nothing of it remains."""
        async with self.receive(actor, project_id, chunks) as upload:
            [file] = await self.save(actor, [await stage(path, upload, refer)], upload_key)
            return file

    @asynccontextmanager
    async def receive(self, actor: Actor, project_id: str, chunks: Chunks) -> AsyncIterator[BlobUpload]:
        """Receives the bytes of one upload. Checks the permission first, and the quota with each chunk."""
        used = await self._dependencies.db.read(lambda tx: files.begin(tx, actor, project_id))
        async with self._dependencies.blobs.receive() as incoming:
            try:
                async for chunk in chunks:
                    self._reserve(actor, used, incoming.size_bytes, len(chunk))
                    await incoming.write(chunk)
                await incoming.finish()
                yield incoming
            finally:
                self._release(actor, incoming.size_bytes)

    def _reserve(self, actor: Actor, used: int, size: int, more: int) -> None:
        if size + more > self.limits.upload_bytes:
            raise TooLarge(_too_large(self.limits))
        arriving = self._arriving.get(actor.user_id, 0) + more
        if used + arriving > self.limits.quota_bytes:
            raise _quota_spent(self.limits)
        self._arriving[actor.user_id] = arriving

    def _release(self, actor: Actor, size: int) -> None:
        left = self._arriving.pop(actor.user_id, 0) - size
        if left > 0:
            self._arriving[actor.user_id] = left

    async def save(
        self, actor: Actor, batch: Sequence[StagedFile[T]], upload_key: str | None = None
    ) -> list[T]:
        """Saves bytes and the files that refer to them in one transaction; checks the quota again."""
        saving = self._dependencies.db.write(lambda tx: self._save(tx, actor, batch, upload_key))
        saved = await to_completion(saving)
        self._wake_workers()
        return saved

    def _save(self, tx: Tx, actor: Actor, batch: Sequence[StagedFile[T]], upload_key: str | None) -> list[T]:
        uploads.lock_quota(tx, actor.user_id)
        if upload_key is not None:
            uploads.must_not_be_cancelled(tx, actor.user_id, upload_key)
        saved = []
        with ExitStack() as saving:
            for staged in batch:
                saving.enter_context(self._dependencies.blobs.saving(tx, staged.upload))
                saved.append(staged.refer(tx, staged.content))
            if files.used_bytes(tx, actor.user_id) > self.limits.quota_bytes:
                raise _quota_spent(self.limits)
        return saved

    async def cancel(self, actor: Actor, project_id: str, upload_key: str) -> None:
        """Cancels an upload: what was saved is removed, and what still arrives is rejected."""
        removed_hashes = await self._dependencies.db.write(
            lambda tx: uploads.cancel(tx, actor, project_id, upload_key)
        )
        for content_hash in removed_hashes:
            self._dependencies.extractor.abandon(content_hash)
        self._wake_workers()

    async def unzip(
        self, actor: Actor, project_id: str, folder: str, chunks: Chunks, upload_key: str | None = None
    ) -> UploadResult:
        """Saves the files of an archive, each at its path below the folder, but not the archive itself."""
        async with self.receive(actor, project_id, chunks) as archive:
            with archive.file() as file:
                return await ArchiveImport(
                    self._dependencies, self, actor, project_id, folder, upload_key
                ).run(file)


async def stage(path: str, upload: BlobUpload, refer: Refer[T]) -> StagedFile[T]:
    kind = await upload.run_in_thread(lambda: mime_of(path, upload.head, upload.file))
    return StagedFile(upload, Content(upload.hash, upload.size_bytes, kind), refer)


def _too_large(limits: FileLimits) -> str:
    return f"A file holds at most {limits.upload_bytes >> 20:,} MiB."


def _quota_spent(limits: FileLimits) -> QuotaSpent:
    return QuotaSpent(
        f"Your files would take up more than the {limits.quota_bytes >> 20:,} MiB you have. "
        "Delete some, or ask an administrator for more."
    )


class ArchiveImport:
    """The import of one archive into a project; its files are saved in batches."""

    def __init__(
        self,
        dependencies: Dependencies,
        uploads: Uploads,
        actor: Actor,
        project_id: str,
        folder: str,
        upload_key: str | None,
    ) -> None:
        self._dependencies = dependencies
        self._uploads = uploads
        self._actor = actor
        self._project_id = project_id
        self._folder = folder
        self._upload_key = upload_key
        self._result = UploadResult()
        self._batch: list[StagedFile[ProjectFile]] = []
        self._open = AsyncExitStack()
        self._path = ""
        self._incoming: BlobUpload | None = None
        """The file that is being received; None between files, and while a rejected one is skipped."""

    async def run(self, archive: IO[bytes]) -> UploadResult:
        try:
            async with aclosing(self._dependencies.extractor.unzip(archive)) as parts:
                async for part in parts:
                    await self._consume(part)
        finally:
            await self._open.aclose()
        return self._result

    async def _consume(self, part: ArchivePart) -> None:
        match part:
            case ArchiveSize(size_bytes):
                await self._must_fit(size_bytes)
            case ArchiveEntry(path):
                await self._end_file()
                await self._begin_file(path)
            case bytes():
                await self._write(part)
            case CorruptEntry(reason):
                await self._reject(reason)
            case ArchiveEnd():
                await self._end_file()
                await self._save()
                self._must_hold_files()

    async def _must_fit(self, size_bytes: int) -> None:
        used = await self._dependencies.db.read(lambda tx: files.begin(tx, self._actor, self._project_id))
        if used + size_bytes > self._uploads.limits.quota_bytes:
            raise _quota_spent(self._uploads.limits)

    async def _begin_file(self, path: str) -> None:
        try:
            self._path = clean_path(f"{self._folder}/{path}" if self._folder else path)
        except Invalid as wrong:
            self._result.reject(path, wrong.message)
            return
        self._incoming = await self._open.enter_async_context(self._dependencies.blobs.receive())

    async def _write(self, data: bytes) -> None:
        if self._incoming is None:
            return
        if self._incoming.size_bytes + len(data) > self._uploads.limits.upload_bytes:
            await self._reject(_too_large(self._uploads.limits))
        else:
            await self._incoming.write(data)

    async def _reject(self, reason: str) -> None:
        """Discards the bytes at once, since an archive may hold thousands of rejected files."""
        if self._incoming is not None:
            self._result.reject(self._path, reason)
            self._incoming.discard()
            self._incoming = None

    async def _end_file(self) -> None:
        if self._incoming is None:
            return
        incoming, path, self._incoming = self._incoming, self._path, None
        await incoming.finish()
        self._batch.append(
            await stage(
                path,
                incoming,
                lambda tx, content: files.put(
                    tx, self._actor, self._project_id, path, content, self._upload_key
                ),
            )
        )
        size = sum(staged.content.size_bytes for staged in self._batch)
        if len(self._batch) >= BATCH_FILES or size >= BATCH_BYTES:
            await self._save()

    def _must_hold_files(self) -> None:
        if not self._result.items and not self._result.refused:
            raise Invalid("This archive holds no files.")

    async def _save(self) -> None:
        if self._batch:
            self._result.items += await self._uploads.save(self._actor, self._batch, self._upload_key)
        self._batch = []
        await self._open.aclose()
        self._open = AsyncExitStack()
