"""Extracted texts of files, stored by content hash in parts, so that reading a few lines is cheap."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tertulia.core.files import Extracted
from tertulia.store.sql import sql
from tertulia.store.transactions import Row, Tx

PART = 256 << 10
"""Characters per part; a part ends with the line that reaches this size."""


@dataclass(frozen=True, slots=True)
class TextLines:
    """A range of lines of a text, numbered from 1; `end_line` is included."""

    text: str
    start_line: int
    end_line: int
    total_lines: int
    reason: str | None = None
    """Why the text is missing or incomplete."""


def save(tx: Tx, content_hash: str, extractor: int, extracted: Extracted) -> None:
    """Stores the text from this version of the extractor, and replaces that of an earlier version."""
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


_REMOVE = sql("DELETE FROM file_texts WHERE content_hash = :content_hash AND mime_type = :mime_type")

_ADD = sql("""
    INSERT INTO file_texts (content_hash, mime_type, extractor, line_count, reason, has_failed, created_at)
    VALUES (:content_hash, :mime_type, :extractor, :line_count, :reason, :has_failed, :now)
""")

_ADD_PART = sql("""
    INSERT INTO file_text_parts (content_hash, mime_type, number, start_line, content)
    VALUES (:content_hash, :mime_type, :number, :start_line, :content)
""")


def line_count(content: str) -> int:
    """The number of lines as editors count: text after the last line break is a line only if not empty."""
    return content.count("\n") + (not content.endswith("\n")) if content else 0


def _parts(content: str) -> Iterator[tuple[int, str]]:
    start, line = 0, 1
    while start < len(content):
        end = content.find("\n", start + PART) + 1 or len(content)
        part = content[start:end]
        yield line, part
        start, line = end, line + part.count("\n")


def find(tx: Tx, content_hash: str, mime_type: str, extractor: int) -> Extracted | None:
    """The whole text; None if it was not extracted yet, or by another version of the extractor."""
    row = _find_row(tx, content_hash, mime_type, extractor)
    if row is None:
        return None
    parts = tx.execute(_PARTS, content_hash=content_hash, mime_type=mime_type, first=0, last=1 << 62)
    return Extracted("".join(part.content for part in parts), mime_type, row.reason, bool(row.has_failed))


def _find_row(tx: Tx, content_hash: str, mime_type: str, extractor: int) -> Row | None:
    return tx.maybe(_FIND, content_hash=content_hash, mime_type=mime_type, extractor=extractor)


_FIND = sql("""
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
) -> TextLines | None:
    """A range of lines, cut to the existing lines and to `limit` characters; None if not extracted yet."""
    row = _find_row(tx, content_hash, mime_type, extractor)
    if row is None:
        return None
    last = min(end_line, row.line_count)
    parts = tx.execute(_PARTS, content_hash=content_hash, mime_type=mime_type, first=start_line, last=last)
    range_lines = _cut(_numbered(parts), start_line, last, limit)
    return TextLines(
        "".join(range_lines), start_line, start_line + len(range_lines) - 1, row.line_count, row.reason
    )


def lines_in(extracted: Extracted, start_line: int, end_line: int, limit: int) -> TextLines:
    """The same range of lines from a text that is not stored."""
    numbered = enumerate((line[0] for line in _LINE.finditer(extracted.text)), start=1)
    range_lines = _cut(numbered, start_line, end_line, limit)
    total = sum(1 for _ in _LINE.finditer(extracted.text))
    return TextLines(
        "".join(range_lines), start_line, start_line + len(range_lines) - 1, total, extracted.reason
    )


def _cut(numbered: Iterable[tuple[int, str]], first: int, last: int, limit: int) -> list[str]:
    range_lines: list[str] = []
    size = 0
    for number, line in numbered:
        if number < first:
            continue
        size += len(line)
        if number > last or (range_lines and size > limit):
            break
        range_lines.append(line[:limit])
    return range_lines


_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # only \n ends a line, as in editors


def _numbered(parts: list[Row]) -> Iterator[tuple[int, str]]:
    for part in parts:
        for number, line in enumerate(_LINE.finditer(part.content), start=part.start_line):
            yield number, line[0]


# The first line of the range is in the last part that begins at or before it.
_PARTS = sql("""
    SELECT start_line, content FROM file_text_parts
    WHERE content_hash = :content_hash AND mime_type = :mime_type AND start_line <= :last AND start_line >= (
        SELECT COALESCE(MAX(p.start_line), 1) FROM file_text_parts AS p
        WHERE p.content_hash = :content_hash AND p.mime_type = :mime_type AND p.start_line <= :first
    )
    ORDER BY number
""")
