"""Dependencies are pinned by hash and named without a download address."""

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))

# Written in pieces, so that the test does not find this file.
REGISTRY = re.compile(
    r"pypi\." r"org|pythonhosted\." r"org|registry\.npm" r"js|npm" r"js\.com|yarnpkg\." r"com"
    r"|--(extra-)?index-" r"url|--find-" r"links|--trusted-" r"host"
)  # fmt: skip


def test_no_tracked_file_contains_the_address_of_a_package_registry() -> None:
    matches = [f"{path}: {match[0]}" for path in tracked() if (match := REGISTRY.search(text_of(path)))]
    assert matches == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_locked_python_package_has_one_version_and_a_hash(lock: Path) -> None:
    unpinned = [
        entry for entry in entries(lock) if not re.match(r"[\w.-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", entry)
    ]
    assert unpinned == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_no_locked_python_package_has_a_url(lock: Path) -> None:
    assert not re.search(r"://| @ |^-e ", lock.read_text(encoding="utf-8"), re.MULTILINE)


def test_the_test_lock_contains_the_packages_of_the_run_lock() -> None:
    assert set(entries(ROOT / "requirements" / "run.txt")) <= set(entries(ROOT / "requirements" / "test.txt"))


def test_the_web_lock_has_hashes_and_no_urls() -> None:
    lock = json.loads((ROOT / "web" / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: entry for name, entry in lock["packages"].items() if name}  # "" is the web itself
    assert [name for name, entry in packages.items() if "resolved" in entry] == []
    assert [
        name for name, entry in packages.items() if "integrity" not in entry and not entry.get("inBundle")
    ] == []


def tracked() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", errors="ignore")


def entries(lock: Path) -> list[str]:
    """The packages of a lock file, each with its hashes on one line and without comments."""
    lines = [
        line for line in lock.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#")
    ]
    return [entry for entry in "\n".join(lines).replace("\\\n", " ").splitlines() if entry.strip()]
