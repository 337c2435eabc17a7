"""Web files: the complete built interface, or a message if there is none."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
from starlette.requests import Request

from tertulia.server.web_files import BEING_BUILT, NOT_BUILT, WebFiles


class FolderBeingBuilt(type(Path())):  # type: ignore[misc]
    """A folder that is emptied right after it was listed, as by a build."""

    def rglob(self, pattern: str) -> Generator[Path, None, None]:
        yield from super().rglob(pattern)
        shutil.rmtree(self)


@pytest.fixture
def built(tmp_path: Path) -> Path:
    folder = tmp_path / "build"
    (folder / "_app").mkdir(parents=True)
    (folder / "index.html").write_text("<script>begin()</script>")
    (folder / "_app" / "start.js").write_text("begin")
    return folder


def request(path: str) -> Request:
    headers: list[tuple[bytes, bytes]] = []
    return Request({"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers})


async def test_files_and_web_files_are_served_as_they_were_built(built: Path) -> None:
    web_files = WebFiles(built)
    assert (await web_files.get(request("/_app/start.js"))).body == b"begin"
    assert (await web_files.get(request("/c/anything"))).body == b"<script>begin()</script>"
    assert (await web_files.get(request("/_app/gone.js"))).status_code == 404
    assert "'sha256-" in web_files.policy


async def test_a_build_that_changes_during_the_start_serves_a_message_instead_of_half_an_interface(
    built: Path,
) -> None:
    web_files = WebFiles(FolderBeingBuilt(built))
    answer = await web_files.get(request("/"))
    assert answer.status_code == 503
    assert BEING_BUILT.encode() in answer.body
    assert "'sha256-" not in web_files.policy


async def test_without_a_build_the_message_says_how_to_build() -> None:
    assert NOT_BUILT.encode() in (await WebFiles(None).get(request("/"))).body
