"""The text read from files: kept by their content, in parts, so that a few lines cost little to show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlalchemy import text

from tertulia.core.files import Extracted
from tertulia.store.transactions import Row, Tx

PART = 256 << 10
"""Characters; a part ends with the line that fills it."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Some lines of a text, counted from 1; the last one is included."""

    text: str
    start_line: int
    end_line: int
    total_lines: int
    reason: str | None = None
    """Why there is no text, or not all of it."""


def save(tx: Tx, content_hash: str, extractor: int, extracted: Extracted) -> None:
    """What this version of the extractor made of it; what an earlier one made is replaced."""
    tx.execute(_REMOVE, content_hash=content_hash, mime_type=extracted.mime_type)
    parts = list(_parts(extracted.text))
    tx.execute(
        _ADD,
        content_hash=content_hash,
        mime_type=extracted.mime_type,
        extractor=extractor,
        line_count=line_count(extracted.text),
        reason=extracted.reason,
        has_failed=extracted.has_failed,
        now=tx.now,
    )
    for number, (start_line, content) in enumerate(parts):
        tx.execute(
            _ADD_PART,
            content_hash=content_hash,
            mime_type=extracted.mime_type,
            number=number,
            start_line=start_line,
            content=content,
        )


_REMOVE = text("DELETE FROM file_texts WHERE content_hash = :content_hash AND mime_type = :mime_type")

_ADD = text("""
    INSERT INTO file_texts (content_hash, mime_type, extractor, line_count, reason, has_failed, created_at)
    VALUES (:content_hash, :mime_type, :extractor, :line_count, :reason, :has_failed, :now)
""")

_ADD_PART = text("""
    INSERT INTO file_text_parts (content_hash, mime_type, number, start_line, content)
    VALUES (:content_hash, :mime_type, :number, :start_line, :content)
""")


def line_count(written: str) -> int:
    """As editors count: what follows the last line break is a line only when there is something."""
    return written.count("\n") + (not written.endswith("\n")) if written else 0


def _parts(written: str) -> Iterator[tuple[int, str]]:
    start, line = 0, 1
    while start < len(written):
        end = written.find("\n", start + PART) + 1 or len(written)
        part = written[start:end]
        yield line, part
        start, line = end, line + part.count("\n")


def find(tx: Tx, content_hash: str, mime_type: str, extractor: int) -> Extracted | None:
    """All of it; None when it was not read yet, or by an earlier version of the extractor."""
    row = _found(tx, content_hash, mime_type, extractor)
    if row is None:
        return None
    parts = tx.execute(_PARTS, content_hash=content_hash, mime_type=mime_type, first=0, last=1 << 62)
    return Extracted("".join(part.content for part in parts), mime_type, row.reason, bool(row.has_failed))


def _found(tx: Tx, content_hash: str, mime_type: str, extractor: int) -> Row | None:
    return tx.maybe(_FIND, content_hash=content_hash, mime_type=mime_type, extractor=extractor)


_FIND = text("""
    SELECT line_count, reason, has_failed FROM file_texts
    WHERE content_hash = :content_hash AND mime_type = :mime_type AND extractor = :extractor
""")


def lines(
    tx: Tx,
    content_hash: str,
    mime_type: str,
    extractor: int,
    start_line: int,
    end_line: int,
    limit: int,
) -> Lines | None:
    """These lines, as far as there are any and the limit of characters allows; None when it was not read."""
    row = _found(tx, content_hash, mime_type, extractor)
    if row is None:
        return None
    last = min(end_line, row.line_count)
    parts = tx.execute(_PARTS, content_hash=content_hash, mime_type=mime_type, first=start_line, last=last)
    found = _between(_numbered(parts), start_line, last, limit)
    return Lines("".join(found), start_line, start_line + len(found) - 1, row.line_count, row.reason)


def lines_in(extracted: Extracted, start_line: int, end_line: int, limit: int) -> Lines:
    """The same of a text that is not kept."""
    numbered = enumerate((line[0] for line in _LINE.finditer(extracted.text)), start=1)
    found = _between(numbered, start_line, end_line, limit)
    total = sum(1 for _ in _LINE.finditer(extracted.text))
    return Lines("".join(found), start_line, start_line + len(found) - 1, total, extracted.reason)


def _between(numbered: Iterable[tuple[int, str]], first: int, last: int, limit: int) -> list[str]:
    found: list[str] = []
    size = 0
    for number, line in numbered:
        if number < first:
            continue
        size += len(line)
        if number > last or (found and size > limit):
            break
        found.append(line[:limit])
    return found


_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # a line ends with \n and with nothing else, as editors count


def _numbered(parts: list[Row]) -> Iterator[tuple[int, str]]:
    for part in parts:
        for number, found in enumerate(_LINE.finditer(part.content), start=part.start_line):
            yield number, found[0]


# A part holds the first line asked for when it is the last one to begin at it or before it.
_PARTS = text("""
    SELECT start_line, content FROM file_text_parts
    WHERE content_hash = :content_hash AND mime_type = :mime_type AND start_line <= :last AND start_line >= (
        SELECT COALESCE(MAX(p.start_line), 1) FROM file_text_parts AS p
        WHERE p.content_hash = :content_hash AND p.mime_type = :mime_type AND p.start_line <= :first
    )
    ORDER BY number
""")
