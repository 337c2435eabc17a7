"""Project files over HTTP: what comes in, what goes out, and in what dress."""

from __future__ import annotations

import io
import zipfile
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from tests.library.documents import bomb, many_entries, pdf, png, zipped
from tests.server.cast import at_rest
from tests.world import Person, World, running

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


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    limits = {"TERTULIA_UPLOAD_LIMIT_MIB": "2", "TERTULIA_QUOTA_MIB": "40"}
    async with running(tmp_path_factory.mktemp("house"), limits) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def ada(world: World) -> Person:
    return await world.first("Ada")


@pytest_asyncio.fixture(loop_scope="module")
async def project(ada: Person) -> str:
    made = await ada.post("/api/projects", {"name": "Files"}, expect=201)
    return str(made["id"])


def url(project: str, *more: object) -> str:
    return "/".join(["/api/projects", project, "files", *map(str, more)])


async def form(
    person: Person, project: str, *parts: tuple[str, Any], expect: int = 201, **params: str
) -> dict[str, Any]:
    answer = await person.client.post(url(project), files=list(parts), params=params)
    assert answer.status_code == expect, answer.text
    body: dict[str, Any] = answer.json()
    return body


def file(name: str, content: bytes = b"x", kind: str = "application/octet-stream") -> tuple[str, Any]:
    return "file", (name, content, kind)


def field(value: str) -> tuple[str, Any]:
    return "path", (None, value)


async def put(person: Person, path: str, content: bytes, **headers: str) -> httpx2.Response:
    sent = {"Content-Type": "application/octet-stream"} | {k.replace("_", "-"): v for k, v in headers.items()}
    return await person.client.put(path, content=content, headers=sent)


# ── coming in


async def test_a_file_comes_in_as_it_is(ada: Person, world: World, project: str) -> None:
    made = await ada.upload("docs/plan.md", b"# Plan\n", project)
    assert (made["path"], made["mime_type"], made["size_bytes"]) == ("docs/plan.md", "text/markdown", 7)
    assert (made["version"], made["created_by"]) == (1, ada.id)
    await at_rest(world.house)
    listed = await ada.get(url(project))
    assert [item["id"] for item in listed["items"]] == [made["id"]]
    assert listed["next"] is None
    assert listed["quota_bytes"] == 40 << 20
    assert await ada.get(url(project, made["id"], "info")) == listed["items"][0]


async def test_several_come_in_one_form_each_where_it_belongs(ada: Person, project: str) -> None:
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


async def test_what_a_client_says_of_a_file_is_not_believed(ada: Person, project: str) -> None:
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


async def test_a_path_that_is_there_becomes_its_next_version(ada: Person, project: str) -> None:
    first = await ada.upload("a.md", b"one", project)
    second = await ada.upload("a.md", b"two", project)
    again = await ada.upload("a.md", b"two", project)
    assert (second["id"], second["version"]) == (first["id"], 2)
    assert again["version"] == 2


