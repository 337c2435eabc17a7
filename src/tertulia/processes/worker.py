"""Worker: the first steps of a supervised process. It dies with its parent and yields to it."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from contextlib import suppress
from typing import BinaryIO

PR_SET_PDEATHSIG = 1
NICENESS = 5
OOM_SCORE = "500"


def begin() -> None:
    """Prepares this process, whose first argument is the id of its parent. Call it before anything else."""
    end_with_parent(int(sys.argv[1]))
    # Ctrl-C in a terminal reaches this process too, but only the server decides when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _yield_to_parent()


def end_with_parent(parent: int) -> None:
    """Ends this process with its parent, even when the parent is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)  # The parent died before prctl took effect.


def reserve_stdout() -> BinaryIO:
    """A private copy of standard output for answers. Whatever a library prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _yield_to_parent() -> None:
    """Gives the server priority for the processor and the memory, and prevents core dumps, which would write
    conversations to disk."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        os.nice(NICENESS)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write(OOM_SCORE)
