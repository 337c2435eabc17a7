"""Bytes on their way in, block by block in a scratch file; nothing remains of what is not saved."""

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
"""From here on, bytes are kept outside their row, and must be safe before it is written."""
MEMORY_LIMIT = 64 << 10
"""What of an upload is held in memory before it goes to a scratch file."""
BLOCK = 256 << 10
HEAD = 64 << 10

T = TypeVar("T")


class Incoming:
    """Bytes on their way in. Nothing of them remains unless they are saved."""

    def __init__(self, make_scratch: Callable[[], Scratch]) -> None:
        self._make_scratch = make_scratch
        self._scratch: Scratch | None = None
        self._waiting = bytearray()
        self._digest = hashlib.sha256()
        self.head = b""
        """The first bytes, enough to see what they are."""
        self.size_bytes = 0
        self.hash = ""
        """Known when all has arrived."""

    async def __aenter__(self) -> Incoming:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.discard()

    def discard(self) -> None:
        """Lets go of what has arrived; what was saved of it stays saved."""
        scratch, self._scratch = self._scratch, None
        if scratch is not None:
            scratch.close()

    async def write(self, data: bytes) -> None:
        self._waiting += data
        self.size_bytes += len(data)
        if len(self._waiting) >= BLOCK:
            await to_completion(asyncio.to_thread(self._flush))

    async def finish(self) -> None:
        """All has arrived; what will not stand in its row is safe on the disk."""
        await to_completion(asyncio.to_thread(self._finish))

    async def look(self, work: Callable[[], T]) -> T:
        """Runs in a thread what reads the file. The file stays open until that ends."""
        return await to_completion(asyncio.to_thread(work))

    def content(self) -> bytes:
        """All of it: for a small one."""
        if self._scratch is None:
            return bytes(self._waiting)
        with self.file() as file:
            return file.read()

    def file(self) -> BinaryIO:
        """To look inside; closing it changes nothing."""
        if self._scratch is None:
            return _written(self._waiting)
        file = os.fdopen(os.dup(self._scratch.fd), "rb")
        with closed_on_failure(file):
            file.seek(0)
        return file

    def scratch(self) -> Scratch:
        assert self._scratch is not None
        return self._scratch

    def _flush(self) -> None:
        if self._scratch is None:
            self._scratch = self._make_scratch()
        self._take_in()
        with told(), memoryview(self._waiting) as view:
            done = 0
            while done < len(view):
                done += os.write(self._scratch.fd, view[done:])
        self._waiting = bytearray()

    def _finish(self) -> None:
        if self._scratch is None and len(self._waiting) <= MEMORY_LIMIT:
            self._take_in()
        else:
            self._flush()
        if self._scratch is not None and self.size_bytes >= ROW_LIMIT:
            with told():
                os.fsync(self._scratch.fd)
        self.hash = self._digest.hexdigest()

    def _take_in(self) -> None:
        self._digest.update(self._waiting)
        self.head += bytes(self._waiting[: HEAD - len(self.head)])


def _written(content: bytes | bytearray) -> BinaryIO:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - it is handed on
    with closed_on_failure(file):
        file.write(content)
        file.seek(0)
    return file


class Scratch:
    """A file that is being written; gone when it is closed, unless it was moved away."""

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
def told() -> Iterator[None]:
    """What the disk refuses, in words for a person."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull("The disk is full. Nothing was saved; make room and try again.") from error
        raise StorageFailed(f"The folder of blobs cannot be written: {error.strerror}.") from error
