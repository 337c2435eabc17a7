"""What the server asks of the process that reads files, and how that ends."""

from __future__ import annotations

from dataclasses import dataclass

from tertulia.core.files import FileLimits

TOO_MUCH_MEMORY = 3
BROKE = 4
"""The codes a child ends with by itself; 0 when it did what it was asked."""


@dataclass(frozen=True, slots=True)
class Order:
    task: str
    mime_type: str
    limits: FileLimits
    wall_s: float


@dataclass(frozen=True, slots=True)
class Ending:
    """How a child ended, and what it took."""

    code: int
    """As the system says it: negative for a signal."""
    cpu_s: float
    peak_bytes: int
