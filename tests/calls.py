"""Call counter: measures work by function calls instead of time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def counted_calls() -> Iterator[Callable[[], int]]:
    """Counts the function calls of this thread inside the block, built-in functions included."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        yield lambda: count
    finally:
        sys.setprofile(None)
