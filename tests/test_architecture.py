"""The rules of docs/architecture.md: which room may import which, and how modules and classes are named."""

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "tertulia"
CONTRACTS = {
    contract["id"]: contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
}

PURE = ("core", "context", "council")
DRAWERS = ("util", "utils", "helper", "helpers", "common", "misc", "manager", "service", "handler")

# Module names that were given up for the field's terms: circuit_breaker was `rest`, transport was `wire`.
RETIRED = re.compile(
    "answers|assets|attached|briefing|briefs|builtin|builtin_server|charges|cleaning|clients|counting|data|door"
    "|encoding|everyday|faults|forget_found|forget_shown|fuse|gather|guard|herald|house|houses|incoming|keeping"
    "|lookup|markup|marks|material|means|names|nearness|office|opening|order|orders|outcome|pages|patience"
    "|place|plain|prepare|ranges|reading|rest|rights|seam|seating|seats|serving|sheets|shelves|slides"
    "|speakers|speaking|stream|survey|sweeps|telling|texts|turnstile|wire|words?|writer|xml|zips"
)
# A docstring begins with the term that one would search for, not with a clause about it.
CLAUSES = {"Of", "Those", "What", "Who", "Whoever", "Where", "One"}

# Rooms that own something nobody else may touch: the contract names everyone but them.
OWNERS = {
    "web-framework": {"server"},
    "sql": {"store"},
    "model-clients": {"providers"},
    "http-clients": {"providers", "tools", "cli", "__main__"},
}


@pytest.mark.parametrize("contract", OWNERS)
def test_an_import_contract_covers_every_room_except_the_owners(contract: str) -> None:
    bound = {name.removeprefix("tertulia.") for name in CONTRACTS[contract]["source_modules"]}
    assert bound == rooms() - OWNERS[contract]


@pytest.mark.parametrize("room", PURE)
def test_a_pure_room_imports_only_the_standard_library_and_this_package(room: str) -> None:
    foreign = {
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in (PACKAGE / room).rglob("*.py")
        for name in imports(path)
        if name.split(".")[0] not in sys.stdlib_module_names | {"tertulia"}
    }
    assert foreign == set()


def test_every_module_has_a_docstring() -> None:
    silent = [str(path.relative_to(PACKAGE)) for path in modules() if not ast.get_docstring(parsed(path))]
    assert silent == []


def test_no_module_is_a_drawer_for_leftovers() -> None:
    names = {path: path.parent.name if path.stem == "__init__" else path.stem for path in modules()}
    drawers = [
        str(path.relative_to(PACKAGE)) for path, name in names.items() if name.split("_")[-1] in DRAWERS
    ]
    assert drawers == []


def test_no_module_has_a_retired_name() -> None:
    retired = [str(path.relative_to(PACKAGE)) for path in modules() if RETIRED.fullmatch(path.stem)]
    assert retired == []


def test_each_class_name_occurs_once() -> None:
    counts = Counter(name for path in modules() for name in classes(path))
    assert [name for name, count in counts.items() if count > 1] == []


def test_no_module_docstring_begins_with_a_clause() -> None:
    first_words = {
        str(path.relative_to(PACKAGE)): re.split(r"\W", ast.get_docstring(parsed(path)) or "", maxsplit=1)[0]
        for path in modules()
    }
    assert {path: word for path, word in first_words.items() if word in CLAUSES} == {}


def rooms() -> set[str]:
    layers = CONTRACTS["rooms"]["layers"]
    return {room.strip() for layer in layers for room in layer.split("|")}


def modules() -> Iterator[Path]:
    return (path for path in PACKAGE.rglob("*.py") if "versions" not in path.parts)


def imports(path: Path) -> Iterator[str]:
    for found in ast.walk(parsed(path)):
        if isinstance(found, ast.Import):
            yield from (alias.name for alias in found.names)
        elif isinstance(found, ast.ImportFrom) and found.module:
            yield found.module


def classes(path: Path) -> Iterator[str]:
    return (node.name for node in ast.walk(parsed(path)) if isinstance(node, ast.ClassDef))


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
