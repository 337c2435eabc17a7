"""Changing files over HTTP: content, path, metadata, versions and deletion."""

from __future__ import annotations

import pytest

from tests.library.documents import png
from tests.server.files.asking import put, url
from tests.world import Person

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_file_is_changed_in_place_and_a_stale_change_is_refused(ada: Person, project: str) -> None:
    made = await ada.upload("a.md", b"one\n", project)
    where = url(project, made["id"])
    read = (await ada.client.get(where)).headers["etag"]
    changed = (await put(ada, where, b"two\n", If_Match=read)).json()
    assert (changed["version"], changed["size_bytes"]) == (2, 4)
    for old in ("1", '"1"', read):
        stale = await put(ada, where, b"three\n", If_Match=old)
        assert (stale.status_code, stale.json()["code"]) == (412, "version_conflict")
    assert (await ada.client.get(where)).content == b"two\n"
    assert (await put(ada, where, b"three\n")).json()["version"] == 3
    for wrong in ("", "x", '"1', "1, 2", "-1", "a" * 63):
        if wrong not in ('"1',):
            assert (await put(ada, where, b"four", If_Match=wrong)).status_code == 422


async def test_renaming_a_text_file_changes_its_type(ada: Person, project: str) -> None:
    made = await ada.upload("a.md", b"a,b\n1,2\n", project)
    renamed = await ada.put(url(project, made["id"], "path"), {"path": "data/a.csv"})
    assert (renamed["path"], renamed["mime_type"], renamed["version"]) == ("data/a.csv", "text/csv", 1)
    other = await ada.upload("b.md", b"x", project)
    conflict = await ada.put(url(project, other["id"], "path"), {"path": "data/a.csv"}, expect=409)
    assert conflict["code"] == "conflict"
    picture = await ada.upload("p.png", png(1, 1), project)
    renamed = await ada.put(url(project, picture["id"], "path"), {"path": "p.html"})
    assert renamed["mime_type"] == "image/png"


async def test_a_metadata_change_changes_only_the_fields_sent(ada: Person, project: str) -> None:
    made = await ada.upload("a.md", b"x", project)
    where = url(project, made["id"], "metadata")
    answer = await ada.client.patch(where, json={"tags": ["plan", "plan"], "always_in_context": True})
    assert answer.json()["metadata"] == {
        "always_in_context": True,
        "retrieval_eligible": True,
        "tool_accessible": True,
        "tags": ["plan"],
        "summary": "",
    }
    answer = await ada.client.patch(where, json={"summary": "Short."})
    assert answer.json()["metadata"]["tags"] == ["plan"]
    assert answer.json()["metadata"]["summary"] == "Short."
    for wrong in ({"tags": "x"}, {"tags": [1]}, {"summary": "x" * 2000}, {"always_in_context": []}):
        assert (await ada.client.patch(where, json=wrong)).status_code == 422
    assert [i["id"] for i in (await ada.get(url(project), tag="plan"))["items"]] == [made["id"]]
    assert (await ada.get(url(project), tag="pla"))["items"] == []


async def test_versions_are_listed_compared_and_restored(ada: Person, project: str) -> None:
    made = await ada.upload("a.md", b"one\ntwo\nthree\n", project)
    where = url(project, made["id"])
    await put(ada, where, b"one\n2\nthree\n")
    versions = (await ada.get(f"{where}/versions"))["items"]
    assert [version["number"] for version in versions] == [2, 1]
    assert (await ada.client.get(f"{where}/versions/1")).content == b"one\ntwo\nthree\n"
    diff = (await ada.get(f"{where}/versions/2/diff"))["unified"]
    assert diff == ("--- a.md (version 1)\n+++ a.md (version 2)\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n")
    assert (await ada.get(f"{where}/versions/1/diff", against=1))["unified"] == ""
    assert "-2" in (await ada.get(f"{where}/versions/1/diff", against=2))["unified"]
    assert "+one" in (await ada.get(f"{where}/versions/1/diff"))["unified"]
    restored = await ada.post(f"{where}/versions/1/restore")
    assert restored["version"] == 3
    assert (await ada.client.get(where)).content == b"one\ntwo\nthree\n"
    for missing in (9, 2**31):
        await ada.get(f"{where}/versions/{missing}/diff", expect=404)
        await ada.post(f"{where}/versions/{missing}/restore", expect=404)
    for wrong in ("0", "-1", "x", "1e9", "9" * 40):
        await ada.get(f"{where}/versions/{wrong}", expect=422)


async def test_a_restored_version_gets_the_type_of_the_current_path(ada: Person, project: str) -> None:
    made = await ada.upload("a.txt", b"# One\n", project)
    where = url(project, made["id"])
    await put(ada, where, b"# Two\n")
    await ada.put(f"{where}/path", {"path": "a.md"})
    assert (await ada.post(f"{where}/versions/2/restore"))["version"] == 2
    restored = await ada.post(f"{where}/versions/1/restore")
    assert (restored["version"], restored["mime_type"]) == (3, "text/markdown")


async def test_images_cannot_be_compared(ada: Person, project: str) -> None:
    made = await ada.upload("a.png", png(1, 1), project)
    await put(ada, url(project, made["id"]), png(2, 2))
    answer = await ada.get(url(project, made["id"], "versions", 2, "diff"), expect=422)
    assert "An image holds no text" in answer["message"]


async def test_a_deleted_file_is_gone(ada: Person, project: str) -> None:
    made = await ada.upload("a.md", b"x", project)
    where = url(project, made["id"])
    await ada.delete(where)
    for path in (where, f"{where}/info", f"{where}/text", f"{where}/versions", f"{where}/versions/1"):
        await ada.get(path, expect=404)
    await ada.delete(where, expect=404)
    assert (await ada.get(url(project)))["items"] == []
