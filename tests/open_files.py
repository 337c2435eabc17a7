"""Resource leaks: a block of a test that must close every file, socket and pipe."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def nothing_left_open() -> Iterator[None]:
    """Fails if Python warns that a file, socket or pipe was garbage-collected without being closed."""
    gc.collect()
    with warnings.catch_warnings(record=True) as warnings_seen:
        warnings.simplefilter("always", ResourceWarning)
        yield
        gc.collect()
    assert [str(warning.message) for warning in warnings_seen] == []
