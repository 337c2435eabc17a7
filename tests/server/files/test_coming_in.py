"""Uploading files over HTTP: as the body, in a form, as an archive; refusals and their messages."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest

from tests.library.documents import bomb, many_entries, zipped
from tests.server.cast import at_rest
from tests.server.files.asking import field, file, form, url
from tests.world import Person, World

pytestmark = pytest.mark.asyncio(loop_scope="module")

TRAVERSALS = [
    "../../x",
    "..\\..\\x",
    "a/../../x",
    "/etc/x",
    "C:\\x",
    "c:x",
    "\\\\server\\share\\x",
    "file:///x",
    "..",
    ".",
    "",
    "a/\x00/b",
    "a\nb",
    "a\u202eb.md",
    " x",
    "x" * 256,
    "\U0001f600" * 64,
    "/".join("a" * 40),
    "a/" * 600 + "b",
]
HARMLESS = [
    "%2e%2e%2fx",
    "%252e%252e%252fx",
    "....//x",
    "..x",
    "x..",
    "a\u2215b",
    "\u2024\u2024/x",
    "-rf",
    "con",
]


async def test_a_file_is_uploaded_as_the_body(ada: Person, world: World, project: str) -> None:
    made = await ada.upload("docs/plan.md", b"# Plan\n", project)
    assert (made["path"], made["mime_type"], made["size_bytes"]) == ("docs/plan.md", "text/markdown", 7)
    assert (made["version"], made["created_by"]) == (1, ada.id)
    await at_rest(world.tertulia)
    listed = await ada.get(url(project))
    assert [item["id"] for item in listed["items"]] == [made["id"]]
    assert listed["next"] is None
    assert listed["quota_bytes"] == 40 << 20
    assert await ada.get(url(project, made["id"], "info")) == listed["items"][0]


async def test_several_files_of_one_form_get_their_own_paths(ada: Person, project: str) -> None:
    parts = [
        file("a.md"),
        field("named.txt"),
        file("other.txt", b"y"),
        file("sub/b.md"),
        field("folder/"),
        file("c.md"),
        file("d.md"),
    ]
    taken = await form(ada, project, *parts)
    paths = [item["path"] for item in taken["items"]]
    assert paths == ["a.md", "named.txt", "sub/b.md", "folder/c.md", "folder/d.md"]
    assert taken["refused"] == []


async def test_the_content_type_from_the_client_is_ignored(ada: Person, project: str) -> None:
    """Neither its type nor its name decide; nor do fields that only the server writes."""
    taken = await form(
        ada,
        project,
        ("content_hash", (None, "f" * 64)),
        ("mime_type", (None, "image/png")),
        ("size_bytes", (None, "1")),
        ("blob_path", (None, "/etc/passwd")),
        file("photo.png", b"<html><script>alert(1)</script>", "image/png"),
        hash="f" * 64,
        mime_type="image/png",
    )
    [made] = taken["items"]
    assert (made["mime_type"], made["size_bytes"]) == ("text/html", 31)
    assert made["content_hash"] != "f" * 64


async def test_an_upload_to_an_existing_path_creates_the_next_version(ada: Person, project: str) -> None:
    first = await ada.upload("a.md", b"one", project)
    second = await ada.upload("a.md", b"two", project)
    again = await ada.upload("a.md", b"two", project)
    assert (second["id"], second["version"]) == (first["id"], 2)
    assert again["version"] == 2


@pytest.mark.parametrize("path", TRAVERSALS, ids=lambda path: repr(path)[:20])
async def test_a_path_that_could_leave_its_folder_is_refused(
    ada: Person, world: World, project: str, path: str
) -> None:
    before = outside(world)
    made = await ada.upload("safe.md", b"x", project)
    assert (await ada.upload(path, b"x", project, expect=422))["code"] == "invalid"
    if "\0" not in path:  # which JSON does not bring this far
        told = await ada.put(url(project, made["id"], "path"), {"path": path}, expect=422)
        assert told["code"] == "invalid"
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr(zipfile.ZipInfo("good.md"), "x")
        if path.strip():
            packed.writestr(named(path), "x")
    unpacked = await form(ada, project, file("a.zip", archive.getvalue()), unzip="true")
    assert "good.md" in [item["path"] for item in unpacked["items"]]
    for item in (await ada.get(url(project)))["items"]:
        assert ".." not in item["path"].split("/")
        assert not item["path"].startswith("/")
    assert outside(world) == before


def named(path: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo("x")
    entry.filename = path
    return entry


def outside(world: World) -> set[str]:
    """Files around the folder of blobs; the database's own come and go."""
    return {
        str(found)
        for found in world.home.parent.rglob("*")
        if "blobs" not in found.parts and not found.name.startswith("tertulia.db")
    }