@pytest.mark.parametrize("path", TRAVERSALS, ids=lambda path: repr(path)[:20])
async def test_a_path_that_could_mean_another_place_is_refused(
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
async def test_a_path_that_only_looks_strange_is_a_name(ada: Person, project: str, path: str) -> None:
    made = await ada.upload(path, path.encode(), project)
    assert made["path"] == path.replace("//", "/")
    content = await ada.client.get(url(project, made["id"]))
    assert content.content == path.encode()


async def test_a_bad_name_among_good_ones_is_refused_alone(ada: Person, project: str) -> None:
    taken = await form(ada, project, file("a.md"), file("../b.md"), file("c.md"))
    assert [item["path"] for item in taken["items"]] == ["a.md", "c.md"]
    assert [one["path"] for one in taken["refused"]] == ["../b.md"]
    assert (await form(ada, project, file("../b.md"), expect=422))["code"] == "invalid"


async def test_a_very_long_name_is_told_from_a_broken_form(ada: Person, project: str) -> None:
    for name in ("x" * 10_000, "\U0001f600" * 255):
        assert (await form(ada, project, file(name), expect=422))["code"] == "invalid"
    assert (await form(ada, project, file("x" * (1 << 20)), expect=400))["code"] == "malformed"
    cut = await ada.upload("\U0001f600" * 63, b"x", project)
    assert cut["path"] == "\U0001f600" * 63


async def test_a_zip_is_unpacked_on_its_way_in(ada: Person, project: str) -> None:
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


async def test_without_being_asked_a_zip_stays_a_zip(ada: Person, project: str) -> None:
    made = await ada.upload("a.zip", zipped({"b": "c"}), project)
    assert made["mime_type"] == "application/zip"


@pytest.mark.parametrize(
    "make", [lambda: bomb(64 << 20), lambda: many_entries(20_000), lambda: b"PK\x03\x04", lambda: b"no"]
)
async def test_a_harmful_archive_leaves_nothing(ada: Person, project: str, make: Any) -> None:
    assert (await form(ada, project, file("a.zip", make()), unzip="true", expect=422))["code"] == "invalid"
    assert (await ada.get(url(project)))["items"] == []


async def test_an_archive_of_nothing_but_folders_is_told_so(ada: Person, project: str) -> None:
    answer = await form(ada, project, file("a.zip", zipped({"docs/": ""})), unzip="true", expect=422)
    assert answer["message"] == "This archive holds no files."


async def test_a_folder_of_many_files_comes_out_of_one_zip(ada: Person, project: str) -> None:
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


# ── going out


async def test_what_came_in_goes_out_to_the_byte(ada: Person, project: str) -> None:
    content = bytes(range(256)) * 7000
    made = await ada.upload("data.bin", content, project)
    answer = await ada.client.get(url(project, made["id"]))
    assert answer.content == content
    assert answer.headers["content-length"] == str(len(content))


ACTIVE = {
    "page.html": b"<script>alert(document.cookie)</script>",
    "photo.png": b"<html><script>alert(1)</script>",
    "drawing.svg": b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
    "utf7.txt": b"+ADw-script+AD4-alert(1)+ADw-/script+AD4-",
    "page.xhtml": b"<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><script>alert(1)</script></html>",
    "paper.pdf": pdf(["x"], "/OpenAction << /S /JavaScript /JS (app.alert(1)) >>"),
    "both.gif": b"GIF89a/*\0\0*/=1;alert(1)//",
}


@pytest.mark.parametrize("inline", ["false", "true"])
@pytest.mark.parametrize(("name", "content"), ACTIVE.items(), ids=ACTIVE.keys())
async def test_no_browser_runs_what_is_downloaded(
    ada: Person, project: str, name: str, content: bytes, inline: str
) -> None:
    made = await ada.upload(name, content, project)
    for path in (url(project, made["id"]), url(project, made["id"], "versions", 1)):
        answer = await ada.client.get(path, params={"inline": inline})
        assert answer.content == content
        assert answer.headers["x-content-type-options"] == "nosniff"
        policies = answer.headers.get_list("content-security-policy")
        assert any(policy.startswith("sandbox;") for policy in policies)
        assert answer.headers["content-disposition"].startswith("attachment;")
        assert answer.headers["content-type"] == "application/octet-stream"


PICTURES = {
    "a.png": (png(10, 10), "image/png"),
    "b.gif": (b"GIF89a\x01\x00\x01\x00\x00;", "image/gif"),
    "c.jpg": (b"\xff\xd8\xff\xc0\x00\x11\x08\x00\x10\x00\x10\x03\x01\x22\x00\x02", "image/jpeg"),
    "d.webp": (
        b"RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00/\x00\x00\x00\x10\x07\x10\x11\x11\x88",
        "image/webp",
    ),
}


@pytest.mark.parametrize(("name", "content"), PICTURES.items(), ids=PICTURES.keys())
async def test_a_picture_may_be_shown_in_a_page(
    ada: Person, project: str, name: str, content: tuple[bytes, str]
) -> None:
    raw, kind = content
    made = await ada.upload(name, raw, project)
    shown = await ada.client.get(url(project, made["id"]), params={"inline": "true"})
    assert shown.headers["content-type"] == kind
    assert shown.headers["content-disposition"].startswith("inline;")
    saved = await ada.client.get(url(project, made["id"]))
    assert saved.headers["content-disposition"].startswith("attachment;")


async def test_a_picture_of_a_billion_pixels_is_not_shown(ada: Person, project: str) -> None:
    made = await ada.upload("huge.png", png(30_000, 30_000), project)
    answer = await ada.client.get(url(project, made["id"]), params={"inline": "true"})
    assert answer.headers["content-disposition"].startswith("attachment;")


@pytest.mark.parametrize(
    "ranges",
    [
        "bytes=" + ",".join(f"{n}-{n + 9}" for n in range(5000)),
        "bytes=0-1,3-4",
        "bytes=9-2",
        "bytes=-",
        "bytes=0x1-2",
        "bytes=\u0661-\u0662".encode(),
        "bytes=" + "9" * 60_000 + "-",
        "lines=1-2",
        "bytes=" + "0-," * 5000,
    ],
    ids=lambda ranges: str(ranges[:12]),
)
async def test_several_ranges_or_one_that_makes_no_sense_get_the_whole_file(
    ada: Person, project: str, ranges: str | bytes
) -> None:
    made = await ada.upload("a.txt", b"0123456789", project)
    answer = await ada.client.get(url(project, made["id"]), headers={"Range": ranges})
    assert (answer.status_code, answer.content) == (200, b"0123456789")
    page = await ada.client.get("/", headers={"Range": ranges})
    assert page.status_code in (200, 503)  # 503: no interface was built


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("a b.md", "a b.md"),
        ('q"uote.md', "q_uote.md"),
        ("gr\u00fc\u00df.md", "gr__.md"),
        ("x;y=z.md", "x_y_z.md"),
    ],
)
async def test_a_name_cannot_break_out_of_its_header(
    ada: Person, project: str, path: str, plain: str
) -> None:
    made = await ada.upload(path, b"x", project)
    said = (await ada.client.get(url(project, made["id"]))).headers["content-disposition"]
    assert said.startswith(f"attachment; filename=\"{plain}\"; filename*=UTF-8''")
    assert said.isascii()


