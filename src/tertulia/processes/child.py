"""Child process: runs a Python module as a process of this one, limits its time and stops it for good.

The module calls `worker.begin` first, so that the process dies with this one.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Protocol, TypeVar

from tertulia.processes.timers import GetClock

INHERITED = ("PATH", "LANG", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH")
"""The environment variables that a process may inherit. The others may hold API keys."""

T = TypeVar("T")


def allowed_environment(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: environ[name] for name in INHERITED if name in environ}


@dataclass(frozen=True, slots=True)
class Program:
    """A Python module to run, with everything that its process gets from this one."""

    module: str
    arguments: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    descriptors: tuple[int, ...] = ()
    """The open sockets that the process inherits. Without any, it has pipes for its standard input and
    output."""
    is_isolated: bool = False
    """The process ignores Python's environment variables and the user's packages, and runs in the root
    folder."""


class Process(Protocol):
    """The part of `subprocess.Popen` that is used here."""

    @property
    def pid(self) -> int: ...

    @property
    def stdin(self) -> IO[bytes] | None: ...

    @property
    def stdout(self) -> IO[bytes] | None: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def kill(self) -> None: ...


Spawn = Callable[[Program], Process]


def spawn(program: Program) -> Process:
    """Starts a process. Its first argument is the id of this process."""
    pipe = subprocess.DEVNULL if program.descriptors else subprocess.PIPE
    options = ("-I",) if program.is_isolated else ()
    return subprocess.Popen(
        [sys.executable, *options, "-m", program.module, str(os.getpid()), *program.arguments],
        stdin=pipe,
        stdout=pipe,
        stderr=subprocess.DEVNULL,
        pass_fds=program.descriptors,
        env=dict(program.environ),
        cwd="/" if program.is_isolated else None,
    )


class ChildProcess:
    """A single run of a program. It may be stopped at any time, even while it starts, and never restarts."""

    def __init__(self, program: Program, get_clock: GetClock, spawn: Spawn = spawn) -> None:
        self._program = program
        self._get_clock = get_clock
        self._spawn = spawn
        self._process: Process | None = None
        self._is_stopped = False
        self._lock = threading.Lock()
        """Held while the process starts, so that a stop in another thread cannot miss it."""

    def start(self) -> None:
        """Starts the process; raises EOFError if it was stopped before."""
        with self._lock:
            if self._is_stopped:
                raise EOFError("the process was stopped before it started")
            self._process = self._spawn(self._program)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def has_ended(self) -> bool:
        """True if the process has died or was stopped; False before its start."""
        return self._is_stopped or (self._process is not None and self._process.poll() is not None)

    @property
    def stdin(self) -> IO[bytes]:
        """The pipe to the process; raises EOFError if there is none."""
        return _open_pipe(self._process.stdin if self._process else None)

    @property
    def stdout(self) -> IO[bytes]:
        """The pipe from the process; raises EOFError if there is none."""
        return _open_pipe(self._process.stdout if self._process else None)

    async def within(self, limit_s: float, work: Callable[[], T]) -> T:
        """Runs work that blocks on the process in a thread; kills the process if the work takes longer.

        A cancelled caller stops the process itself: the thread still waits for it.
        """
        timer = self._get_clock().call_later(limit_s, self.kill)
        try:
            return await asyncio.to_thread(work)
        finally:
            timer.cancel()

    def kill(self) -> None:
        process = self._mark_stopped()
        if process is not None:
            process.kill()

    def stop(self, grace_s: float = 0.0) -> None:
        """Kills the process, waits for its end and closes its pipes.

        With a grace time it closes the standard input first, which asks the process to end by itself.
        """
        process = self._mark_stopped()
        if process is None:
            return
        if grace_s > 0:
            _ask_to_end(process, grace_s)
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):  # closing flushes the rest of a request, which nobody reads any more
                if pipe is not None:
                    pipe.close()

    def _mark_stopped(self) -> Process | None:
        with self._lock:
            self._is_stopped = True
            return self._process


def _open_pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise EOFError("the process has no such pipe")
    return pipe


def _ask_to_end(process: Process, grace_s: float) -> None:
    with suppress(OSError, subprocess.TimeoutExpired):
        if process.stdin is not None:
            process.stdin.close()
        process.wait(grace_s)
