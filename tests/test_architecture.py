"""The rules of the house (docs/house.md): who may import whom, and which words a file may not be called."""

import ast
import sys
import tomllib
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

# Rooms that own something nobody else may touch: the contract names everyone but them.
OWNERS = {
    "web-framework": {"server"},
    "sql": {"store"},
    "model-clients": {"providers"},
    "http-clients": {"providers", "tools", "cli", "__main__"},
}


@pytest.mark.parametrize("contract", OWNERS)
def test_a_contract_binds_every_room_but_the_owners(contract: str) -> None:
    bound = {name.removeprefix("tertulia.") for name in CONTRACTS[contract]["source_modules"]}
    assert bound == rooms() - OWNERS[contract]


@pytest.mark.parametrize("room", PURE)
def test_a_pure_room_imports_the_standard_library_and_its_own_house_only(room: str) -> None:
    foreign = {
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in (PACKAGE / room).rglob("*.py")
        for name in imports(path)
        if name.split(".")[0] not in sys.stdlib_module_names | {"tertulia"}
    }
    assert foreign == set()


def test_every_module_says_what_it_is_for_in_its_first_line() -> None:
    silent = [str(path.relative_to(PACKAGE)) for path in modules() if not ast.get_docstring(parsed(path))]
    assert silent == []


def test_no_module_is_a_drawer_for_leftovers() -> None:
    names = {path: path.parent.name if path.stem == "__init__" else path.stem for path in modules()}
    drawers = [
        str(path.relative_to(PACKAGE)) for path, name in names.items() if name.split("_")[-1] in DRAWERS
    ]
    assert drawers == []


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


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
