"""Uploads: bytes from outside become files, within what one file and one person may take up."""

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
"""What of an archive is saved in one transaction."""
REFUSED_LIMIT = 1000

Chunks = AsyncIterator[bytes]
T = TypeVar("T")
Refer = Callable[[Tx, Content], T]
"""Makes what will hold the bytes, in the transaction that keeps them."""


@dataclass(frozen=True, slots=True)
class RejectedFile:
    path: str
    reason: str


@dataclass(slots=True)
class UploadResult:
    """What became of several files that came together."""

    items: list[ProjectFile] = field(default_factory=list)
    refused: list[RejectedFile] = field(default_factory=list)

    def refuse(self, path: str, reason: str) -> None:
        if len(self.refused) < REFUSED_LIMIT:
            self.refused.append(RejectedFile(path[:300], reason))


@dataclass(frozen=True, slots=True)
class StagedFile(Generic[T]):
    """Bytes that are all there, what they are, and who will refer to them."""

    incoming: BlobUpload
    content: Content
    refer: Refer[T]


class Uploads:
    def __init__(self, dependencies: Dependencies, job_left: Callable[[], None]) -> None:
        self._dependencies = dependencies
        self._job_left = job_left
        self._arriving: dict[str, int] = {}
        """Bytes on their way in, by who sends them."""

    @property
    def limits(self) -> FileLimits:
        return self._dependencies.limits

    async def take(
        self,
        actor: Actor,
        project_id: str,
        path: str,
        chunks: Chunks,
        refer: Refer[T],
        upload_key: str | None = None,
    ) -> T:
        """One file: what arrives is kept and referred to, or nothing of it remains."""
        async with self.received(actor, project_id, chunks) as incoming:
            [file] = await self.save(actor, [await arrived(path, incoming, refer)], upload_key)
            return file

    @asynccontextmanager
    async def received(self, actor: Actor, project_id: str, chunks: Chunks) -> AsyncIterator[BlobUpload]:
        """Whether it may come in is asked first, and whether there is room while it comes."""
        used = await self._dependencies.db.read(lambda tx: files.begin(tx, actor, project_id))
        async with self._dependencies.blobs.receive() as incoming:
            try:
                async for chunk in chunks:
                    self._make_room(actor, used, incoming.size_bytes, len(chunk))
                    await incoming.write(chunk)
                await incoming.finish()
                yield incoming
            finally:
                self._settle(actor, incoming.size_bytes)

    def _make_room(self, actor: Actor, used: int, size: int, more: int) -> None:
        if size + more > self.limits.upload_bytes:
            raise TooLarge(_too_large(self.limits))
        arriving = self._arriving.get(actor.user_id, 0) + more
        if used + arriving > self.limits.quota_bytes:
            raise _no_room(self.limits)
        self._arriving[actor.user_id] = arriving

    def _settle(self, actor: Actor, size: int) -> None:
        left = self._arriving.pop(actor.user_id, 0) - size
        if left > 0:
            self._arriving[actor.user_id] = left

    async def save(
        self, actor: Actor, batch: Sequence[StagedFile[T]], upload_key: str | None = None
    ) -> list[T]:
        """Bytes and the files that hold them, in one transaction; room is counted in it once more."""
        saving = self._dependencies.db.write(lambda tx: self._save(tx, actor, batch, upload_key))
        saved = await to_completion(saving)
        self._job_left()
        return saved

    def _save(self, tx: Tx, actor: Actor, batch: Sequence[StagedFile[T]], upload_key: str | None) -> list[T]:
        uploads.lock_quota(tx, actor.user_id)
        if upload_key is not None:
            uploads.must_not_be_cancelled(tx, actor.user_id, upload_key)
        saved = []
        with ExitStack() as saving:
            for one in batch:
                saving.enter_context(self._dependencies.blobs.saving(tx, one.incoming))
                saved.append(one.refer(tx, one.content))
            if files.used_bytes(tx, actor.user_id) > self.limits.quota_bytes:
                raise _no_room(self.limits)
        return saved

    async def cancel(self, actor: Actor, project_id: str, upload_key: str) -> None:
        """Nothing of the upload is there afterwards, whether it was saved already or still arrives."""
        gone = await self._dependencies.db.write(lambda tx: uploads.cancel(tx, actor, project_id, upload_key))
        for content_hash in gone:
            self._dependencies.extractor.abandon(content_hash)
        self._job_left()

    async def unzip(
        self, actor: Actor, project_id: str, folder: str, chunks: Chunks, upload_key: str | None = None
    ) -> UploadResult:
        """The files of an archive, each at its path below the folder; the archive itself is not kept."""
        async with self.received(actor, project_id, chunks) as archive:
            with archive.file() as file:
                return await ArchiveImport(
                    self._dependencies, self, actor, project_id, folder, upload_key
                ).run(file)


