"""Cancelled uploads over HTTP: nothing of them appears, whichever comes first, upload or cancelling."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from tertulia.store.sql import sql
from tests.library.documents import zipped
from tests.server.cast import at_rest
from tests.server.files.asking import file, form, url
from tests.world import Person, World

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = "01JCZ5Q7M8XKEY0000000001"
FORGET = sql("DELETE FROM cancelled_uploads")
BYTES = {"Content-Type": "application/octet-stream"}


async def send(ada: Person, project: str, content: Any, **params: str) -> httpx2.Response:
    return await ada.client.post(
        url(project), params={"upload_key": KEY} | params, content=content, headers=BYTES
    )


async def cancel(ada: Person, project: str, key: str = KEY) -> None:
    await ada.delete(f"/api/projects/{project}/uploads/{key}")


async def listed(ada: Person, project: str) -> list[str]:
    return [item["path"] for item in (await ada.get(url(project)))["items"]]


@pytest.fixture
async def fresh(ada: Person, project: str) -> AsyncIterator[str]:
    """Keys are a person's own in all projects, and these tests share one."""
    yield project
    await ada.world.tertulia.db.write(lambda tx: tx.execute(FORGET))


async def test_an_upload_cancelled_before_it_arrives_is_refused(ada: Person, fresh: str) -> None:
    await cancel(ada, fresh)
    answer = await send(ada, fresh, b"x", path="a.md")
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert await listed(ada, fresh) == []


async def test_an_upload_cancelled_while_it_arrives_is_refused_at_its_end(ada: Person, fresh: str) -> None:
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b"one "
        begun.set()
        await goes_on.wait()
        yield b"two"

    sending = asyncio.create_task(send(ada, fresh, body(), path="a.md"))
    await begun.wait()
    await cancel(ada, fresh)
    goes_on.set()
    assert (await sending).status_code == 409
    assert await listed(ada, fresh) == []


async def test_an_upload_cancelled_after_it_was_saved_is_taken_back(ada: Person, fresh: str) -> None:
    assert (await send(ada, fresh, b"x", path="a.md")).status_code == 201
    await cancel(ada, fresh)
    assert await listed(ada, fresh) == []


async def test_a_cancelled_new_version_leaves_the_one_before(ada: Person, world: World, fresh: str) -> None:
    made = await ada.upload("a.md", b"one", fresh)
    assert (await send(ada, fresh, b"two", path="a.md")).json()["items"][0]["version"] == 2
    await at_rest(world.tertulia)
    await cancel(ada, fresh)
    await at_rest(world.tertulia)
    assert (await ada.client.get(url(fresh, made["id"]))).content == b"one"
    info = await ada.get(url(fresh, made["id"], "info"))
    assert (info["version"], info["index"]["state"]) == (1, "indexed")


async def test_all_that_came_out_of_a_cancelled_archive_goes(ada: Person, fresh: str) -> None:
    await ada.upload("kept.md", b"kept", fresh)
    archive = zipped({f"{n:03}.md": f"text {n}" for n in range(120)})
    assert (await send(ada, fresh, archive, unzip="true")).status_code == 201
    await cancel(ada, fresh)
    assert await listed(ada, fresh) == ["kept.md"]


async def test_a_form_is_cancelled_as_a_whole(ada: Person, fresh: str) -> None:
    await form(ada, fresh, file("a.md"), file("b.md"), upload_key=KEY)
    await cancel(ada, fresh)
    assert await listed(ada, fresh) == []


async def test_an_attachment_is_cancelled_too(ada: Person, fresh: str) -> None:
    where = f"/api/projects/{fresh}/attachments"
    params = {"name": "a.md", "upload_key": KEY}
    made = (await ada.client.post(where, params=params, content=b"x", headers=BYTES)).json()
    await cancel(ada, fresh)
    await ada.get(f"/api/attachments/{made['id']}", expect=404)
    late = await ada.client.post(where, params=params, content=b"x", headers=BYTES)
    assert late.status_code == 409


async def test_cancelling_what_never_came_or_cancelling_twice_is_no_error(ada: Person, fresh: str) -> None:
    await cancel(ada, fresh)
    await cancel(ada, fresh)
    assert await listed(ada, fresh) == []


@pytest.mark.parametrize("key", ["", "short", "x" * 65, "with space", "upload/1", "\u00e9" * 8])
async def test_a_key_is_a_short_word(ada: Person, fresh: str, key: str) -> None:
    answer = await ada.client.post(
        url(fresh), params={"path": "a.md", "upload_key": key}, content=b"x", headers=BYTES
    )
    assert answer.status_code == 422
