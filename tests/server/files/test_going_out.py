"""Downloading files over HTTP: the exact bytes, with headers that keep browsers from running them."""

from __future__ import annotations

import pytest

from tests.library.documents import pdf, png
from tests.server.files.asking import url
from tests.world import Person

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_download_has_the_uploaded_bytes(ada: Person, project: str) -> None:
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
async def test_a_download_has_headers_that_keep_browsers_from_running_it(
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
async def test_an_image_may_be_sent_inline(
    ada: Person, project: str, name: str, content: tuple[bytes, str]
) -> None:
    raw, kind = content
    made = await ada.upload(name, raw, project)
    shown = await ada.client.get(url(project, made["id"]), params={"inline": "true"})
    assert shown.headers["content-type"] == kind
    assert shown.headers["content-disposition"].startswith("inline;")
    saved = await ada.client.get(url(project, made["id"]))
    assert saved.headers["content-disposition"].startswith("attachment;")


async def test_an_image_of_a_billion_pixels_is_not_sent_inline(ada: Person, project: str) -> None:
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
async def test_several_ranges_or_a_malformed_one_get_the_whole_file(
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
async def test_a_file_name_cannot_inject_header_content(
    ada: Person, project: str, path: str, plain: str
) -> None:
    made = await ada.upload(path, b"x", project)
    said = (await ada.client.get(url(project, made["id"]))).headers["content-disposition"]
    assert said.startswith(f"attachment; filename=\"{plain}\"; filename*=UTF-8''")
    assert said.isascii()
