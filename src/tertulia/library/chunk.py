"""Chunking: text in, pieces with their exact place out; headings and definitions are where pieces begin.

A piece is at most so many lines and so many characters, whichever ends first: code has short lines, prose may
have one line to a page. Every character that is not white space lies in exactly one piece.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

LINES = 50
CHARACTERS = 900
"""About 200 tokens: what the embedder reads of a piece, with its heading."""
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
_HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*\s*$")
_DEFINITION = re.compile(
    r"^\s{0,8}(?:export\s+|default\s+|public\s+|private\s+|protected\s+|static\s+|abstract\s+|final\s+|async\s+|pub(?:\([^)]*\))?\s+|unsafe\s+|override\s+)*"
    r"(?:def|class|function\*?|fn|func|fun|struct|enum|trait|impl|interface|type|module|namespace|object|record)\s+"
    r"(?:\([^)]*\)\s*)?([A-Za-z_$][\w$.:]*)"
)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # a line ends with \n and with nothing else, as editors count
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


@dataclass(frozen=True, slots=True)
class _Unit:
    """A line, or a part of a line that is too long."""

    line: int
    start: int
    end: int
    begins: str | None = None
    """The heading that begins here."""

    @property
    def size(self) -> int:
        return self.end - self.start


def ending_of(path: str) -> str:
    name = path.rpartition("/")[2]
    return name.rpartition(".")[2].lower() if "." in name else ""


@lru_cache(maxsize=20_000)
def is_code(path: str) -> bool:
    """By its name; all else is read as prose."""
    return ending_of(path) in _CODE


def chunk(text: str, ending: str, lines: int = LINES, characters: int = CHARACTERS) -> tuple[Piece, ...]:
    """The pieces of a text, in order."""
    units = _with_headings(text, ending, list(_units(text, characters)))
    return tuple(piece for group in _groups(units, lines, characters) if (piece := _piece(text, group)))


def _units(text: str, characters: int) -> Iterator[_Unit]:
    position = 0
    for number, line in enumerate(_LINE.findall(text), start=1):
        end = position + len(line)
        if len(line) <= characters:
            yield _Unit(number, position, end)
        else:
            yield from _parts(text, number, position, end, characters)
        position = end


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


def _with_headings(text: str, ending: str, units: list[_Unit]) -> list[_Unit]:
    begins = _markdown(text) if ending in _MARKDOWN else _python(text) if ending in ("py", "pyi") else None
    begins = _definitions(text) if begins is None else begins
    seen: set[int] = set()
    marked = []
    for unit in units:
        is_first = unit.line not in seen
        seen.add(unit.line)
        marked.append(replace(unit, begins=begins[unit.line]) if is_first and unit.line in begins else unit)
    return marked


def _markdown(text: str) -> dict[int, str]:
    """Headings with those above them: "Install / Linux"; a # inside a fence is no heading."""
    begins: dict[int, str] = {}
    path: list[tuple[int, str]] = []
    in_fence = False
    for number, line in enumerate(text.split("\n"), start=1):
        if line.lstrip().startswith(("```", "~~~")):
            in_fence = not in_fence
        match = None if in_fence else _HEADING.match(line)
        if match:
            depth = len(match[1])
            path = [*((d, name) for d, name in path if d < depth), (depth, match[2])]
            begins[number] = " / ".join(name for _, name in path)
    return begins


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
                name = f"{outer}.{child.name}" if outer else child.name
                first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
                begins[first] = name
                if isinstance(child, ast.ClassDef):
                    waiting.append((child, name))
    return begins


def _definitions(text: str) -> dict[int, str]:
    found = ((number, _DEFINITION.match(line[:300])) for number, line in enumerate(text.split("\n"), start=1))
    return {number: match[1] for number, match in found if match}


@dataclass(frozen=True, slots=True)
class _Group:
    units: tuple[_Unit, ...]
    heading: str


def _groups(units: list[_Unit], lines: int, characters: int) -> Iterator[_Group]:
    current: list[_Unit] = []
    heading, size = "", 0
    for unit in units:
        is_full = bool(current) and (size + unit.size > characters or unit.line - current[0].line >= lines)
        if current and (is_full or (unit.begins is not None and size >= LEAST)):
            yield _Group(tuple(current), heading)
            current, size = [], 0
        if unit.begins is not None:
            heading = unit.begins
        current.append(unit)
        size += unit.size
    if current:
        yield _Group(tuple(current), heading)


def _piece(text: str, group: _Group) -> Piece | None:
    """Without the white space around it; None when there is nothing else."""
    start, end = group.units[0].start, group.units[-1].end
    raw = text[start:end]
    content = raw.strip()
    if not content:
        return None
    lead = len(raw) - len(raw.lstrip())
    start_line = group.units[0].line + raw[:lead].count("\n")
    start += lead
    end = start + len(content)
    return Piece(content, group.heading, start_line, start_line + content.count("\n"), start, end)