# ── changing


async def test_a_file_is_changed_in_place_and_a_stale_change_is_told(ada: Person, project: str) -> None:
    made = await ada.upload("a.md", b"one\n", project)
    where = url(project, made["id"])
    read = (await ada.client.get(where)).headers["etag"]
    changed = (await put(ada, where, b"two\n", If_Match=read)).json()
    assert (changed["version"], changed["size_bytes"]) == (2, 4)
    for old in ("1", '"1"', read):
        stale = await put(ada, where, b"three\n", If_Match=old)
        assert (stale.status_code, stale.json()["code"]) == (412, "stale")
    assert (await ada.client.get(where)).content == b"two\n"
    assert (await put(ada, where, b"three\n")).json()["version"] == 3
    for wrong in ("", "x", '"1', "1, 2", "-1", "a" * 63):
        if wrong not in ('"1',):
            assert (await put(ada, where, b"four", If_Match=wrong)).status_code == 422


async def test_a_file_is_renamed_and_its_kind_follows_among_texts(ada: Person, project: str) -> None:
    made = await ada.upload("a.md", b"a,b\n1,2\n", project)
    renamed = await ada.put(url(project, made["id"], "path"), {"path": "data/a.csv"})
    assert (renamed["path"], renamed["mime_type"], renamed["version"]) == ("data/a.csv", "text/csv", 1)
    other = await ada.upload("b.md", b"x", project)
    conflict = await ada.put(url(project, other["id"], "path"), {"path": "data/a.csv"}, expect=409)
    assert conflict["code"] == "conflict"
    picture = await ada.upload("p.png", png(1, 1), project)
    renamed = await ada.put(url(project, picture["id"], "path"), {"path": "p.html"})
    assert renamed["mime_type"] == "image/png"


async def test_what_is_said_of_a_file_changes_only_where_it_is_named(ada: Person, project: str) -> None:
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


async def test_versions_are_listed_compared_and_brought_back(ada: Person, project: str) -> None:
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


async def test_what_is_brought_back_is_of_the_kind_its_path_says_by_now(ada: Person, project: str) -> None:
    made = await ada.upload("a.txt", b"# One\n", project)
    where = url(project, made["id"])
    await put(ada, where, b"# Two\n")
    await ada.put(f"{where}/path", {"path": "a.md"})
    assert (await ada.post(f"{where}/versions/2/restore"))["version"] == 2
    restored = await ada.post(f"{where}/versions/1/restore")
    assert (restored["version"], restored["mime_type"]) == (3, "text/markdown")


async def test_pictures_cannot_be_compared(ada: Person, project: str) -> None:
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


# ── text


async def test_the_text_of_a_file_is_shown_by_lines(ada: Person, project: str) -> None:
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


async def test_a_long_text_is_shown_a_part_at_a_time(ada: Person, project: str) -> None:
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
    assert answer["message"] == "An image holds no text that can be looked up."
    broken = await ada.upload("a.pdf", b"%PDF-1.7 broken", project)
    assert "PDF" in (await ada.get(url(project, broken["id"], "text"), expect=422))["message"]
    empty = await ada.upload("empty.txt", b"", project)
    assert (await ada.get(url(project, empty["id"], "text")))["total_lines"] == 0


# ── asking wrongly


async def test_a_list_has_a_limit_and_a_cursor_of_its_own(ada: Person, project: str) -> None:
    for limit in ("-1", "0", "101", "1e9", "NaN", ""):
        await ada.get(url(project), limit=limit, expect=422)
    for cursor in ("x", "' OR 1=1 --", "Li4vYQ==", "=" * 5000, "\u00e9"):
        await ada.get(url(project), cursor=cursor, expect=422)
    for strange in ("'", "%", "_", "\\", "\x00", "\ud7ff", "../"):
        assert (await ada.get(url(project), prefix=strange, tag=strange))["items"] == []


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/x-www-form-urlencoded", ""])
async def test_a_file_is_sent_as_bytes_or_in_a_form(ada: Person, project: str, kind: str) -> None:
    made = await ada.upload("a.md", b"x", project)
    for method, where in (("POST", url(project)), ("PUT", url(project, made["id"]))):
        answer = await ada.client.request(
            method, where, params={"path": "b.md"}, content=b";" * 1000, headers={"Content-Type": kind}
        )
        assert answer.status_code == 415


async def test_a_file_without_a_path_is_told_so(ada: Person, project: str) -> None:
    answer = await ada.client.post(
        url(project), content=b"x", headers={"Content-Type": "application/octet-stream"}
    )
    assert answer.status_code == 422
    assert "path" in answer.json()["message"]
    assert (await form(ada, project, field("a.md"), expect=422))["code"] == "invalid"
