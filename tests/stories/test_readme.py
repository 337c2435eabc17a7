"""README.md lists every story with the first line of its docstring."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
ROW = re.compile(r"^\| (?P<promise>.+?) \| \[[\w ]+\]\((?P<path>[\w./]+)\) \|$", re.MULTILINE)
TESTS = HERE.parent
BESIDE = (
    "engine/test_kills.py",
    "engine/test_durability.py",
    "engine/test_nodes.py",
    "engine/test_recovery.py",
    "engine/test_live.py",
)
"""Stories that need more than HTTP."""


def promises() -> dict[Path, str]:
    listed = ROW.finditer((HERE / "README.md").read_text(encoding="utf-8"))
    return {(HERE / row["path"]).resolve(): row["promise"] for row in listed}


def stories() -> set[Path]:
    return {*HERE.glob("test_*.py"), *(TESTS / path for path in BESIDE)} - {Path(__file__)}


def first_line(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()[0]


def test_the_readme_lists_exactly_the_existing_stories() -> None:
    assert set(promises()) == {path.resolve() for path in stories()}


def test_each_promise_in_the_readme_is_the_first_line_of_its_story() -> None:
    assert promises() == {path.resolve(): first_line(path) for path in stories()}


def test_every_test_name_of_a_story_is_a_sentence() -> None:
    names = [
        name
        for path in stories()
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.M)
    ]
    assert [name for name in names if name.count("_") < 4] == []
    assert len(names) > 100
