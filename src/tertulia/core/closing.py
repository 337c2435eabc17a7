"""Resource cleanup on failure: closes a resource if the function that opened it fails before handing it
on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Closable(Protocol):
    def close(self) -> None: ...


@contextmanager
def closed_on_failure(resource: Closable) -> Iterator[None]:
    """Closes the resource on an error or a cancellation; leaves it open when the block succeeds."""
    try:
        yield
    except BaseException:
        resource.close()
        raise
