"""The pages say what the code does: every setting, command, route and error has its line."""

import re
from pathlib import Path
from typing import get_args

import pytest

from scripts import reference
from tertulia.core import errors
from tertulia.core.errors import CannotStart, TertuliaError
from tertulia.providers.interface import ErrorCode, ProviderError
from tertulia.server.errors import status_of

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md"])
ERRORS = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", reference.pages(), ids=name)
def test_what_comes_from_the_code_is_fresh(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == reference.fresh(page), "Run `make docs` and commit the result."


def test_every_part_that_can_be_written_stands_on_a_page() -> None:
    written = {
        part[2] for page in reference.pages() for part in reference.MARK.finditer(page.read_text("utf-8"))
    }
    assert written == set(reference.PARTS)


def test_every_variable_the_code_reads_is_on_the_settings_page() -> None:
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
def test_every_way_a_reply_can_fail_is_on_the_errors_page(code: ErrorCode) -> None:
    replies = ERRORS[ERRORS.index("## When a reply") :]
    assert f"| `{ProviderError(code, '').code}` |" in replies


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_module_that_is_named_is_there(page: Path) -> None:
    named = re.findall(r"`([\w-]+(?:/[\w.-]+)+\.(?:py|ts|svelte))`", page.read_text(encoding="utf-8"))
    places = (ROOT, ROOT / "src" / "tertulia", ROOT / "web" / "src" / "lib")
    assert [path for path in named if not any((place / path).is_file() for place in places)] == []


def test_every_make_target_that_is_named_exists() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([a-z]+)", text, re.MULTILINE)) <= targets


CASE = re.compile(r"\((?:AZ|SE|UP|SQ|XS|EX|SF|TM|SP|PF|CR|CO|LO)\b")


def test_every_promise_names_its_tests_and_every_test_that_plays_a_case_is_named() -> None:
    page = (DOCS / "security.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/\S+\.py)`", page))
    assert [path for path in sorted(named) if not (ROOT / path).is_file()] == []
    tests = {
        path: path.read_text(encoding="utf-8").partition("\n")[0] for path in ROOT.glob("tests/*/test_*.py")
    }
    assert {name(path) for path, first in tests.items() if CASE.search(first)} <= named
