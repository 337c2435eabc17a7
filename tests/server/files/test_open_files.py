"""Uploads and downloads close every file they open, however they end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.library.documents import bomb, zipped
from tests.open_files import nothing_left_open
from tests.server import raw
from tests.server.cast import at_rest
from tests.server.files.asking import field, file, form, url
from tests.world import Person, World, running

pytestmark = pytest.mark.asyncio(loop_scope="module")

BYTES = {"Content-Type": "application/octet-stream"}
LARGE = bytes(range(256)) * 5_000
"""Larger than a blob that is stored in a database row."""
TOO_LARGE = bytes(3 << 20)

Ask = Callable[[Person, str], Awaitable[Any]]


async def sent(ada: Person, project: str, content: bytes, **params: str) -> int:
    answer = await ada.client.post(url(project), params=params, content=content, headers=BYTES)
    return answer.status_code


REFUSED: dict[str, Ask] = {
    "no path": lambda ada, project: sent(ada, project, LARGE),
    "a path elsewhere": lambda ada, project: sent(ada, project, LARGE, path="../x"),
    "no such project": lambda ada, _: sent(ada, "0" * 26, LARGE, path="a"),
    "too large": lambda ada, project: sent(ada, project, TOO_LARGE, path="a"),
    "no file in the form": lambda ada, project: form(ada, project, field("a.md"), expect=422),
    "a bad name in the form": lambda ada, project: form(ada, project, file("../a", LARGE), expect=422),
    "one too large in the form": lambda ada, project: form(
        ada, project, file("a", LARGE), file("b", TOO_LARGE), expect=413
    ),
    "no archive": lambda ada, project: sent(ada, project, LARGE, unzip="true"),
    "a bomb": lambda ada, project: sent(ada, project, bomb(64 << 20), unzip="true"),
    "an empty archive": lambda ada, project: sent(ada, project, zipped({"docs/": ""}), unzip="true"),
    "an archive with a file that is too large": lambda ada, project: sent(
        ada, project, zipped({"large": TOO_LARGE}), unzip="true"
    ),
}


@pytest.mark.parametrize("ask", REFUSED.values(), ids=REFUSED.keys())
async def test_a_refused_upload_leaves_no_file_open(
    ada: Person, world: World, project: str, ask: Ask
) -> None:
    with nothing_left_open():
        await ask(ada, project)
        await at_rest(world.tertulia)


async def test_an_upload_that_is_cut_off_leaves_no_file_open(ada: Person, world: World, project: str) -> None:
    cookies = "; ".join(f"{name}={value}" for name, value in ada.client.cookies.items())
    head = raw.request(
        f"{url(project)}?path=cut",
        ("Host", world.host),
        ("Origin", world.url),
        ("Cookie", cookies),
        ("Content-Type", "application/octet-stream"),
        ("Content-Length", str(2 * len(LARGE))),
        method="POST",
    )
    host, _, port = world.host.partition(":")
    with nothing_left_open():
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(head + LARGE)
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        while world.tertulia.files._uploads._arriving:
            await ada.get("/api/health")
    assert (await ada.get(url(project)))["items"] == []


async def test_a_download_that_is_cut_off_leaves_no_file_open(
    ada: Person, world: World, project: str
) -> None:
    made = await ada.upload("large.bin", LARGE, project)
    await at_rest(world.tertulia)
    with nothing_left_open():
        for _ in range(3):
            async with ada.client.stream("GET", url(project, made["id"])) as response:
                await anext(response.aiter_raw())
        await ada.get("/api/health")


async def test_a_server_that_stops_while_it_reads_files_leaves_none_open(tmp_path: Path) -> None:
    """Its worker is cancelled wherever it is."""
    for pauses in range(0, 60, 15):
        with nothing_left_open():
            async with running(tmp_path / str(pauses), {}) as world:
                ada = await world.set_up("Ada")
                for n in range(3):
                    await ada.upload(f"{n}.md", f"# {n}\n".encode())
                    await ada.upload(f"{n}.bin", LARGE + bytes([n]))
                for _ in range(pauses):
                    await asyncio.sleep(0)
