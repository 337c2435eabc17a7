"""The server's side of reading files: starts the process that does it, asks, and lets go of it when idle."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import IO, Any

from tertulia.core.errors import Invalid, NotFound, TooLarge
from tertulia.core.files import Extracted, FileLimits
from tertulia.core.plain import to_json
from tertulia.library.extract.frames import LIMIT, Broken, Frame, receive
from tertulia.library.extract.orders import BROKE, TOO_MUCH_MEMORY, Ending, Order

ATTEMPTS = 3
IDLE_S = 60.0
UNPACKING_S = 300.0
PATIENCE_S = 5.0
"""Beyond a child's own limit: when even its parent does not answer, both are ended."""

ABANDONED = "abandoned"

log = logging.getLogger("tertulia.extract")


class Died(Exception):
    """The process ended before it said how the file did."""

    def __init__(self, ending: Ending | None) -> None:
        super().__init__(str(ending))
        self.ending = ending
        self.is_wanted = False
        """It was ended on purpose."""

    @property
    def code(self) -> int | None:
        return None if self.ending is None else self.ending.code

    @property
    def is_final(self) -> bool:
        """It would end the same way again."""
        return self.code in (*_TOO_LONG, TOO_MUCH_MEMORY, BROKE)

    @property
    def reason(self) -> str:
        if self.code in _TOO_LONG:
            return "Reading this file takes longer than is allowed."
        if self.code == TOO_MUCH_MEMORY:
            return "Reading this file takes more memory than is allowed."
        return "This file cannot be read; it may be damaged."


_TOO_LONG = (-signal.SIGALRM, -signal.SIGXCPU)


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
    """One file at a time; whoever comes meanwhile waits."""

    def __init__(self, limits: FileLimits) -> None:
        self._limits = limits
        self._turn = asyncio.Lock()
        self._process: Process | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._name = ""
        """Of the file that is being read."""
        self.last: Ending | None = None
        """How the last one ended, and what it took."""

    # ── what it is asked

    async def text(self, file: IO[bytes], mime_type: str, name: str = "") -> Extracted:
        """A file that brings its parser down is tried a few times, and then it has failed."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._text(file, mime_type, name)
            except Died as death:
                if death.is_wanted:
                    raise NotFound("This file was removed while it was being read.") from None
                log.warning("the parser of %s ended: %s", mime_type, death)
                if attempt == ATTEMPTS or death.is_final:
                    return Extracted("", mime_type, death.reason, has_failed=True)
        raise AssertionError

    def abandon(self, name: str) -> None:
        """Nobody wants to know any more what is in the file of that name."""
        if name and self._name == name:
            self._name = ABANDONED
            self._end()

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
        parts = []
        with _spooled(before) as old, _spooled(after) as new:
            try:
                async with aclosing(self._frames(order, [old, new])) as frames:
                    parts = [content async for kind, content in frames if kind is Frame.TEXT]
            except Died:
                raise TooLarge("These two versions are too large to be compared.") from None
        return b"".join(parts).decode()

    # ── the process

    def close(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._end()

    async def _frames(
        self, order: Order, files: Sequence[IO[bytes]], name: str = ""
    ) -> AsyncGenerator[tuple[Frame, bytes]]:
        """Frames up to the outcome, which comes last; whoever stops listening ends the process."""
        async with self._turn:
            if self._idle is not None:
                self._idle.cancel()
            self._name = name
            self._process = process = self._process or Process()
            is_over = False
            try:
                async with aclosing(process.ask(order, files)) as frames:
                    async for frame in frames:
                        yield frame
                is_over = True
            except Died as death:
                is_over = death.ending is not None
                death.is_wanted = self._name == ABANDONED
                raise
            finally:
                self.last = process.last
                self._name = ""
                if not is_over:
                    self._end()
                self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._end)

    def _end(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None


class Process:
    def __init__(self) -> None:
        self._line, theirs = socket.socketpair()
        self._line.setblocking(False)
        command = [sys.executable, "-I", "-m", "tertulia.library.extract.worker"]
        with theirs:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={"LANG": "C.UTF-8"},
                cwd="/",
            )
        self.last: Ending | None = None

    async def ask(self, order: Order, files: Sequence[IO[bytes]]) -> AsyncGenerator[tuple[Frame, bytes]]:
        pipe, theirs = os.pipe()
        reader = asyncio.StreamReader(limit=2 * LIMIT)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(pipe, "rb", buffering=0)
        )
        try:
            self._send(order, [*(file.fileno() for file in files), theirs])
            os.close(theirs)
            kind = None
            while kind is not Frame.OUTCOME:
                async with asyncio.timeout(order.wall_s + PATIENCE_S):
                    kind, content = await receive(reader)
                yield kind, content
            self.last = await self._ending(order)
        except (Broken, TimeoutError, OSError):
            self.last = await self._ending(order)
            raise Died(self.last) from None
        finally:
            transport.close()

    def _send(self, order: Order, descriptors: list[int]) -> None:
        for descriptor in descriptors[:-1]:
            os.lseek(descriptor, 0, os.SEEK_SET)
        socket.send_fds(self._line, [to_json(order).encode()], descriptors)

    async def _ending(self, order: Order) -> Ending | None:
        """None when the process itself is gone, or no longer answers."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                said = await asyncio.get_running_loop().sock_recv(self._line, 4096)
            return Ending(*json.loads(said)) if said else None
        except (TimeoutError, OSError, ValueError):
            return None

    def end(self) -> None:
        """Its children end with it."""
        self._line.close()
        self._process.kill()
        self._process.wait()


def _spooled(written: str) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - whoever asked for it closes it
    file.write(written.encode())
    file.flush()
    return file
