"""Open files: a block of a test that must close all it opens."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def nothing_left_open() -> Iterator[None]:
    """Python says of a file, socket or pipe that it was not closed when the last who knew it is gone."""
    gc.collect()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ResourceWarning)
        yield
        gc.collect()
    assert [str(warning.message) for warning in said] == []
