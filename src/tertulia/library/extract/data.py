"""JSON and notebooks as text a person reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from tertulia.library.extract import plain
from tertulia.library.extract.outcome import Unreadable

LONG_LINE = 1000
"""JSON with longer lines was written by a program for a program."""
DEPTH = 20
"""Further in, lines begin alike: thousands of brackets must not become megabytes of blanks."""
OUTPUT_LIMIT = 20_000
"""Characters of one output of a notebook's cell; the rest is rarely meant to be read."""

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)


def json_text(file: BinaryIO) -> Iterator[str]:
    """As it is when it has lines; else a value a line."""
    written = plain.decoded(plain.read(file))
    if max(map(len, written.split("\n"))) <= LONG_LINE:
        yield written
    else:
        yield from pretty(written)
    plain.must_be_all(file)


def pretty(written: str) -> Iterator[str]:
    """Sets every value on its own line and changes nothing else: no number is read and written again."""
    level, before, batch = 0, "", []
    for match in _TOKEN.finditer(written):
        token = match[0]
        if token in _CLOSING:
            level = max(0, level - 1)
            if before not in _OPENING:
                batch.append(_new_line(level))
        elif before in _OPENING:
            batch.append(_new_line(level))
        batch.append(f",{_new_line(level)}" if token == "," else ": " if token == ":" else token)
        level += token in _OPENING
        before = token
        if len(batch) > _BATCH:
            yield "".join(batch)
            batch = []
    yield "".join(batch) + "\n"


_OPENING, _CLOSING = frozenset("{["), frozenset("}]")
_BATCH = 5000


def _new_line(level: int) -> str:
    return "\n" + "  " * min(level, DEPTH)


def notebook_text(file: BinaryIO) -> Iterator[str]:
    """Its cells in order: prose as it is, code in fences, and what the code printed."""
    written = plain.decoded(plain.read(file))
    try:
        notebook = json.loads(written)
        cells = _list(notebook.get("cells")) or [
            cell for sheet in _list(notebook.get("worksheets")) for cell in _list(sheet.get("cells"))
        ]
    except (ValueError, RecursionError, AttributeError):
        raise Unreadable("This notebook is not valid JSON.") from None
    language = _language(notebook)
    for cell in cells:
        if isinstance(cell, dict):
            yield from _cell(cell, language)


def _cell(cell: dict[str, Any], language: str) -> Iterator[str]:
    source = _joined(cell.get("source", cell.get("input", ""))).rstrip("\n")
    if cell.get("cell_type") != "code":
        yield f"{source}\n\n"
        return
    yield f"```{language}\n{source}\n```\n\n"
    for output in _list(cell.get("outputs")):
        if isinstance(output, dict) and (said := _said(output).strip("\n")):
            yield f"{said[:OUTPUT_LIMIT]}\n\n"


def _said(output: dict[str, Any]) -> str:
    data = output.get("data")
    shown = data.get("text/plain", "") if isinstance(data, dict) else output.get("text", "")
    if output.get("output_type") in ("error", "pyerr"):
        shown = f"{output.get('ename', '')}: {output.get('evalue', '')}"
    return _joined(shown)


def _language(notebook: dict[str, Any]) -> str:
    metadata = notebook.get("metadata")
    info = metadata.get("language_info") if isinstance(metadata, dict) else None
    name = info.get("name") if isinstance(info, dict) else None
    return name if isinstance(name, str) and name.isalnum() else "python"


def _joined(lines: Any) -> str:
    """Notebooks write text as one string or as a list of lines."""
    return "".join(str(line) for line in lines) if isinstance(lines, list) else str(lines)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
