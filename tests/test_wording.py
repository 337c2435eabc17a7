"""The server and the docs speak plainly: words that were given up for plainer ones do not come back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import tertulia

ROOM = Path(tertulia.__file__).parent
RETIRED = re.compile(
    r"\b(minds?|the house|(at|of) the table|seat someone|sits? down|fell silent|line dropped|read anew"
    r"|build it anew|is given a rest|distantly alike|words beside it|bring (it|this) back|brought back from"
    r"|bring together|brought together|looked up|called off|broke on our side"
    r"|went wrong here|at hand|let go with|would tell (it|them)|ask anew|instead of going on|can speak for"
    r"|told to think|table that is saved|went with a message|was not taken|nobody here|lie over each other"
    r"|someone else said|own lane|the chair|were? looked for)\b",
    re.IGNORECASE,
)


def test_no_sentence_of_the_server_has_a_retired_word() -> None:
    found = [f"{path.relative_to(ROOM)}: {text}" for path in spoken() for text in sentences(path)]
    assert len(found) > 300
    assert [each for each in found if RETIRED.search(each)] == []


GIVEN_UP = re.compile(
    r"\b(minds?|what if|always in context|context receipt|at the table|brought along|(bring|brought|bringing)"
    r" (it |one |a branch )?back|brings it together|seated|who sits|glyph|fell silent|try retrieval)\b",
    re.IGNORECASE,
)


def test_no_page_of_the_docs_names_what_the_interface_calls_otherwise() -> None:
    """The list of routes is written from their names, which are promises to programs."""
    root = ROOM.parent.parent
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    pages.remove(root / "docs" / "reference" / "api.md")
    assert len(pages) > 20
    lines = [f"{page.name}: {line}" for page in pages for line in page.read_text("utf-8").splitlines()]
    assert [line for line in lines if GIVEN_UP.search(line)] == []


def spoken() -> list[Path]:
    """All modules, except that sentences of the council are instructions for models, and sentences of the
    migrations are read from the database."""
    others = (ROOM / "council", ROOM / "store" / "migrations" / "versions")
    modules = sorted(ROOM.rglob("*.py"))
    return [path for path in modules if path.parent not in others or path.stem == "__init__"]


def sentences(path: Path) -> Iterator[str]:
    """Strings that read like a sentence, without docstrings: errors, reasons, help texts."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = read(node) if id(node) not in alone else ""
        if re.search(r"\w \w+ \w", text):
            yield text


def read(node: ast.AST) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(read(part) or "…" for part in parts)
    return ""
