"""Chunking: text in, pieces with their exact place out; headings and definitions are where pieces begin.

A piece is at most so many lines and so many characters, whichever ends first: code has short lines, prose may
have one line to a page. Every character that is not white space lies in exactly one piece.
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
"""About 200 tokens: what the embedder reads of a piece, with its heading."""
HEADING = 200
"""Characters of a heading's name."""
LEAST = 40
"""A beginning shorter than this does not stand alone: a heading right above another one."""

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
PARSED = 500_000
"""Characters of Python up to which it is parsed: the tree takes a hundred times as much."""
Begins = Callable[[int, str], str | None]
"""Given a line and its number: the heading that begins there."""
_SENTENCE = re.compile(r"(?<=[.!?。！？;])\s+|(?<=[。！？])|\n")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text and where it stands; lines are counted from 1, characters from 0, the end excluded."""

    content: str
    heading: str
    start_line: int
    end_line: int
    start_char: int
    end_char: int


class _Unit(NamedTuple):
    """A line, or a part of a line that is too long."""

    line: int
    start: int
    end: int
    begins: str | None = None
    """The heading that begins here."""


def ending_of(path: str) -> str:
    name = path.rpartition("/")[2]
    return name.rpartition(".")[2].lower() if "." in name else ""


@lru_cache(maxsize=20_000)
def is_code(path: str) -> bool:
    """By its name; all else is read as prose."""
    return ending_of(path) in _CODE


def chunk(text: str, ending: str, lines: int = LINES, characters: int = CHARACTERS) -> tuple[Piece, ...]:
    """The pieces of a text, in order."""
    return tuple(pieces(text, ending, lines, characters))


def pieces(text: str, ending: str, lines: int = LINES, characters: int = CHARACTERS) -> Iterator[Piece]:
    """One after the other: a large text has millions of lines, and no more than a piece of them is held."""
    for group in _groups(_units(text, _beginnings(text, ending), characters), lines, characters):
        if piece := _piece(text, group):
            yield piece


def _units(text: str, begins: Begins, characters: int) -> Iterator[_Unit]:
    for number, match in enumerate(_LINE.finditer(text), start=1):
        start, end = match.span()
        heading = begins(number, match[0])
        if end - start <= characters:
            yield _Unit(number, start, end, heading)
        else:
            first, *rest = _parts(text, number, start, end, characters)
            yield first._replace(begins=heading)
            yield from rest


def _parts(text: str, number: int, start: int, end: int, characters: int) -> Iterator[_Unit]:
    """A long line, cut between sentences, else between words, else where it must be."""
    while end - start > characters:
        window = text[start : start + characters]
        cuts = [match.end() for match in _SENTENCE.finditer(window) if match.end() > characters // 3]
        space = window.rfind(" ", characters // 2)
        cut = cuts[-1] if cuts else space + 1 if space > 0 else characters
        yield _Unit(number, start, start + cut)
        start += cut
    yield _Unit(number, start, end)


def _beginnings(text: str, ending: str) -> Begins:
    if ending in _MARKDOWN:
        return _Headings().begins
    if ending in ("py", "pyi") and len(text) <= PARSED and (defined := _python(text)) is not None:
        return lambda number, line: defined.get(number)
    return _definition


class _Headings:
    """Headings with those above them: "Install / Linux"; a # inside a fence is no heading."""

    def __init__(self) -> None:
        self._path: list[tuple[int, str]] = []
        self._in_fence = False

    def begins(self, number: int, line: str) -> str | None:
        if line.lstrip().startswith(("```", "~~~")):
            self._in_fence = not self._in_fence
        match = None if self._in_fence else _HEADING.match(line)
        name = _name(line[len(match[1]) :]) if match else ""
        if match is None or not name:
            return None
        depth = len(match[1])
        self._path = [*((d, above) for d, above in self._path if d < depth), (depth, name)]
        return " / ".join(name for _, name in self._path)


def _name(heading: str) -> str:
    """Without the marks that may close it, and no more of it than every piece below can carry."""
    return heading.strip().rstrip("#").rstrip()[:HEADING]


def _python(text: str) -> dict[int, str] | None:
    """Functions and classes by the syntax tree; None when the text is not valid Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    begins: dict[int, str] = {}
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, outer = waiting.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{outer}.{child.name}"[:HEADING] if outer else child.name[:HEADING]
                first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
                begins[first] = name
                if isinstance(child, ast.ClassDef):
                    waiting.append((child, name))
    return begins


def _definition(number: int, line: str) -> str | None:
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
            if is_full or (unit.begins is not None and size >= LEAST):
                yield _Group(first, last, heading)
                first, size = None, 0
        if unit.begins is not None:
            heading = unit.begins
        first, last = first or unit, unit
        size += length
    if first and last:
        yield _Group(first, last, heading)


def _piece(text: str, group: _Group) -> Piece | None:
    """Without the white space around it; None when there is nothing else."""
    start, end = group.first.start, group.last.end
    raw = text[start:end]
    content = raw.strip()
    if not content:
        return None
    lead = len(raw) - len(raw.lstrip())
    start_line = group.first.line + raw[:lead].count("\n")
    start += lead
    end = start + len(content)
    return Piece(content, group.heading, start_line, start_line + content.count("\n"), start, end)
