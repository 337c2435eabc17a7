"""Task protocol between the server and the worker process: the task, and the exit report of the child."""

from __future__ import annotations

from dataclasses import dataclass

from tertulia.core.files import FileLimits

TOO_MUCH_MEMORY = 3
BROKE = 4
"""The exit codes of a child that failed; 0 means that it completed its task."""


@dataclass(frozen=True, slots=True)
class ExtractTask:
    """A task for the worker process; the files are passed as descriptors beside it."""

    task: str
    mime_type: str
    limits: FileLimits
    wall_s: float


@dataclass(frozen=True, slots=True)
class ExitReport:
    """How a child process ended, with the time and memory it used."""

    code: int
    """The exit code, or the negative number of the signal that killed the child."""
    cpu_s: float
    peak_bytes: int
