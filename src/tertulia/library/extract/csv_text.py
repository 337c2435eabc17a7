"""CSV and TSV text extraction: one readable line per row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from tertulia.library.extract import plain_text

_DELIMITERS = ",;\t|"
_BATCH = 1000


def text(file: BinaryIO) -> Iterator[str]:
    content = plain_text.decoded(plain_text.read(file))
    csv.field_size_limit(plain_text.READ_LIMIT)
    rows = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter_of(content[:10_000]))
    batch: list[str] = []
    try:
        for row in rows:
            batch.append(line(row))
            if len(batch) == _BATCH:
                yield "".join(batch)
                batch.clear()
    except csv.Error:  # not a valid table
        yield content
        return
    yield "".join(batch)
    plain_text.must_be_all(file)


def delimiter_of(sample: str) -> str:
    """The delimiter that occurs most often in every one of the first lines."""
    lines = [line for line in sample.split("\n")[:20] if line][:-1] or [sample]
    return max(_DELIMITERS, key=lambda mark: (min(line.count(mark) for line in lines), lines[0].count(mark)))


def line(cells: Iterable[str]) -> str:
    """A table row as one line of text, without the empty cells at its end."""
    flat = [" ".join(cell.split()) for cell in cells]
    while flat and not flat[-1]:
        flat.pop()
    return " | ".join(flat) + "\n"
