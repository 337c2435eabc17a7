"""The process that reads files: a parent that knows every parser, and a child of it for each file.

The parent waits for orders on a socket: a line of JSON with the files and the socket to answer through, as
descriptors. The child it forks has little memory, little time, no files to write and no network; whatever
becomes of it, the parent tells the server how it ended and waits for the next. Both end with the server.
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

import pypdf  # noqa: F401 - here, so that no child spends its time on it

from tertulia.core.plain import from_plain
from tertulia.library.extract.orders import BROKE, TOO_MUCH_MEMORY, Ending, Order
from tertulia.library.extract.tasks import TASKS

PR_SET_PDEATHSIG = 1
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
MEMORY_BYTES = 512 << 20
ORDER_LIMIT = 4096
DESCRIPTORS = 3


def main() -> None:
    line = socket.socket(fileno=int(sys.argv[1]))
    _die_with(int(sys.argv[2]))
    _leave_the_network()
    while True:
        order, descriptors, _, _ = socket.recv_fds(line, ORDER_LIMIT, DESCRIPTORS)
        if not order:
            os._exit(0)
        ending = _in_a_child(order, descriptors, line)
        for descriptor in descriptors:
            os.close(descriptor)
        line.sendall(json.dumps([ending.code, ending.cpu_s, ending.peak_bytes]).encode() + b"\n")


def _die_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)  # it died before we could ask to be told


def _leave_the_network() -> None:
    """Where the system allows it: a network of our own with nothing in it; no parser needs another."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER | CLONE_NEWNET)


def _in_a_child(order: bytes, descriptors: list[int], line: socket.socket) -> Ending:
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        line.close()
        _die_with(parent)
        os._exit(_obey(from_plain(Order, json.loads(order)), descriptors))
    _, status, used = os.wait4(child, 0)
    peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Ending(os.waitstatus_to_exitcode(status), round(used.ru_utime + used.ru_stime, 3), peak)


def _obey(order: Order, descriptors: list[int]) -> int:
    _be_bounded(order)
    *inputs, pipe = descriptors
    try:
        files: list[Any] = [os.fdopen(one, "rb") for one in inputs]
        TASKS[order.task](pipe, files, order.mime_type, order.limits)
    except MemoryError:
        return TOO_MUCH_MEMORY
    except Exception:  # noqa: BLE001 - whatever it is, the server is told that it broke
        return BROKE
    return 0


def _be_bounded(order: Order) -> None:
    seconds = max(1, int(order.limits.parse_s))
    for kind, limit in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):
        with suppress(ValueError, OSError):  # not every system knows each of them
            resource.setrlimit(kind, (limit, limit))
    with suppress(OSError):
        os.nice(5)
    _end_after(order.wall_s)


def _end_after(seconds: float) -> None:
    """The timer's signal ends the process, whatever that is at; a timer of 0 s would never ring."""
    if seconds > 0:
        signal.setitimer(signal.ITIMER_REAL, seconds)
    else:
        signal.raise_signal(signal.SIGALRM)


if __name__ == "__main__":
    main()
