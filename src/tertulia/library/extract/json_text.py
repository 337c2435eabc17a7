"""JSON and Jupyter notebooks as readable text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from tertulia.library.extract import plain_text
from tertulia.library.extract.errors import Unreadable

LONG_LINE = 1000
"""JSON with a line longer than this is reformatted, one value per line."""
DEPTH = 20
"""Deeper levels are indented like this one: thousands of brackets do not become megabytes of blanks."""
OUTPUT_LIMIT = 20_000
"""Characters of each output of a notebook cell; longer outputs are cut."""

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)


def json_text(file: BinaryIO) -> Iterator[str]:
    """JSON text unchanged if its lines are short, else reformatted with one value per line."""
    content = plain_text.decoded(plain_text.read(file))
    if max(map(len, content.split("\n"))) <= LONG_LINE:
        yield content
    else:
        yield from pretty(content)
    plain_text.must_be_all(file)


def pretty(content: str) -> Iterator[str]:
    """Puts every value on its own line and changes only white space; numbers keep their exact digits."""
    level, previous, batch = 0, "", []
    for match in _TOKEN.finditer(content):
        token = match[0]
        if token in _CLOSING:
            level = max(0, level - 1)
            if previous not in _OPENING:
                batch.append(_new_line(level))
        elif previous in _OPENING:
            batch.append(_new_line(level))
        batch.append(f",{_new_line(level)}" if token == "," else ": " if token == ":" else token)
        level += token in _OPENING
        previous = token
        if len(batch) > _BATCH:
            yield "".join(batch)
            batch = []
    yield "".join(batch) + "\n"


_OPENING, _CLOSING = frozenset("{["), frozenset("}]")
_BATCH = 5000


def _new_line(level: int) -> str:
    return "\n" + "  " * min(level, DEPTH)


def notebook_text(file: BinaryIO) -> Iterator[str]:
    """The cells of a notebook in order: prose unchanged, code in fences, then the outputs of the code."""
    content = plain_text.decoded(plain_text.read(file))
    try:
        notebook = json.loads(content)
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
        if isinstance(output, dict) and (text := _output_text(output).strip("\n")):
            yield f"{text[:OUTPUT_LIMIT]}\n\n"


def _output_text(output: dict[str, Any]) -> str:
    data = output.get("data")
    text = data.get("text/plain", "") if isinstance(data, dict) else output.get("text", "")
    if output.get("output_type") in ("error", "pyerr"):
        text = f"{output.get('ename', '')}: {output.get('evalue', '')}"
    return _joined(text)


def _language(notebook: dict[str, Any]) -> str:
    metadata = notebook.get("metadata")
    info = metadata.get("language_info") if isinstance(metadata, dict) else None
    name = info.get("name") if isinstance(info, dict) else None
    return name if isinstance(name, str) and name.isalnum() else "python"


def _joined(lines: Any) -> str:
    """The text as one string: a notebook stores text either as a string or as a list of lines."""
    return "".join(str(line) for line in lines) if isinstance(lines, list) else str(lines)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
