"""Calls: how much work something is, counted and not timed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def counted_calls() -> Iterator[Callable[[], int]]:
    """The calls of functions, Python's own among them, that this thread makes inside the block."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        yield lambda: count
    finally:
        sys.setprofile(None)
