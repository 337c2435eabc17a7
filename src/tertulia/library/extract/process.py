"""The process that reads files, as the server holds it: started when it is needed, ended when it is idle."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import IO

from tertulia.core.closing import closed_on_failure
from tertulia.core.plain import to_json
from tertulia.library.extract.frames import Broken, Frame, FrameReader
from tertulia.library.extract.orders import BROKE, TOO_MUCH_MEMORY, Ending, Order

IDLE_S = 60.0
PATIENCE_S = 5.0
"""Beyond a child's own limit: when even its parent does not answer, both are ended."""

Frames = AsyncGenerator[tuple[Frame, bytes]]


class Died(Exception):
    """The process ended before it said how the file did."""

    def __init__(self, ending: Ending | None) -> None:
        super().__init__(str(ending))
        self.ending = ending
        self.is_on_purpose = False
        """Nobody wanted to know any more."""

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


class Lane:
    """One process and whoever waits for it: it does one thing after the other."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._turn = asyncio.Lock()
        self._process: Process | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._is_abandoned = False
        self.waiting = 0
        """How many want it, with the one it works for."""
        self.name = ""
        """Of the file it reads."""
        self.last: Ending | None = None
        """How the last child ended, and what it took."""

    async def frames(self, order: Order, files: Sequence[IO[bytes]], name: str) -> Frames:
        """Frames up to the outcome, which comes last; whoever stops listening ends the process."""
        self.waiting += 1
        try:
            async with self._turn, aclosing(self._asked(order, files, name)) as frames:
                async for frame in frames:
                    yield frame
        finally:
            self.waiting -= 1

    async def _asked(self, order: Order, files: Sequence[IO[bytes]], name: str) -> Frames:
        process, is_over = self._started(name), False
        try:
            async with aclosing(process.ask(order, files)) as frames:
                async for frame in frames:
                    yield frame
            is_over = True
        except Died as death:
            is_over = death.ending is not None
            death.is_on_purpose = self._is_abandoned
            raise
        finally:
            self.last, self.name = process.last, ""
            if not is_over:
                self.end()
            self._idle = asyncio.get_running_loop().call_later(IDLE_S, self.end)

    def _started(self, name: str) -> Process:
        if self._idle is not None:
            self._idle.cancel()
        self.name, self._is_abandoned = name, False
        self._process = self._process or Process(self._patience_s)
        return self._process

    def abandon(self) -> None:
        """What it is doing is of no use any more."""
        self._is_abandoned = True
        self.end()

    def end(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        if self._process is not None:
            self._process.end()
            self._process = None


class Process:
    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._line, theirs = _socketpair()
        with theirs, closed_on_failure(self._line):
            self._process = _started(theirs)
        self.last: Ending | None = None

    async def ask(self, order: Order, files: Sequence[IO[bytes]]) -> Frames:
        ours, theirs = _socketpair()
        with ours:
            try:
                with theirs:
                    self._send(order, [*(file.fileno() for file in files), theirs.fileno()])
                async with aclosing(self._received(FrameReader(ours), order.wall_s)) as frames:
                    async for frame in frames:
                        yield frame
                self.last = await self._ending()
            except (Broken, TimeoutError, OSError):
                self.last = await self._ending()
                raise Died(self.last) from None

    async def _received(self, reader: FrameReader, wall_s: float) -> Frames:
        kind = None
        while kind is not Frame.OUTCOME:
            async with asyncio.timeout(wall_s + self._patience_s):
                kind, content = await reader.next()
            yield kind, content

    def _send(self, order: Order, descriptors: list[int]) -> None:
        for descriptor in descriptors[:-1]:
            os.lseek(descriptor, 0, os.SEEK_SET)
        socket.send_fds(self._line, [to_json(order).encode()], descriptors)

    async def _ending(self) -> Ending | None:
        """None when the process itself is gone, or no longer answers."""
        try:
            async with asyncio.timeout(self._patience_s):
                said = await asyncio.get_running_loop().sock_recv(self._line, 4096)
            return Ending(*json.loads(said)) if said else None
        except (TimeoutError, OSError, ValueError):
            return None

    def end(self) -> None:
        """Its children end with it."""
        self._line.close()
        self._process.kill()
        self._process.wait()


def _socketpair() -> tuple[socket.socket, socket.socket]:
    """Ours, which the event loop reads, and theirs, which the other process may wait on."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    return ours, theirs


def _started(line: socket.socket) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [
            *(sys.executable, "-I", "-m", "tertulia.library.extract.worker"),
            *(str(line.fileno()), str(os.getpid())),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[line.fileno()],
        env={"LANG": "C.UTF-8"},
        cwd="/",
    )
