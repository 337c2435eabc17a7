"""Tables: CSV and its relatives as readable lines, one row a line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from tertulia.library.extract import plain

_DELIMITERS = ",;\t|"
_BATCH = 1000


def text(file: BinaryIO) -> Iterator[str]:
    written = plain.decoded(plain.read(file))
    csv.field_size_limit(plain.READ_LIMIT)
    rows = csv.reader(io.StringIO(written, newline=""), delimiter=delimiter_of(written[:10_000]))
    batch: list[str] = []
    try:
        for row in rows:
            batch.append(line(row))
            if len(batch) == _BATCH:
                yield "".join(batch)
                batch.clear()
    except csv.Error:  # not a table after all
        yield written
        return
    yield "".join(batch)
    plain.must_be_all(file)


def delimiter_of(sample: str) -> str:
    """The one that cuts the first lines into the most columns, alike in each of them."""
    lines = [one for one in sample.split("\n")[:20] if one][:-1] or [sample]
    return max(_DELIMITERS, key=lambda mark: (min(one.count(mark) for one in lines), lines[0].count(mark)))


def line(cells: Iterable[str]) -> str:
    """A row: its cells side by side, each on one line, none after the last that holds something."""
    flat = [" ".join(cell.split()) for cell in cells]
    while flat and not flat[-1]:
        flat.pop()
    return " | ".join(flat) + "\n"
