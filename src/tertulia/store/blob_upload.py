"""Blob upload: receives bytes block by block into a scratch file, which is deleted unless it is saved."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, TypeVar

from tertulia.core.closing import closed_on_failure
from tertulia.core.errors import StorageFailed, StorageFull
from tertulia.core.tasks import to_completion

ROW_LIMIT = 1 << 20
"""Blobs of this size and more are stored outside their row, and must be synced before it is written."""
MEMORY_LIMIT = 64 << 10
"""An upload up to this size stays in memory and needs no scratch file."""
BLOCK = 256 << 10
HEAD = 64 << 10

T = TypeVar("T")


class BlobUpload:
    """An upload in progress. Its bytes are deleted unless they are saved."""

    def __init__(self, make_scratch: Callable[[], ScratchFile]) -> None:
        self._make_scratch = make_scratch
        self._scratch: ScratchFile | None = None
        self._buffer = bytearray()
        self._digest = hashlib.sha256()
        self.head = b""
        """The first bytes, enough to detect the file type."""
        self.size_bytes = 0
        self.hash = ""
        """SHA-256 in hex; set by finish()."""

    async def __aenter__(self) -> BlobUpload:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.discard()

    def discard(self) -> None:
        """Deletes the scratch file. A saved blob is not affected."""
        scratch, self._scratch = self._scratch, None
        if scratch is not None:
            scratch.close()

    async def write(self, data: bytes) -> None:
        self._buffer += data
        self.size_bytes += len(data)
        if len(self._buffer) >= BLOCK:
            await to_completion(asyncio.to_thread(self._flush))

    async def finish(self) -> None:
        """Ends the upload: computes the hash and syncs a large one to disk."""
        await to_completion(asyncio.to_thread(self._finish))

    async def run_in_thread(self, work: Callable[[], T]) -> T:
        """Runs a function that reads the file in a thread; waits for the thread even when cancelled."""
        return await to_completion(asyncio.to_thread(work))

    def content(self) -> bytes:
        """All bytes at once; for small uploads only."""
        if self._scratch is None:
            return bytes(self._buffer)
        with self.file() as file:
            return file.read()

    def file(self) -> BinaryIO:
        """The bytes as a file of their own to read; the caller may close it."""
        if self._scratch is None:
            return _temporary_file(self._buffer)
        file = os.fdopen(os.dup(self._scratch.fd), "rb")
        with closed_on_failure(file):
            file.seek(0)
        return file

    def scratch(self) -> ScratchFile:
        assert self._scratch is not None
        return self._scratch

    def _flush(self) -> None:
        if self._scratch is None:
            self._scratch = self._make_scratch()
        self._update_digest()
        with translate_disk_errors(), memoryview(self._buffer) as view:
            written_bytes = 0
            while written_bytes < len(view):
                written_bytes += os.write(self._scratch.fd, view[written_bytes:])
        self._buffer = bytearray()

    def _finish(self) -> None:
        if self._scratch is None and len(self._buffer) <= MEMORY_LIMIT:
            self._update_digest()
        else:
            self._flush()
        if self._scratch is not None and self.size_bytes >= ROW_LIMIT:
            with translate_disk_errors():
                os.fsync(self._scratch.fd)
        self.hash = self._digest.hexdigest()

    def _update_digest(self) -> None:
        self._digest.update(self._buffer)
        self.head += bytes(self._buffer[: HEAD - len(self.head)])


def _temporary_file(content: bytes | bytearray) -> BinaryIO:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    with closed_on_failure(file):
        file.write(content)
        file.seek(0)
    return file


class ScratchFile:
    """A temporary file for an upload. Closing it deletes it, unless it was renamed to its final place."""

    def __init__(self, fd: int, name: str | None = None, folder: int | None = None) -> None:
        self.fd = fd
        self.name = name
        self._folder = folder

    def close(self) -> None:
        os.close(self.fd)
        if self.name is not None:
            with suppress(FileNotFoundError):
                os.unlink(self.name, dir_fd=self._folder)


@contextmanager
def translate_disk_errors() -> Iterator[None]:
    """Translates errors of the disk into errors with a message for a person."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull("The disk is full. Nothing was saved; make room and try again.") from error
        raise StorageFailed(f"The folder of blobs cannot be written: {error.strerror}.") from error
