"""Chunking: splits a text into searchable pieces with exact line and character positions.

A new piece begins at a heading or a definition, or when the limit of lines or characters is reached: code has
short lines, prose may have one line per page. Every character that is not white space is in exactly one
piece.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

LINES = 50
CHARACTERS = 900
"""About 200 tokens; together with its heading a piece still fits the embedder's 256 tokens."""
HEADING = 200
"""Characters; longer headings are cut."""
MIN_CHARACTERS = 40
"""A heading begins a new piece only after this many characters, so two headings in a row stay together."""

_MARKDOWN = frozenset({"md", "markdown", "mdx", "rst", "adoc", "txt", ""})
_CODE = frozenset(
    """
    awk bash bat c cc clj cljs cmake cpp cs css cu cxx dart ex exs erl f90 fs go gradle groovy h hpp hrl hs
    java jl js jsx kt kts less lisp lua m mjs ml mm nim pas php pl pm proto ps1 py pyi pyx r rb rs scala scss
    sh sol sql svelte swift tcl tf ts tsx v vb vue zig zsh
    """.split()  # noqa: SIM905 - a paragraph reads better than seventy quoted words
)
_HEADING = re.compile(r"(#{1,6})\s")
_DEFINITION = re.compile(
    r"^\s{0,8}(?:export\s+|default\s+|public\s+|private\s+|protected\s+|static\s+|abstract\s+|final\s+|async\s+|pub(?:\([^)]*\))?\s+|unsafe\s+|override\s+)*"
    r"(?:def|class|function\*?|fn|func|fun|struct|enum|trait|impl|interface|type|module|namespace|object|record)\s+"
    r"(?:\([^)]*\)\s*)?([A-Za-z_$][\w$.:]*)"
)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # a line ends with \n and with nothing else, as editors count
PARSE_LIMIT = 500_000
"""Characters; longer Python files are not parsed: a syntax tree takes a hundred times as much memory."""
HeadingFinder = Callable[[int, str], str | None]
"""Takes a line number and the line; returns the heading that begins there, or None."""
_SENTENCE = re.compile(r"(?<=[.!?。！？;])\s+|(?<=[。！？])|\n")


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A part of a text and its position. Lines count from 1, characters from 0; `end_char` is exclusive."""

    content: str
    heading: str
    start_line: int
    end_line: int
    start_char: int
    end_char: int


class _Unit(NamedTuple):
    """A line, or a part of a line that is too long for one piece."""

    line: int
    start: int
    end: int
    heading: str | None = None
    """The heading that begins here."""


def ending_of(path: str) -> str:
    name = path.rpartition("/")[2]
    return name.rpartition(".")[2].lower() if "." in name else ""


@lru_cache(maxsize=20_000)
def is_code(path: str) -> bool:
    """True if the path has the extension of a programming language; every other file is treated as prose."""
    return ending_of(path) in _CODE


def chunk(
    text: str, extension: str, lines: int = LINES, characters: int = CHARACTERS
) -> tuple[TextPiece, ...]:
    """All pieces of a text, in order."""
    return tuple(pieces(text, extension, lines, characters))


def pieces(
    text: str, extension: str, lines: int = LINES, characters: int = CHARACTERS
) -> Iterator[TextPiece]:
    """Yields the pieces one at a time: a text of millions of lines is never held as a list."""
    for group in _groups(_units(text, _heading_finder(text, extension), characters), lines, characters):
        if piece := _piece(text, group):
            yield piece


def _units(text: str, find_heading: HeadingFinder, characters: int) -> Iterator[_Unit]:
    for number, match in enumerate(_LINE.finditer(text), start=1):
        start, end = match.span()
        heading = find_heading(number, match[0])
        if end - start <= characters:
            yield _Unit(number, start, end, heading)
        else:
            first, *rest = _split_line(text, number, start, end, characters)
            yield first._replace(heading=heading)
            yield from rest


def _split_line(text: str, number: int, start: int, end: int, characters: int) -> Iterator[_Unit]:
    """Splits a long line after a sentence, else at a space, else at the character limit."""
    while end - start > characters:
        window = text[start : start + characters]
        cuts = [match.end() for match in _SENTENCE.finditer(window) if match.end() > characters // 3]
        space = window.rfind(" ", characters // 2)
        cut = cuts[-1] if cuts else space + 1 if space > 0 else characters
        yield _Unit(number, start, start + cut)
        start += cut
    yield _Unit(number, start, end)


def _heading_finder(text: str, extension: str) -> HeadingFinder:
    if extension in _MARKDOWN:
        return _MarkdownHeadings().find
    if extension in ("py", "pyi") and len(text) <= PARSE_LIMIT and (names := _python_names(text)) is not None:
        return lambda number, line: names.get(number)
    return _definition_name


class _MarkdownHeadings:
    """Markdown headings with their parent headings, as in "Install / Linux".

    A # inside a code fence is ignored.
    """

    def __init__(self) -> None:
        self._path: list[tuple[int, str]] = []
        self._in_fence = False

    def find(self, number: int, line: str) -> str | None:
        if line.lstrip().startswith(("```", "~~~")):
            self._in_fence = not self._in_fence
        match = None if self._in_fence else _HEADING.match(line)
        name = _heading_name(line[len(match[1]) :]) if match else ""
        if match is None or not name:
            return None
        depth = len(match[1])
        self._path = [*((d, parent) for d, parent in self._path if d < depth), (depth, name)]
        return " / ".join(name for _, name in self._path)


def _heading_name(heading: str) -> str:
    """The heading without closing # signs. It is cut because every piece below repeats it."""
    return heading.strip().rstrip("#").rstrip()[:HEADING]


def _python_names(text: str) -> dict[int, str] | None:
    """The qualified name of each function and class by its first line;

    None if the text is not valid Python.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    names: dict[int, str] = {}
    stack: list[tuple[ast.AST, str]] = [(tree, "")]
    while stack:
        node, outer = stack.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{outer}.{child.name}"[:HEADING] if outer else child.name[:HEADING]
                first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
                names[first] = name
                if isinstance(child, ast.ClassDef):
                    stack.append((child, name))
    return names


def _definition_name(number: int, line: str) -> str | None:
    match = _DEFINITION.match(line[:300])
    return match[1] if match else None


class _Group(NamedTuple):
    first: _Unit
    last: _Unit
    heading: str


def _groups(units: Iterable[_Unit], lines: int, characters: int) -> Iterator[_Group]:
    first = last = None
    heading, size = "", 0
    for unit in units:
        length = unit.end - unit.start
        if first and last:
            is_full = size + length > characters or unit.line - first.line >= lines
            if is_full or (unit.heading is not None and size >= MIN_CHARACTERS):
                yield _Group(first, last, heading)
                first, size = None, 0
        if unit.heading is not None:
            heading = unit.heading
        first, last = first or unit, unit
        size += length
    if first and last:
        yield _Group(first, last, heading)


def _piece(text: str, group: _Group) -> TextPiece | None:
    """The group's text without surrounding white space; None if it is all white space."""
    start, end = group.first.start, group.last.end
    raw = text[start:end]
    content = raw.strip()
    if not content:
        return None
    leading = len(raw) - len(raw.lstrip())
    start_line = group.first.line + raw[:leading].count("\n")
    start += leading
    end = start + len(content)
    return TextPiece(content, group.heading, start_line, start_line + content.count("\n"), start, end)
