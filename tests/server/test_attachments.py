"""Attachments over HTTP: upload, sending, permissions and downloads (UP 1, 3, 6, 8, 9)."""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tertulia.app import new_id
from tertulia.server.uploads import is_upload
from tests.library.documents import png
from tests.server.files.test_coming_in import HARMLESS, TRAVERSALS
from tests.upstream.scripted import scripted
from tests.world import Person, World, endpoints, running, turn

pytestmark = pytest.mark.asyncio(loop_scope="module")

MIB = 1 << 20


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    limits = {"TERTULIA_UPLOAD_LIMIT_MIB": "2", "TERTULIA_QUOTA_MIB": "4"}
    async with (
        scripted() as upstream,
        running(
            tmp_path_factory.mktemp("home"), {"TERTULIA_ENDPOINTS": endpoints(upstream)} | limits
        ) as made,
    ):
        yield made


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def ada(world: World) -> Person:
    return await world.set_up("Ada")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def bob(world: World, ada: Person) -> Person:
    """An editor of Ada's first project."""
    bob = await world.create_account(ada, "Bob")
    await ada.put(f"/api/projects/{ada.home}/members", {"user_id": bob.id, "role": "editor"})
    return bob


async def send(person: Person, expect: int, *ids: str, **more: object) -> Any:
    body = turn("Look at this", "alpha", attachments=list(ids), **more)
    answer = await person.client.post("/api/turn", json=body)
    assert answer.status_code == expect, answer.text
    return answer.json()


# ── upload


async def test_an_attachment_gets_its_type_from_its_bytes_and_is_no_project_file(ada: Person) -> None:
    notes = await ada.attach("C:\\fakepath\\notes.md", b"# Notes\n")
    assert (notes["name"], notes["mime_type"], notes["size_bytes"]) == ("notes.md", "text/markdown", 8)
    photo = await ada.attach("notes.txt", png(640, 480))
    assert (photo["mime_type"], photo["width"], photo["height"]) == ("image/png", 640, 480)
    assert (await ada.get(f"/api/projects/{ada.home}/files"))["items"] == []


@pytest.mark.parametrize("name", [*TRAVERSALS, *HARMLESS])
async def test_an_attachment_name_is_cleaned_or_refused_and_never_a_path(ada: Person, name: str) -> None:
    answer = await ada.client.post(
        f"/api/projects/{ada.home}/attachments",
        params={"name": name},
        content=b"x",
        headers={"Content-Type": "application/octet-stream"},
    )
    assert answer.status_code in (201, 422), answer.text
    if answer.status_code == 201:
        name = answer.json()["name"]
        assert name not in ("", ".", "..")
        assert not set(name) & set('/\\\0\n"')
        assert len(name.encode()) <= 255
        assert unicodedata.is_normalized("NFC", name)


async def test_an_attachment_needs_a_name_and_is_not_sent_in_a_form(ada: Person) -> None:
    where = f"/api/projects/{ada.home}/attachments"
    raw = {"Content-Type": "application/octet-stream"}
    assert (await ada.client.post(where, content=b"x", headers=raw)).status_code == 422
    form = await ada.client.post(where, params={"name": "a.md"}, files=[("file", ("a.md", b"x"))])
    assert (form.status_code, form.json()["code"]) == (422, "invalid")


