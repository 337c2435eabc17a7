"""The architecture rules of docs/house.md: allowed imports, and names that a module may not have."""

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
LEFTOVER_NAMES = ("util", "utils", "helper", "helpers", "common", "misc", "manager", "service", "handler")

# Packages that alone may import something: the contract names all others.
OWNERS = {
    "web-framework": {"server"},
    "sql": {"store"},
    "model-clients": {"providers"},
    "http-clients": {"providers", "tools", "cli", "__main__"},
}


@pytest.mark.parametrize("contract", OWNERS)
def test_each_import_contract_covers_every_package_except_its_owners(contract: str) -> None:
    covered = {name.removeprefix("tertulia.") for name in CONTRACTS[contract]["source_modules"]}
    assert covered == rooms() - OWNERS[contract]


@pytest.mark.parametrize("room", PURE)
def test_a_pure_package_imports_only_the_standard_library_and_tertulia(room: str) -> None:
    foreign = {
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in (PACKAGE / room).rglob("*.py")
        for name in imports(path)
        if name.split(".")[0] not in sys.stdlib_module_names | {"tertulia"}
    }
    assert foreign == set()


def test_every_module_has_a_docstring() -> None:
    undocumented = [
        str(path.relative_to(PACKAGE)) for path in modules() if not ast.get_docstring(parsed(path))
    ]
    assert undocumented == []


def test_no_module_has_a_name_for_leftovers() -> None:
    names = {path: path.parent.name if path.stem == "__init__" else path.stem for path in modules()}
    leftovers = [
        str(path.relative_to(PACKAGE))
        for path, name in names.items()
        if name.split("_")[-1] in LEFTOVER_NAMES
    ]
    assert leftovers == []


def rooms() -> set[str]:
    layers = CONTRACTS["rooms"]["layers"]
    return {room.strip() for layer in layers for room in layer.split("|")}


def modules() -> Iterator[Path]:
    return (path for path in PACKAGE.rglob("*.py") if "versions" not in path.parts)


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