@pytest.mark.parametrize("path", HARMLESS)
async def test_a_path_that_only_looks_strange_is_accepted(ada: Person, project: str, path: str) -> None:
    made = await ada.upload(path, path.encode(), project)
    assert made["path"] == path.replace("//", "/")
    content = await ada.client.get(url(project, made["id"]))
    assert content.content == path.encode()


async def test_only_the_bad_name_of_a_form_is_refused(ada: Person, project: str) -> None:
    taken = await form(ada, project, file("a.md"), file("../b.md"), file("c.md"))
    assert [item["path"] for item in taken["items"]] == ["a.md", "c.md"]
    assert [one["path"] for one in taken["refused"]] == ["../b.md"]
    assert (await form(ada, project, file("../b.md"), expect=422))["code"] == "invalid"


async def test_a_very_long_name_is_refused_with_its_own_message(ada: Person, project: str) -> None:
    for name in ("x" * 10_000, "\U0001f600" * 255):
        assert (await form(ada, project, file(name), expect=422))["code"] == "invalid"
    assert (await form(ada, project, file("x" * (1 << 20)), expect=400))["code"] == "malformed"
    cut = await ada.upload("\U0001f600" * 63, b"x", project)
    assert cut["path"] == "\U0001f600" * 63


async def test_an_archive_is_unpacked_on_request(ada: Person, project: str) -> None:
    archive = zipped(
        {"README.md": "# Hi", "src/main.py": "print(1)", "../up.md": "x", "src/data.bin": b"\0\1"}
    )
    taken = await form(ada, project, field("import"), file("a.zip", archive), unzip="true")
    assert {item["path"]: item["mime_type"] for item in taken["items"]} == {
        "import/README.md": "text/markdown",
        "import/src/main.py": "text/x-python",
        "import/src/data.bin": "application/octet-stream",
    }
    assert [one["path"] for one in taken["refused"]] == ["../up.md"]
    raw = await ada.client.post(
        url(project),
        params={"unzip": "true", "path": "raw"},
        content=archive,
        headers={"Content-Type": "application/octet-stream"},
    )
    assert {item["path"] for item in raw.json()["items"]} >= {"raw/README.md", "raw/src/main.py"}


async def test_an_archive_is_not_unpacked_without_a_request(ada: Person, project: str) -> None:
    made = await ada.upload("a.zip", zipped({"b": "c"}), project)
    assert made["mime_type"] == "application/zip"


@pytest.mark.parametrize(
    "make", [lambda: bomb(64 << 20), lambda: many_entries(20_000), lambda: b"PK\x03\x04", lambda: b"no"]
)
async def test_an_unsafe_archive_is_refused_and_saves_nothing(ada: Person, project: str, make: Any) -> None:
    assert (await form(ada, project, file("a.zip", make()), unzip="true", expect=422))["code"] == "invalid"
    assert (await ada.get(url(project)))["items"] == []


async def test_an_archive_without_files_is_refused_with_a_reason(ada: Person, project: str) -> None:
    answer = await form(ada, project, file("a.zip", zipped({"docs/": ""})), unzip="true", expect=422)
    assert answer["message"] == "This archive holds no files."


async def test_an_archive_of_many_files_is_unpacked(ada: Person, project: str) -> None:
    archive = zipped({f"f{n:03}.txt": f"text {n}" for n in range(230)})
    taken = await form(ada, project, file("a.zip", archive), unzip="true")
    assert len(taken["items"]) == 230
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = await ada.get(url(project), limit=100, **cursor)
        seen += [item["path"] for item in page["items"]]
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
    assert seen == [f"f{n:03}.txt" for n in range(230)]


async def test_the_file_list_has_pages(ada: Person, project: str) -> None:
    for limit in ("-1", "0", "101", "1e9", "NaN", ""):
        await ada.get(url(project), limit=limit, expect=422)
    for cursor in ("x", "' OR 1=1 --", "Li4vYQ==", "=" * 5000, "\u00e9"):
        await ada.get(url(project), cursor=cursor, expect=422)
    for strange in ("'", "%", "_", "\\", "\x00", "\ud7ff", "../"):
        assert (await ada.get(url(project), prefix=strange, tag=strange))["items"] == []


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/x-www-form-urlencoded", ""])
async def test_a_file_with_another_content_type_is_refused(ada: Person, project: str, kind: str) -> None:
    made = await ada.upload("a.md", b"x", project)
    for method, where in (("POST", url(project)), ("PUT", url(project, made["id"]))):
        answer = await ada.client.request(
            method, where, params={"path": "b.md"}, content=b";" * 1000, headers={"Content-Type": kind}
        )
        assert answer.status_code == 415


async def test_a_file_without_a_path_is_refused_with_a_reason(ada: Person, project: str) -> None:
    answer = await ada.client.post(
        url(project), content=b"x", headers={"Content-Type": "application/octet-stream"}
    )
    assert answer.status_code == 422
    assert "path" in answer.json()["message"]
    assert (await form(ada, project, field("a.md"), expect=422))["code"] == "invalid"
