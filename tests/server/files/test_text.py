"""The extracted text of a file over HTTP, by lines."""

from __future__ import annotations

import pytest

from tests.library.documents import png
from tests.server.files.asking import url
from tests.world import Person

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_text_of_a_file_is_returned_by_lines(ada: Person, project: str) -> None:
    made = await ada.upload("a.txt", "eins\r\nzw\u00f6lf\r\ndrei\r\n".encode("latin-1"), project)
    where = url(project, made["id"], "text")
    whole = await ada.get(where)
    assert whole == {
        "path": "a.txt",
        "text": "eins\nzw\u00f6lf\ndrei\n",
        "start_line": 1,
        "end_line": 3,
        "total_lines": 3,
    }
    assert (await ada.get(where, start_line=2, end_line=2))["text"] == "zw\u00f6lf\n"
    assert (await ada.get(where, start_line=9))["text"] == ""
    for wrong in ({"start_line": 0}, {"start_line": 3, "end_line": 2}, {"end_line": "x"}):
        await ada.get(where, expect=422, **wrong)


async def test_a_long_text_is_returned_in_parts(ada: Person, project: str) -> None:
    content = b"".join(b"line %06d\n" % n for n in range(150_000))
    made = await ada.upload("long.txt", content, project)
    where, seen, start = url(project, made["id"], "text"), "", 1
    while True:
        part = await ada.get(where, start_line=start)
        seen += part["text"]
        if part["end_line"] == part["total_lines"]:
            break
        start = part["end_line"] + 1
    assert seen.encode() == content


async def test_a_file_without_text_says_why(ada: Person, project: str) -> None:
    picture = await ada.upload("a.png", png(1, 1), project)
    answer = await ada.get(url(project, picture["id"], "text"), expect=422)
    assert answer["message"] == "An image holds no text that can be searched."
    broken = await ada.upload("a.pdf", b"%PDF-1.7 broken", project)
    assert "PDF" in (await ada.get(url(project, broken["id"], "text"), expect=422))["message"]
    empty = await ada.upload("empty.txt", b"", project)
    assert (await ada.get(url(project, empty["id"], "text")))["total_lines"] == 0
