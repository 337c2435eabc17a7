"""The docs match the code: every setting, command, route and error is documented."""

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


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", reference.pages(), ids=page_name)
def test_every_generated_page_is_up_to_date(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == reference.fresh(page), "Run `make docs` and commit the result."


def test_every_generated_part_is_on_a_page() -> None:
    parts = {
        part[2] for page in reference.pages() for part in reference.MARK.finditer(page.read_text("utf-8"))
    }
    assert parts == set(reference.PARTS)


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
def test_every_error_code_of_a_reply_is_on_the_errors_page(code: ErrorCode) -> None:
    replies = ERRORS[ERRORS.index("## When a reply") :]
    assert f"| `{ProviderError(code, '').code}` |" in replies


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_relative_link_exists(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_module_path_in_the_docs_exists(page: Path) -> None:
    paths = re.findall(r"`([\w-]+(?:/[\w.-]+)+\.(?:py|ts|svelte))`", page.read_text(encoding="utf-8"))
    roots = (ROOT, ROOT / "src" / "tertulia", ROOT / "web" / "src" / "lib")
    assert [path for path in paths if not any((place / path).is_file() for place in roots)] == []


def test_every_make_target_in_the_docs_exists() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([a-z]+)", text, re.MULTILINE)) <= targets


CASE = re.compile(r"\((?:AZ|SE|UP|SQ|XS|EX|SF|TM|SP|PF|CR|CO|LO)\b")


def test_the_security_page_names_every_test_of_an_attack_case() -> None:
    page = (DOCS / "security.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`(tests/\S+\.py)`", page))
    assert [path for path in sorted(listed) if not (ROOT / path).is_file()] == []
    tests = {
        path: path.read_text(encoding="utf-8").partition("\n")[0] for path in ROOT.glob("tests/*/test_*.py")
    }
    assert {page_name(path) for path, first_line in tests.items() if CASE.search(first_line)} <= listed