async def test_the_size_limit_and_the_quota_apply_to_attachments(
    world: World, ada: Person, bob: Person
) -> None:
    await bob.attach("large.bin", bytes(2 * MIB + 1), ada.home, expect=413)
    first = await bob.attach("a.bin", b"a" * (2 * MIB), ada.home)
    await bob.upload("b.bin", b"b" * (3 * MIB // 2), bob.home)
    refused = await bob.attach("c.bin", b"c" * MIB, ada.home, expect=413)
    assert refused["code"] == "quota_spent"
    await bob.delete(f"/api/attachments/{first['id']}")
    kept = await bob.attach("c.bin", b"c" * MIB, ada.home)
    await bob.delete(f"/api/attachments/{kept['id']}")


# ── sending


async def test_only_own_attachments_of_the_project_can_be_sent(ada: Person, bob: Person) -> None:
    bobs = await bob.attach("bobs.md", b"bob", ada.home)
    elsewhere = await bob.attach("elsewhere.md", b"there", bob.home)
    for person, id in ((ada, bobs["id"]), (bob, elsewhere["id"]), (ada, new_id())):
        refused = await send(person, 404, id, project_id=ada.home)
        assert refused["message"] == "This does not exist, or you may not see it."
        estimate = {"text": "?", "voices": [{"model": "voices:alpha"}], "project_id": ada.home}
        await person.post("/api/estimate", estimate | {"attachments": [id]}, expect=404)


async def test_an_attachment_is_sent_once_and_repeating_the_turn_has_no_effect(ada: Person) -> None:
    attachment = await ada.attach("once.md", b"once")
    body = turn("Look at this", "alpha", project_id=ada.home, attachments=[attachment["id"]])
    first = await ada.post("/api/turn", body, expect=202)
    assert first["message"]["attachments"] == [attachment]
    await ada.wait_for_end(first["turn"]["id"])
    again = await ada.post("/api/turn", body, expect=202)
    assert again["message"] == first["message"]
    refused = await send(ada, 409, attachment["id"], project_id=ada.home)
    assert "was already sent with a message" in refused["message"]
    assert (await ada.delete(f"/api/attachments/{attachment['id']}", expect=409))["code"] == "conflict"
    page = await ada.get(f"/api/conversations/{first['conversation']['id']}/messages")
    assert page["rounds"][0]["messages"][0]["attachments"] == [attachment]


async def test_more_than_twenty_attachments_are_refused_before_anything_is_saved(ada: Person) -> None:
    refused = await send(ada, 422, *(new_id() for _ in range(21)), project_id=ada.home)
    assert "at most 20 files" in refused["message"]


async def test_a_viewer_can_read_sent_attachments_and_upload_none(
    world: World, ada: Person, bob: Person
) -> None:
    vera = await world.create_account(ada, "Vera")
    await ada.put(f"/api/projects/{ada.home}/members", {"user_id": vera.id, "role": "viewer"})
    await vera.attach("mine.md", b"mine", ada.home, expect=403)
    attachment = await ada.attach("shared.md", b"for all\nto see\n")
    where = f"/api/attachments/{attachment['id']}"
    for person in (vera, bob):
        for path in (where, f"{where}/text"):
            await person.get(path, expect=404)
    opened = await send(ada, 202, attachment["id"], project_id=ada.home)
    await ada.wait_for_end(opened["turn"]["id"])
    for person in (vera, bob):
        assert (await person.client.get(where)).content == b"for all\nto see\n"
        shown = await person.get(f"{where}/text", start_line=2)
        assert (shown["path"], shown["text"], shown["total_lines"]) == ("shared.md", "to see\n", 2)


# ── going out


@pytest.mark.parametrize("inline", ["false", "true"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("page.png", b"<html><script>alert(1)</script></html>"),
        ("drawing.svg", b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'),
        ("paper.pdf", b"%PDF-1.7\n"),
        ("vast.png", png(30_000, 30_000)),
    ],
)
async def test_active_content_and_huge_images_are_sent_as_downloads_only(
    ada: Person, name: str, content: bytes, inline: str
) -> None:
    attachment = await ada.attach(name, content)
    answer = await ada.client.get(f"/api/attachments/{attachment['id']}", params={"inline": inline})
    assert answer.content == content
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]


async def test_an_image_is_sent_inline_on_request(ada: Person) -> None:
    attachment = await ada.attach("photo.png", png(20, 10))
    path = f"/api/attachments/{attachment['id']}"
    shown = await ada.client.get(path, params={"inline": "true"})
    assert shown.headers["content-type"] == "image/png"
    assert shown.headers["content-disposition"].startswith("inline;")
    assert "sandbox" in shown.headers["content-security-policy"]
    saved = await ada.client.get(path)
    assert saved.headers["content-disposition"].startswith("attachment;")


async def test_the_text_of_an_image_is_refused_with_a_reason(ada: Person) -> None:
    attachment = await ada.attach("photo.png", png(20, 10))
    refused = await ada.get(f"/api/attachments/{attachment['id']}/text", expect=422)
    assert refused["code"] == "invalid"


async def test_only_upload_routes_are_exempt_from_the_json_limits() -> None:
    assert is_upload("POST", "/api/projects/01/attachments")
    assert not is_upload("POST", "/api/projects/01/attachments/02")
    assert not is_upload("DELETE", "/api/attachments/01")
