"""File extractor, the server's side: extracts text, unpacks archives and compares texts in worker processes.

A malicious file may kill its worker process, but not the server.
"""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import IO, Any

from tertulia.core.closing import closed_on_failure
from tertulia.core.errors import Invalid, NotFound, TooLarge
from tertulia.core.files import Extracted, FileLimits
from tertulia.library.extract.frames import Frame
from tertulia.library.extract.process import GRACE_S, Frames, WorkerDied, WorkerSlot
from tertulia.library.extract.protocol import ExitReport, ExtractTask

ATTEMPTS = 3
SLOTS = 2
"""While one worker reads a long book for the index, another is free for a user who waits."""
UNPACKING_S = 300.0

log = logging.getLogger("tertulia.extract")


@dataclass(frozen=True, slots=True)
class ArchiveSize:
    """The total unpacked size of an archive, sent before its entries."""

    size_bytes: int


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """A file in an archive; its bytes follow."""

    path: str


@dataclass(frozen=True, slots=True)
class CorruptEntry:
    """The entry sent last cannot be unpacked completely."""

    reason: str


@dataclass(frozen=True, slots=True)
class ArchiveEnd:
    """The end of an archive."""


ArchivePart = ArchiveSize | ArchiveEntry | bytes | CorruptEntry | ArchiveEnd


def _archive_part(kind: Frame, content: Any) -> ArchivePart:
    """Decodes a frame into a part of an archive; raises Invalid if the archive cannot be unpacked."""
    match kind:
        case Frame.CONTENTS:
            return ArchiveSize(content["size_bytes"])
        case Frame.ENTRY:
            return ArchiveEntry(content["path"])
        case Frame.SPOILT:
            return CorruptEntry(content["reason"])
    if content["has_failed"]:
        raise Invalid(content["reason"])
    return ArchiveEnd()


class Extractor:
    """Reads as many files at once as there are worker slots; further calls wait for a free slot."""

    def __init__(self, limits: FileLimits, grace_s: float = GRACE_S) -> None:
        """`grace_s` is added to a task's time limit before a silent process is killed."""
        self._limits = limits
        self._slots = [WorkerSlot(grace_s) for _ in range(SLOTS)]
        self.last: ExitReport | None = None
        """How the last child process ended, with the time and memory it used."""

    @property
    def reading(self) -> tuple[str, ...]:
        """The names of the files that are being read now."""
        return tuple(slot.name for slot in self._slots if slot.name)

    async def text(self, file: IO[bytes], mime_type: str, name: str = "") -> Extracted:
        """Extracts the text of a file; if its parser dies, tries again, up to ATTEMPTS times.

        Raises NotFound if the extraction was cancelled with `abandon`.
        """
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._text(file, mime_type, name)
            except WorkerDied as error:
                if error.is_on_purpose:
                    raise NotFound("This file was removed while it was being read.") from None
                log.warning("the parser of %s ended: %s", mime_type, error)
                if attempt == ATTEMPTS or error.is_final:
                    return Extracted("", mime_type, error.reason, has_failed=True)
        raise AssertionError

    async def _text(self, file: IO[bytes], mime_type: str, name: str) -> Extracted:
        parts, outcome_json = [], b"{}"
        task = ExtractTask("text", mime_type, self._limits, self._limits.parse_s)
        async with aclosing(self._frames(task, [file], name)) as frames:
            async for kind, content in frames:
                if kind is Frame.TEXT:
                    parts.append(content)
                else:
                    outcome_json = content
        outcome = json.loads(outcome_json)
        return Extracted(b"".join(parts).decode(), mime_type, outcome["reason"], outcome["has_failed"])

    async def unzip(self, file: IO[bytes]) -> AsyncGenerator[ArchivePart]:
        """Unpacks an archive: its size, then each file's path and bytes, then the end. Raises Invalid."""
        task = ExtractTask("unzip", "", self._limits, UNPACKING_S)
        try:
            async with aclosing(self._frames(task, [file])) as frames:
                async for kind, content in frames:
                    if kind is Frame.DATA:
                        yield content
                    else:
                        yield _archive_part(kind, json.loads(content))
        except WorkerDied as error:
            raise Invalid(error.reason) from None

    async def diff(self, before: str, after: str) -> str:
        """The unified diff of two texts; raises TooLarge."""
        task = ExtractTask("diff", "", self._limits, self._limits.compare_s)
        with _temporary_file(before) as old, _temporary_file(after) as new:
            try:
                async with aclosing(self._frames(task, [old, new])) as frames:
                    *parts, (_, outcome) = [frame async for frame in frames]
            except WorkerDied:
                raise TooLarge("These two versions are too large to be compared.") from None
        if json.loads(outcome)["has_failed"]:
            raise TooLarge("These two versions differ in more than can be shown. Save both to compare them.")
        return b"".join(content for _, content in parts).decode()

    async def _frames(self, task: ExtractTask, files: Sequence[IO[bytes]], name: str = "") -> Frames:
        """Runs a task in the slot with the shortest queue."""
        slot = min(self._slots, key=lambda slot: slot.waiting)
        try:
            async with aclosing(slot.frames(task, files, name)) as frames:
                async for frame in frames:
                    yield frame
        finally:
            self.last = slot.last

    def abandon(self, name: str) -> None:
        """Cancels the reading of the file with this name; its `text` call raises NotFound."""
        for slot in self._slots:
            if name and slot.name == name:
                slot.abandon()

    def close(self) -> None:
        for slot in self._slots:
            slot.end()


def _temporary_file(text: str) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    with closed_on_failure(file):
        file.write(text.encode())
        file.flush()
    return file
