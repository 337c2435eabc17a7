"""Plain wording: retired words do not come back in messages of the server or in the docs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import tertulia

PACKAGE = Path(tertulia.__file__).parent
RETIRED = re.compile(
    r"\b(minds?|the house|(at|of) the table|seat someone|sits? down|fell silent|line dropped|read anew"
    r"|build it anew|is given a rest|distantly alike|words beside it|bring (it|this) back|brought back from"
    r"|bring together|brought together|looked up|called off|broke on our side"
    r"|went wrong here|at hand|let go with|would tell (it|them)|ask anew|instead of going on|can speak for"
    r"|told to think|table that is saved|went with a message|was not taken|nobody here|lie over each other"
    r"|someone else said|own lane|the chair|were? looked for)\b",
    re.IGNORECASE,
)


def test_no_message_of_the_server_has_a_retired_word() -> None:
    messages = [
        f"{path.relative_to(PACKAGE)}: {text}" for path in modules_with_messages() for text in sentences(path)
    ]
    assert len(messages) > 300
    assert [message for message in messages if RETIRED.search(message)] == []


RETIRED_IN_DOCS = re.compile(
    r"\b(minds?|what if|always in context|context receipt|at the table|brought along|(bring|brought|bringing)"
    r" (it |one |a branch )?back|brings it together|seated|who sits|glyph|fell silent|try retrieval)\b",
    re.IGNORECASE,
)


def test_no_page_of_the_docs_has_a_retired_term() -> None:
    """The generated list of routes is exempt, because route names are part of the API."""
    root = PACKAGE.parent.parent
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    pages.remove(root / "docs" / "reference" / "api.md")
    assert len(pages) > 20
    lines = [f"{page.name}: {line}" for page in pages for line in page.read_text("utf-8").splitlines()]
    assert [line for line in lines if RETIRED_IN_DOCS.search(line)] == []


def modules_with_messages() -> list[Path]:
    """All modules except the council's, whose strings are instructions for models."""
    council = PACKAGE / "council"
    return [
        path for path in sorted(PACKAGE.rglob("*.py")) if path.parent != council or path.stem == "__init__"
    ]


def sentences(path: Path) -> Iterator[str]:
    """Strings that read like a sentence, without docstrings: errors, reasons, help texts."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = text_of(node) if id(node) not in alone else ""
        if re.search(r"\w \w+ \w", text):
            yield text


def text_of(node: ast.AST) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(text_of(part) or "…" for part in parts)
    return ""
