"""The interface's files: all of them as they were built, or a sentence."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
from starlette.requests import Request

from tertulia.server.web_files import BEING_BUILT, NOT_BUILT, WebFiles


class Rewritten(type(Path())):  # type: ignore[misc]
    """A folder that a build empties when it has just been listed."""

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


def asked(path: str) -> Request:
    headers: list[tuple[bytes, bytes]] = []
    return Request({"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers})


async def test_files_and_pages_are_served_as_they_were_built(built: Path) -> None:
    pages = WebFiles(built)
    assert (await pages.get(asked("/_app/start.js"))).body == b"begin"
    assert (await pages.get(asked("/c/anything"))).body == b"<script>begin()</script>"
    assert (await pages.get(asked("/_app/gone.js"))).status_code == 404
    assert "'sha256-" in pages.policy


async def test_a_build_that_is_rewritten_during_the_start_is_a_sentence_and_not_half_an_interface(
    built: Path,
) -> None:
    pages = WebFiles(Rewritten(built))
    answer = await pages.get(asked("/"))
    assert answer.status_code == 503
    assert BEING_BUILT.encode() in answer.body
    assert "'sha256-" not in pages.policy


async def test_without_a_build_the_sentence_says_how_to_make_one() -> None:
    assert NOT_BUILT.encode() in (await WebFiles(None).get(asked("/"))).body
