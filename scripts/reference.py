"""Writes the parts of the docs that come from the code, between a mark that names them and `<!-- end -->`."""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperArgument, TyperGroup, TyperOption

from tertulia import cli
from tertulia.providers.endpoints import ENDPOINTS
from tertulia.server.asgi import bare
from tertulia.settings import SETTINGS

DOCS = Path(__file__).parent.parent / "docs"
MARK = re.compile(r"(<!-- (\w+): written by `make docs` -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    for page in pages():
        page.write_text(fresh(page), encoding="utf-8")


def pages() -> list[Path]:
    """The pages that have such parts."""
    return [page for page in sorted(DOCS.rglob("*.md")) if MARK.search(page.read_text(encoding="utf-8"))]


def fresh(page: Path) -> str:
    """The page as it should be."""
    return MARK.sub(lambda part: f"{part[1]}{PARTS[part[2]]()}{part[3]}", page.read_text(encoding="utf-8"))


def settings() -> str:
    rows = ((f"`{one.variable}`", f"`{one.default}`" if one.default else "", one.help) for one in SETTINGS)
    return table(("variable", "default", "what it is for"), rows)


def providers() -> str:
    rows = (
        (one.name, " or ".join(f"`{name}`" for name in one.key_variables), f"`{one.base_url}`")
        for one in ENDPOINTS
    )
    return table(("provider", "key", "address"), rows)


def commands() -> str:
    return "".join(command(path, one) for path, one in walk("tertulia", typer.main.get_command(cli.app)))


def walk(path: str, one: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(one, TyperGroup):
        yield path, one
        return
    for name, inner in one.commands.items():
        yield from walk(f"{path} {name}", inner)


def command(path: str, one: Any) -> str:
    arguments = [given for given in one.params if isinstance(given, TyperArgument)]
    options = [given for given in one.params if isinstance(given, TyperOption)]
    usage = " ".join([path, *(given.name.upper() for given in arguments)])
    rows = [
        *((f"`{given.name.upper()}`", given.help or "") for given in arguments),
        *((", ".join(f"`{name}`" for name in given.opts), given.help or "") for given in options),
    ]
    said = f"\n### `{usage}`\n\n{one.help}\n"
    return said + ("\n" + table(("given", "what it is for"), rows) if rows else "")


def routes() -> str:
    paths = bare().openapi()["paths"]
    rows = (
        (f"`{method.upper()}`", f"`{path}`", about(operation))
        for path, operations in sorted(paths.items())
        for method, operation in operations.items()
    )
    return table(("method", "path", "what it does"), rows)


def about(operation: dict[str, Any]) -> str:
    """Its name in words, and what it says of itself beyond that."""
    return " ".join([operation["summary"].capitalize() + ".", *operation.get("description", "").split()])


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


PARTS: dict[str, Callable[[], str]] = {
    "settings": settings,
    "providers": providers,
    "commands": commands,
    "routes": routes,
}

if __name__ == "__main__":
    main()
