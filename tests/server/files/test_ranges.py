"""Ranges and conditional requests, with both blob backends, for small and for large files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tertulia.store.blob_upload import ROW_LIMIT
from tests.world import Person, World, running

SMALL = bytes(range(250)) * 4
LARGE = (b"%07d\n" * 8 % tuple(range(8))) * 40_000
"""Two and a half blocks."""


@pytest.fixture(params=["sqlite", "postgres"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    environ = (
        {}
        if request.param == "sqlite"
        else {"TERTULIA_DATABASE_URL": request.getfixturevalue("postgres_url")}
    )
    async with running(tmp_path, environ) as made:
        yield made


@pytest.fixture
async def ada(world: World) -> Person:
    return await world.set_up("Ada")


async def addresses(ada: Person, content: bytes) -> tuple[str, ...]:
    """The file, its first version, and the same bytes as an attachment."""
    made = await ada.upload("a.bin", content)
    where = f"/api/projects/{ada.home}/files/{made['id']}"
    attached = await ada.client.post(
        f"/api/projects/{ada.home}/attachments",
        params={"name": "a.bin"},
        content=content,
        headers={"Content-Type": "application/octet-stream"},
    )
    return where, f"{where}/versions/1", f"/api/attachments/{attached.json()['id']}"


@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])
async def test_a_range_returns_exactly_its_bytes(ada: Person, content: bytes) -> None:
    size = len(content)
    assert (size < ROW_LIMIT) == (content is SMALL)
    parts = {
        "bytes=0-0": (0, 1),
        "bytes=7-": (7, size),
        "bytes=-9": (size - 9, size),
        f"bytes=-{size + 5}": (0, size),
        "bytes=3-18446744073709551616": (3, size),
        f"BYTES={size - 1}-{size - 1}": (size - 1, size),
        f"bytes={size // 2 - 1}-{size - 2}": (size // 2 - 1, size - 1),
    }
    for where in await addresses(ada, content):
        for asked, (start, end) in parts.items():
            answer = await ada.client.get(where, headers={"Range": asked})
            assert (answer.status_code, answer.content) == (206, content[start:end]), asked
            assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/{size}"
            assert answer.headers["content-length"] == str(end - start)
            assert answer.headers["content-disposition"].startswith("attachment;")


@pytest.mark.parametrize("content", [SMALL, b""], ids=["small", "empty"])
async def test_a_range_beyond_the_end_is_refused_with_the_size(ada: Person, content: bytes) -> None:
    for where in await addresses(ada, content):
        for asked in (f"bytes={len(content)}-", "bytes=99999999999999999999-", "bytes=-0"):
            answer = await ada.client.get(where, headers={"Range": asked})
            assert (answer.status_code, answer.json()["code"]) == (416, "range_not_satisfiable"), asked
            assert answer.headers["content-range"] == f"bytes */{len(content)}"


async def test_if_range_resumes_a_download_only_of_the_same_content(ada: Person) -> None:
    where, *_ = await addresses(ada, SMALL)
    tag = (await ada.client.get(where)).headers["etag"]
    rest = {"Range": "bytes=900-", "If-Range": tag}
    assert (await ada.client.get(where, headers=rest)).content == SMALL[900:]
    changed = SMALL[::-1]
    await ada.upload("a.bin", changed)
    for since in (tag, f"W/{tag}", "Mon, 16 Nov 2026 20:03:37 GMT", ""):
        answer = await ada.client.get(where, headers=rest | {"If-Range": since})
        assert (answer.status_code, answer.content) == (200, changed)
    assert (await ada.client.get(f"{where}/versions/1", headers=rest)).status_code == 206


async def test_a_known_etag_gets_304(ada: Person) -> None:
    for where in await addresses(ada, SMALL):
        tag = (await ada.client.get(where)).headers["etag"]
        for known in (tag, f"W/{tag}", f'"x", {tag}', "*"):
            for method in ("GET", "HEAD"):
                answer = await ada.client.request(method, where, headers={"If-None-Match": known})
                assert (answer.status_code, answer.content) == (304, b"")
                assert answer.headers["etag"] == tag
        other = {"If-None-Match": f'"{"0" * 64}", x'}
        assert (await ada.client.get(where, headers=other)).content == SMALL


async def test_an_old_etag_gets_the_new_content(ada: Person) -> None:
    where, *_ = await addresses(ada, SMALL)
    known = {"If-None-Match": (await ada.client.get(where)).headers["etag"]}
    await ada.upload("a.bin", b"changed")
    assert (await ada.client.get(where, headers=known)).content == b"changed"


async def test_head_returns_the_headers_of_a_file_without_its_content(ada: Person) -> None:
    for where in await addresses(ada, LARGE):
        said = await ada.client.head(where, headers={"Range": "bytes=0-1"})
        sent = await ada.client.get(where)
        assert (said.status_code, said.content) == (200, b"")
        for name in ("content-length", "content-type", "content-disposition", "etag", "accept-ranges"):
            assert said.headers[name] == sent.headers[name]
        assert said.headers["accept-ranges"] == "bytes"


async def test_a_conditional_request_reveals_nothing_of_a_foreign_file(world: World, ada: Person) -> None:
    bob = await world.create_account(ada, "Bob")
    for where in await addresses(ada, SMALL):
        tag = (await ada.client.get(where)).headers["etag"]
        for method in ("GET", "HEAD"):
            for asked in ({"If-None-Match": tag}, {"If-None-Match": "*"}, {"Range": "bytes=9999-"}):
                assert (await bob.client.request(method, where, headers=asked)).status_code == 404
