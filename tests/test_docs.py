"""Documentation: the pages list every setting, command, route and error, and name only code that exists."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from scripts import reference
from tertulia import council
from tertulia.core import errors
from tertulia.core.errors import CannotStart, TertuliaError
from tertulia.providers.interface import ErrorCode, ProviderError
from tertulia.server.errors import status_of

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])
ERRORS = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", reference.pages(), ids=name)
def test_the_generated_parts_of_a_page_are_fresh(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == reference.fresh(page), "Run `make docs` and commit the result."


def test_every_generated_part_is_on_a_page() -> None:
    written = {
        part[2] for page in reference.pages() for part in reference.MARK.finditer(page.read_text("utf-8"))
    }
    assert written == set(reference.PARTS)


def test_every_environment_variable_of_the_code_is_on_the_settings_page() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    page = (DOCS / "running" / "settings.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\bTERTULIA_[A-Z_]+\b", code)) <= set(re.findall(r"\bTERTULIA_[A-Z_]+\b", page))


@pytest.mark.parametrize("kind", [*(kind for kind in vars(errors).values() if isinstance(kind, type))])
def test_every_error_is_on_the_errors_page(kind: type) -> None:
    if not issubclass(kind, TertuliaError) or kind is TertuliaError:
        return
    error = kind("")
    row = (
        f"| `{error.code}` | "
        if issubclass(kind, CannotStart)
        else f"| `{error.code}` | {status_of(error)} |"
    )
    assert row in ERRORS


@pytest.mark.parametrize("code", get_args(ErrorCode))
def test_every_provider_error_is_on_the_errors_page(code: ErrorCode) -> None:
    replies = ERRORS[ERRORS.index("## When a reply") :]
    assert f"| `{ProviderError(code, '').code}` |" in replies


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_of_a_page_has_a_target(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_module_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(r"`([\w-]+(?:/[\w.-]+)+\.(?:py|ts|svelte))`", page.read_text(encoding="utf-8"))
    folders = (ROOT, ROOT / "src" / "tertulia", ROOT / "web" / "src" / "lib")
    assert [path for path in named if not any((folder / path).is_file() for folder in folders)] == []


FUNCTION = re.compile(r"`([\w/-]+\.py):([A-Za-z_][\w.]*)`")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_function_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    missing = [span for span in FUNCTION.findall(text) if span[1] not in names_in(module_at(span[0]))]
    assert missing == []


def module_at(path: str) -> Path:
    """A path on a page begins at the root of the repository or at the package."""
    return ROOT / path if (ROOT / path).is_file() else ROOT / "src" / "tertulia" / path


def names_in(module: Path) -> set[str]:
    """The functions, classes and constants of a module; methods and fields as `Class.name`."""
    return set(names_of(ast.parse(module.read_text(encoding="utf-8")).body)) if module.is_file() else set()


def names_of(body: list[ast.stmt]) -> Iterator[str]:
    for statement in body:
        match statement:
            case ast.ClassDef(name=owner, body=members):
                yield owner
                yield from (f"{owner}.{member}" for member in names_of(members))
            case ast.FunctionDef(name=function) | ast.AsyncFunctionDef(name=function):
                yield function
            case ast.Assign(targets=[ast.Name(id=constant)]) | ast.AnnAssign(target=ast.Name(id=constant)):
                yield constant


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    paths = re.findall(r"\btests/[\w./-]*\w", page.read_text(encoding="utf-8"))
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_room_is_on_the_architecture_page() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    drawing = page.split("```")[1]
    rooms = {path.stem for path in (ROOT / "src" / "tertulia").glob("[!_]*") if path.name != "py.typed"}
    assert rooms - set(re.findall(r"\w+", drawing)) == set()


GLOSSARY = (DOCS / "glossary.md").read_text(encoding="utf-8")
TERMS = re.findall(r"\*\*([^*]+)\*\*", GLOSSARY)

# Modules of core that hold a technique and no domain word.
TECHNIQUES = {"closing", "ids", "lengths", "markdown", "quoting", "serialization", "tasks", "text"}


def test_each_glossary_word_has_one_meaning() -> None:
    assert sorted({term for term in TERMS if TERMS.count(term) > 1}) == []


@pytest.mark.parametrize("mode", sorted(council.MODES))
def test_each_mode_is_in_the_glossary(mode: str) -> None:
    assert mode.replace("_", " ") in TERMS


def test_each_domain_module_has_a_word_in_the_glossary() -> None:
    modules = {path.stem for path in (ROOT / "src" / "tertulia" / "core").glob("[!_]*.py")} - TECHNIQUES
    words = set(re.findall(r"\w+", GLOSSARY.lower()))
    assert [module for module in sorted(modules) if not set(stems(module)) & words] == []


def stems(module: str) -> Iterator[str]:
    """`step_instructions` is found as step or instructions, `votes` as vote."""
    for word in module.split("_"):
        yield word
        yield word.removesuffix("s")


def test_every_make_target_that_a_page_names_exists() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([a-z]+)", text, re.MULTILINE)) <= targets


CASE = re.compile(r"\((?:AZ|SE|UP|SQ|XS|EX|SF|TM|SP|PF|CR|CO|LO)\b")


def test_the_security_page_names_every_test_of_a_security_case() -> None:
    page = (DOCS / "security.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/\S+\.py)`", page))
    assert [path for path in sorted(named) if not (ROOT / path).is_file()] == []
    tests = {
        path: path.read_text(encoding="utf-8").partition("\n")[0] for path in ROOT.glob("tests/*/test_*.py")
    }
    assert {name(path) for path, first in tests.items() if CASE.search(first)} <= named
