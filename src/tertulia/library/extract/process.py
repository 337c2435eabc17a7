"""Worker process handle: starts the process that reads files on demand and stops it when it is idle."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import IO

from tertulia.core.closing import closed_on_failure
from tertulia.core.serialization import to_json
from tertulia.library.extract.frames import Frame, FrameReader, ProtocolError
from tertulia.library.extract.protocol import BROKE, TOO_MUCH_MEMORY, ExitReport, ExtractTask
from tertulia.processes.child import ChildProcess, Program, Spawn, spawn
from tertulia.processes.timers import GetClock, IdleTimer

IDLE_S = 60.0
GRACE_S = 5.0
"""Added to a child's own time limit; if the worker does not answer by then either, both are killed."""

Frames = AsyncGenerator[tuple[Frame, bytes]]


class WorkerDied(Exception):
    """The process ended before it sent an outcome."""

    def __init__(self, ending: ExitReport | None) -> None:
        super().__init__(str(ending))
        self.ending = ending
        self.is_on_purpose = False
        """True if the task was cancelled with `abandon`."""

    @property
    def code(self) -> int | None:
        return None if self.ending is None else self.ending.code

    @property
    def is_final(self) -> bool:
        """True if another try would end the same way."""
        return self.code in (*_TOO_LONG, TOO_MUCH_MEMORY, BROKE)

    @property
    def reason(self) -> str:
        if self.code in _TOO_LONG:
            return "Reading this file takes longer than is allowed."
        if self.code == TOO_MUCH_MEMORY:
            return "Reading this file takes more memory than is allowed."
        return "This file cannot be read; it may be damaged."


_TOO_LONG = (-signal.SIGALRM, -signal.SIGXCPU)


class WorkerSlot:
    """A worker process and the queue of tasks for it, which it runs one after the other."""

    def __init__(
        self,
        grace_s: float = GRACE_S,
        *,
        get_clock: GetClock = asyncio.get_running_loop,
        spawn: Spawn = spawn,
    ) -> None:
        self._grace_s = grace_s
        self._get_clock = get_clock
        self._spawn = spawn
        self._lock = asyncio.Lock()
        self._process: WorkerProcess | None = None
        self._idle_timer = IdleTimer(IDLE_S, self.end, get_clock)
        self._is_abandoned = False
        self.waiting = 0
        """The length of the queue, with the running task."""
        self.name = ""
        """The name of the file that is being read."""
        self.last: ExitReport | None = None
        """How the last child process ended, with the time and memory it used."""

    async def frames(self, task: ExtractTask, files: Sequence[IO[bytes]], name: str) -> Frames:
        """Waits for its turn, runs a task and yields its frames; the last frame is the outcome.

        If the caller stops before the outcome, the process is killed.
        """
        self.waiting += 1
        try:
            async with self._lock, aclosing(self._run(task, files, name)) as frames:
                async for frame in frames:
                    yield frame
        finally:
            self.waiting -= 1

    async def _run(self, task: ExtractTask, files: Sequence[IO[bytes]], name: str) -> Frames:
        process, is_reusable = self._start(name), False
        try:
            async with aclosing(process.run(task, files)) as frames:
                async for frame in frames:
                    yield frame
            is_reusable = True
        except WorkerDied as error:
            is_reusable = error.ending is not None
            error.is_on_purpose = self._is_abandoned
            raise
        finally:
            self.last, self.name = process.last, ""
            if not is_reusable:
                self.end()
            self._idle_timer.restart()

    def _start(self, name: str) -> WorkerProcess:
        """The process, started if it does not run."""
        self._idle_timer.cancel()
        self.name, self._is_abandoned = name, False
        if self._process is None:
            self._process = WorkerProcess(self._grace_s, self._get_clock, self._spawn)
        return self._process

    def abandon(self) -> None:
        """Cancels the running task and kills the process."""
        self._is_abandoned = True
        self.end()

    def end(self) -> None:
        self._idle_timer.cancel()
        if self._process is not None:
            self._process.end()
            self._process = None


class WorkerProcess:
    """A running worker process and the socket on which it receives tasks and sends exit reports."""

    def __init__(self, grace_s: float, get_clock: GetClock, spawn: Spawn) -> None:
        self._grace_s = grace_s
        self._socket, worker_end = _socketpair()
        with worker_end, closed_on_failure(self._socket):
            self._child = ChildProcess(_program(worker_end.fileno()), get_clock, spawn)
            self._child.start()
        self.last: ExitReport | None = None

    async def run(self, task: ExtractTask, files: Sequence[IO[bytes]]) -> Frames:
        """Runs a task and yields its frames, which arrive on a socket of their own; raises WorkerDied."""
        server_end, worker_end = _socketpair()
        with server_end:
            try:
                with worker_end:
                    self._send(task, [*(file.fileno() for file in files), worker_end.fileno()])
                async with aclosing(self._receive(FrameReader(server_end), task.wall_s)) as frames:
                    async for frame in frames:
                        yield frame
                self.last = await self._exit_report()
            except (ProtocolError, TimeoutError, OSError):
                self.last = await self._exit_report()
                raise WorkerDied(self.last) from None

    async def _receive(self, reader: FrameReader, wall_s: float) -> Frames:
        kind = None
        while kind is not Frame.OUTCOME:
            async with asyncio.timeout(wall_s + self._grace_s):
                kind, content = await reader.next()
            yield kind, content

    def _send(self, task: ExtractTask, descriptors: list[int]) -> None:
        for descriptor in descriptors[:-1]:
            os.lseek(descriptor, 0, os.SEEK_SET)
        socket.send_fds(self._socket, [to_json(task).encode()], descriptors)

    async def _exit_report(self) -> ExitReport | None:
        """The exit report of the child; None if the worker itself has died or does not answer."""
        try:
            async with asyncio.timeout(self._grace_s):
                report = await asyncio.get_running_loop().sock_recv(self._socket, 4096)
            return ExitReport(*json.loads(report)) if report else None
        except (TimeoutError, OSError, ValueError):
            return None

    def end(self) -> None:
        """Kills the process; its children die with it."""
        self._socket.close()
        self._child.stop()


def _socketpair() -> tuple[socket.socket, socket.socket]:
    """The server's end, non-blocking for the event loop, and the worker's end, on which it may block."""
    server_end, worker_end = socket.socketpair()
    server_end.setblocking(False)
    return server_end, worker_end


def _program(descriptor: int) -> Program:
    """The program that reads files. It inherits one socket and nothing of the environment."""
    return Program(
        "tertulia.library.extract.worker",
        (str(descriptor),),
        {"LANG": "C.UTF-8"},
        descriptors=(descriptor,),
        is_isolated=True,
    )
