"""Closing: what one function opens and hands on is closed when it fails in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Closable(Protocol):
    def close(self) -> None: ...


@contextmanager
def closed_on_failure(opened: Closable) -> Iterator[None]:
    """Leaves it open when the block ends well; an error or a cancellation closes it."""
    try:
        yield
    except BaseException:
        opened.close()
        raise