async def arrived(path: str, incoming: BlobUpload, refer: Refer[T]) -> StagedFile[T]:
    kind = await incoming.look(lambda: mime_of(path, incoming.head, incoming.file))
    return StagedFile(incoming, Content(incoming.hash, incoming.size_bytes, kind), refer)


def _too_large(limits: FileLimits) -> str:
    return f"A file holds at most {limits.upload_bytes >> 20:,} MiB."


def _no_room(limits: FileLimits) -> QuotaSpent:
    return QuotaSpent(
        f"Your files would take up more than the {limits.quota_bytes >> 20:,} MiB you have. "
        "Delete some, or ask an administrator for more."
    )


class ArchiveImport:
    """An archive on its way into a project: its files are saved some at a time."""

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
        self._taken = UploadResult()
        self._batch: list[StagedFile[ProjectFile]] = []
        self._open = AsyncExitStack()
        self._path = ""
        self._incoming: BlobUpload | None = None
        """The file that is arriving; None while nothing is, or what arrives is refused."""

    async def run(self, archive: IO[bytes]) -> UploadResult:
        try:
            async with aclosing(self._dependencies.extractor.unzip(archive)) as packed:
                async for one in packed:
                    await self._take(one)
        finally:
            await self._open.aclose()
        return self._taken

    async def _take(self, one: ArchivePart) -> None:
        match one:
            case ArchiveSize(size_bytes):
                await self._must_fit(size_bytes)
            case ArchiveEntry(path):
                await self._end_file()
                await self._begin_file(path)
            case bytes():
                await self._write(one)
            case CorruptEntry(reason):
                await self._refuse(reason)
            case ArchiveEnd():
                await self._end_file()
                await self._save()
                self._must_hold_files()

    async def _must_fit(self, size_bytes: int) -> None:
        used = await self._dependencies.db.read(lambda tx: files.begin(tx, self._actor, self._project_id))
        if used + size_bytes > self._uploads.limits.quota_bytes:
            raise _no_room(self._uploads.limits)

    async def _begin_file(self, path: str) -> None:
        try:
            self._path = clean_path(f"{self._folder}/{path}" if self._folder else path)
        except Invalid as wrong:
            self._taken.refuse(path, wrong.message)
            return
        self._incoming = await self._open.enter_async_context(self._dependencies.blobs.receive())

    async def _write(self, data: bytes) -> None:
        if self._incoming is None:
            return
        if self._incoming.size_bytes + len(data) > self._uploads.limits.upload_bytes:
            await self._refuse(_too_large(self._uploads.limits))
        else:
            await self._incoming.write(data)

    async def _refuse(self, reason: str) -> None:
        """What came of it goes at once: an archive may hold thousands that are refused."""
        if self._incoming is not None:
            self._taken.refuse(self._path, reason)
            self._incoming.discard()
            self._incoming = None

    async def _end_file(self) -> None:
        if self._incoming is None:
            return
        incoming, path, self._incoming = self._incoming, self._path, None
        await incoming.finish()
        self._batch.append(
            await arrived(
                path,
                incoming,
                lambda tx, content: files.put(
                    tx, self._actor, self._project_id, path, content, self._upload_key
                ),
            )
        )
        size = sum(one.content.size_bytes for one in self._batch)
        if len(self._batch) >= BATCH_FILES or size >= BATCH_BYTES:
            await self._save()

    def _must_hold_files(self) -> None:
        if not self._taken.items and not self._taken.refused:
            raise Invalid("This archive holds no files.")

    async def _save(self) -> None:
        if self._batch:
            self._taken.items += await self._uploads.save(self._actor, self._batch, self._upload_key)
        self._batch = []
        await self._open.aclose()
        self._open = AsyncExitStack()
