"""The server's side of reading files: extract, unpack and compare, each in a process that may die of it."""

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
from tertulia.library.extract.orders import Ending, Order
from tertulia.library.extract.process import PATIENCE_S, Died, Frames, Lane

ATTEMPTS = 3
LANES = 2
"""While one is at a long book for the index, another answers whoever waits."""
UNPACKING_S = 300.0

log = logging.getLogger("tertulia.extract")


@dataclass(frozen=True, slots=True)
class Contents:
    """How much there is in an archive."""

    size_bytes: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of an archive; its bytes follow."""

    path: str


@dataclass(frozen=True, slots=True)
class Spoilt:
    """The last entry cannot be unpacked after all."""

    reason: str


@dataclass(frozen=True, slots=True)
class End:
    """There is no more."""


Packed = Contents | Entry | bytes | Spoilt | End


def _packed(kind: Frame, said: Any) -> Packed:
    match kind:
        case Frame.CONTENTS:
            return Contents(said["size_bytes"])
        case Frame.ENTRY:
            return Entry(said["path"])
        case Frame.SPOILT:
            return Spoilt(said["reason"])
    if said["has_failed"]:
        raise Invalid(said["reason"])
    return End()


class Extractor:
    """Reads as many files at once as it has lanes; whoever comes meanwhile waits."""

    def __init__(self, limits: FileLimits, patience_s: float = PATIENCE_S) -> None:
        """The patience is for a process that does not answer, beyond the limits of what it does."""
        self._limits = limits
        self._lanes = [Lane(patience_s) for _ in range(LANES)]
        self.last: Ending | None = None
        """How the last child ended, and what it took."""

    @property
    def reading(self) -> tuple[str, ...]:
        """The names of the files that are being read."""
        return tuple(lane.name for lane in self._lanes if lane.name)

    async def text(self, file: IO[bytes], mime_type: str, name: str = "") -> Extracted:
        """A file that brings its parser down is tried a few times, and then it has failed."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._text(file, mime_type, name)
            except Died as death:
                if death.is_on_purpose:
                    raise NotFound("This file was removed while it was being read.") from None
                log.warning("the parser of %s ended: %s", mime_type, death)
                if attempt == ATTEMPTS or death.is_final:
                    return Extracted("", mime_type, death.reason, has_failed=True)
        raise AssertionError

    async def _text(self, file: IO[bytes], mime_type: str, name: str) -> Extracted:
        parts, outcome = [], b"{}"
        order = Order("text", mime_type, self._limits, self._limits.parse_s)
        async with aclosing(self._frames(order, [file], name)) as frames:
            async for kind, content in frames:
                if kind is Frame.TEXT:
                    parts.append(content)
                else:
                    outcome = content
        said = json.loads(outcome)
        return Extracted(b"".join(parts).decode(), mime_type, said["reason"], said["has_failed"])

    async def unzip(self, file: IO[bytes]) -> AsyncGenerator[Packed]:
        """The files of an archive, each as its path, its bytes and whether they are all there."""
        order = Order("unzip", "", self._limits, UNPACKING_S)
        try:
            async with aclosing(self._frames(order, [file])) as frames:
                async for kind, content in frames:
                    if kind is Frame.DATA:
                        yield content
                    else:
                        yield _packed(kind, json.loads(content))
        except Died as death:
            raise Invalid(death.reason) from None

    async def diff(self, before: str, after: str) -> str:
        """What changed between two texts, in the unified form."""
        order = Order("diff", "", self._limits, self._limits.compare_s)
        with _spooled(before) as old, _spooled(after) as new:
            try:
                async with aclosing(self._frames(order, [old, new])) as frames:
                    *parts, (_, outcome) = [frame async for frame in frames]
            except Died:
                raise TooLarge("These two versions are too large to be compared.") from None
        if json.loads(outcome)["has_failed"]:
            raise TooLarge("These two versions differ in more than can be shown. Save both to compare them.")
        return b"".join(content for _, content in parts).decode()

    async def _frames(self, order: Order, files: Sequence[IO[bytes]], name: str = "") -> Frames:
        lane = min(self._lanes, key=lambda one: one.waiting)
        try:
            async with aclosing(lane.frames(order, files, name)) as frames:
                async for frame in frames:
                    yield frame
        finally:
            self.last = lane.last

    def abandon(self, name: str) -> None:
        """Nobody wants to know any more what is in the file of that name."""
        for lane in self._lanes:
            if name and lane.name == name:
                lane.abandon()

    def close(self) -> None:
        for lane in self._lanes:
            lane.end()


def _spooled(written: str) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - whoever asked for it closes it
    with closed_on_failure(file):
        file.write(written.encode())
        file.flush()
    return file
