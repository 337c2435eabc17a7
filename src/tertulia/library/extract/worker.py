"""Sandboxed worker process: reads untrusted files in a forked child with limits.

The worker has imported every parser. It waits on a socket for tasks: a JSON object, with descriptors of the
files and of the socket for the answer. For each task it forks a child with limited memory and time, without
permission to write files and without network. When the child has ended, for whatever reason, the worker sends
an exit report and waits for the next task. Both die with the server.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import socket
import sys
from contextlib import suppress
from typing import Any

import pypdf  # noqa: F401 - imported before the fork, so that no child spends its time on it

from tertulia.core.serialization import from_plain
from tertulia.library.extract.protocol import BROKE, TOO_MUCH_MEMORY, ExitReport, ExtractTask
from tertulia.library.extract.tasks import TASKS
from tertulia.processes import worker

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
MEMORY_BYTES = 512 << 20
TASK_LIMIT = 4096
DESCRIPTORS = 3


def main() -> None:
    worker.begin()
    server = socket.socket(fileno=int(sys.argv[2]))
    _unshare_network()
    while True:
        task, descriptors, _, _ = socket.recv_fds(server, TASK_LIMIT, DESCRIPTORS)
        if not task:
            os._exit(0)
        report = _run_in_child(task, descriptors, server)
        for descriptor in descriptors:
            os.close(descriptor)
        server.sendall(json.dumps([report.code, report.cpu_s, report.peak_bytes]).encode() + b"\n")


def _unshare_network() -> None:
    """Moves the process into an empty network namespace, where the system allows it."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER | CLONE_NEWNET)


def _run_in_child(task: bytes, descriptors: list[int], server: socket.socket) -> ExitReport:
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        server.close()
        worker.end_with_parent(parent)
        os._exit(_run_task(from_plain(ExtractTask, json.loads(task)), descriptors))
    _, status, usage = os.wait4(child, 0)
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return ExitReport(os.waitstatus_to_exitcode(status), round(usage.ru_utime + usage.ru_stime, 3), peak)


def _run_task(task: ExtractTask, descriptors: list[int]) -> int:
    """Runs a task in the child; returns the exit code."""
    _set_limits(task)
    *inputs, pipe = descriptors
    try:
        files: list[Any] = [os.fdopen(descriptor, "rb") for descriptor in inputs]
        TASKS[task.task](pipe, files, task.mime_type, task.limits)
    except MemoryError:
        return TOO_MUCH_MEMORY
    except Exception:  # noqa: BLE001 - any error of a parser becomes the exit code
        return BROKE
    return 0


def _set_limits(task: ExtractTask) -> None:
    """Limits the child's memory, CPU time, file sizes and descriptors, and its wall time."""
    seconds = max(1, int(task.limits.parse_s))
    for kind, limit in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):
        with suppress(ValueError, OSError):  # not every system supports each limit
            resource.setrlimit(kind, (limit, limit))
    _end_after(task.wall_s)


def _end_after(seconds: float) -> None:
    """Sets a timer whose signal kills the process.

    A timer of 0 s never fires, so the signal is sent at once.
    """
    if seconds > 0:
        signal.setitimer(signal.ITIMER_REAL, seconds)
    else:
        signal.raise_signal(signal.SIGALRM)


if __name__ == "__main__":
    main()
