"""Uploads while they arrive: limits, disconnects, malformed forms, and memory (UP 9 to 11)."""

from __future__ import annotations

import asyncio
import logging
import zipfile
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
import pytest_asyncio
from starlette.requests import Request

from tertulia.core.errors import Malformed, TertuliaError, TooLarge
from tertulia.server.multipart import AROUND_BYTES, FormReader
from tertulia.server.uploads import body as body_of
from tests.calls import counted_calls
from tests.library.documents import zipped
from tests.patience import soon
from tests.server import raw
from tests.server.cast import at_rest
from tests.store_fixtures import contents
from tests.world import Person, World, running

pytestmark = pytest.mark.asyncio(loop_scope="module")

MIB = 1 << 20
BYTES = {"Content-Type": "application/octet-stream"}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    limits = {"TERTULIA_UPLOAD_LIMIT_MIB": "4", "TERTULIA_QUOTA_MIB": "12"}
    async with running(tmp_path_factory.mktemp("home"), limits) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def ada(world: World) -> Person:
    return await world.set_up("Ada")


@pytest_asyncio.fixture(loop_scope="module")
async def where(ada: Person) -> AsyncIterator[str]:
    """The file route of a new project, which is deleted afterwards to free the quota."""
    project = (await ada.post("/api/projects", {"name": "Files"}, expect=201))["id"]
    yield f"/api/projects/{project}/files"
    await ada.delete(f"/api/projects/{project}")


@pytest.fixture(autouse=True)
def no_incident(caplog: pytest.LogCaptureFixture) -> Any:
    """No test of this module may cause an incident."""
    yield
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def on_disk(world: World) -> list[Path]:
    return [path for path in (world.home / "blobs").rglob("*") if path.is_file()]


async def stored(world: World) -> tuple[Any, list[Path]]:
    rows = await asyncio.to_thread(contents, world.tertulia.db)
    tables = ("project_files", "file_versions", "blobs", "blob_pieces")
    return [rows[table] for table in tables], on_disk(world)


async def blocks(count: int, block: bytes = b"x" * (256 << 10)) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield block


# ── limits


async def test_an_endless_body_is_refused_at_the_limit(ada: Person, world: World, where: str) -> None:
    before = await stored(world)
    most = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal most
        async for block in blocks(400):
            most = max(most, sum(path.stat().st_size for path in on_disk(world)))
            yield block

    answer = await ada.client.post(where, params={"path": "a"}, content=endless(), headers=BYTES)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert most <= 5 * MIB
    assert await stored(world) == before


async def test_a_body_with_too_large_a_content_length_is_refused_at_once(
    world: World, ada: Person, where: str
) -> None:
    head = raw.request(
        f"{where}?path=a",
        ("Host", world.host),
        ("Origin", world.url),
        ("Cookie", cookie(ada)),
        ("Content-Type", "application/octet-stream"),
        ("Content-Length", str(100 * MIB)),
        method="POST",
    )
    answer = await raw.send(world, head)
    assert answer.status == 413


async def test_a_file_of_exactly_the_limit_is_accepted(ada: Person, where: str) -> None:
    exact = await ada.client.post(where, params={"path": "a"}, content=bytes(4 * MIB), headers=BYTES)
    assert exact.status_code == 201
    over = await ada.client.post(where, params={"path": "b"}, content=bytes(4 * MIB + 1), headers=BYTES)
    assert over.status_code == 413
    form = await ada.client.post(where, files=[("file", ("c", bytes(4 * MIB + 1)))])
    assert form.status_code == 413
    put = await ada.client.put(f"{where}/{exact.json()['items'][0]['id']}", content=blocks(17), headers=BYTES)
    assert put.status_code == 413


async def test_the_quota_limits_files_and_counts_old_versions(ada: Person, world: World, where: str) -> None:
    for n in range(2):
        content = bytes([n]) * (4 * MIB)
        assert (
            await ada.client.post(where, params={"path": f"{n}"}, content=content, headers=BYTES)
        ).is_success
    await ada.upload("0", b"a new version, the old one is kept", where.split("/")[3])
    listed = await ada.get(where)
    assert listed["quota_bytes"] - listed["used_bytes"] < 4 * MIB
    await at_rest(world.tertulia)
    before = await stored(world)
    answer = await ada.client.post(where, params={"path": "3"}, content=blocks(16), headers=BYTES)
    assert (answer.status_code, answer.json()["code"]) == (413, "quota_spent")
    packed = zipped({f"{n}": bytes([n, n + 1]) * MIB for n in range(3)})
    answer = await ada.client.post(where, params={"unzip": "true"}, content=packed, headers=BYTES)
    assert (answer.status_code, answer.json()["code"]) == (413, "quota_spent")
    assert await stored(world) == before
    same = await ada.client.post(where, params={"path": "again"}, content=b"\0" * (4 * MIB), headers=BYTES)
    assert (
        same.status_code == 413 or same.json()["items"]
    )  # content that is stored already takes no more space
    await ada.delete(f"{where}/{listed['items'][0]['id']}")
    assert (await ada.client.post(where, params={"path": "3"}, content=blocks(16), headers=BYTES)).is_success


async def test_an_archive_over_the_quota_saves_no_file(ada: Person, world: World, where: str) -> None:
    """Its first files fit into the quota and come before those that do not."""
    before = await stored(world)
    packed = zipped(
        {f"{n:02}": b"x" for n in range(60)}
        | {f"large{n}": bytes([n]) * (3 * MIB + MIB // 2) for n in range(4)}
    )
    answer = await ada.client.post(where, params={"unzip": "true"}, content=packed, headers=BYTES)
    assert (answer.status_code, answer.json()["code"]) == (413, "quota_spent")
    assert await stored(world) == before


async def test_files_in_an_archive_have_the_same_size_limit(ada: Person, where: str) -> None:
    packed = zipped({"large": bytes(4 * MIB + 1), "small": "x"})
    answer = await ada.client.post(where, params={"unzip": "true"}, content=packed, headers=BYTES)
    assert [item["path"] for item in answer.json()["items"]] == ["small"]
    assert answer.json()["refused"] == [{"path": "large", "reason": "A file holds at most 4 MiB."}]


async def test_simultaneous_uploads_share_the_quota(ada: Person, where: str) -> None:
    """Each fits alone; together they need twice the quota."""

    async def upload(n: int) -> int:
        block = bytes([n]) * (256 << 10)
        answer = await ada.client.post(
            where, params={"path": f"{n}"}, content=blocks(12, block), headers=BYTES
        )
        return answer.status_code

    answers = await asyncio.gather(*(upload(n) for n in range(8)))
    assert set(answers) <= {201, 413}
    assert 1 <= answers.count(201) <= 4
    assert (await ada.get(where))["used_bytes"] <= 12 * MIB


async def test_the_quota_is_checked_again_at_the_end_of_an_upload(
    ada: Person, world: World, where: str
) -> None:
    """It fits when it begins; other uploads use up the quota before it ends."""
    await ada.upload("a", b"x", where.split("/")[3])
    others_are_saved = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        async for block in blocks(16):
            yield block
            await others_are_saved.wait()

    before = on_disk(world)
    sending = ada.client.post(where, params={"path": "slow"}, content=slow(), headers=BYTES)
    upload = asyncio.create_task(sending)
    async with soon():
        while await asyncio.to_thread(on_disk, world) == before:
            pass
    for n in range(2):
        other = await ada.client.post(
            where, params={"path": f"{n}"}, content=bytes([n]) * (4 * MIB), headers=BYTES
        )
        assert other.is_success
    others_are_saved.set()
    answer = await upload
    assert (answer.status_code, answer.json()["code"]) == (413, "quota_spent")


async def test_damaged_files_of_an_archive_are_deleted_at_once(ada: Person, world: World, where: str) -> None:
    """Each file is large enough to be written to the disk before the damage is found."""
    content = bytes(range(256)) * 1200
    packed = damaged({f"{n:02}.bin": content for n in range(12)}, content[:64])
    before, most = on_disk(world), 0

    async def look() -> None:
        nonlocal most
        while True:
            most = max(most, len(on_disk(world)) - len(before))
            await asyncio.sleep(0)

    looking = asyncio.create_task(look())
    answer = await ada.client.post(where, params={"unzip": "true"}, content=packed, headers=BYTES)
    looking.cancel()
    assert answer.json()["message"].startswith("00.bin was not uploaded. It is damaged")
    assert most <= 3
    assert on_disk(world) == before


def damaged(parts: dict[str, bytes], start: bytes) -> bytes:
    """An archive in which each file that begins with these bytes is damaged."""
    packed = zipped(parts, zipfile.ZIP_STORED)
    return packed.replace(start, bytes(len(start)))


# ── disconnects


async def cut(world: World, ada: Person, where: str, kind: str = "application/octet-stream") -> None:
    """Sends half of the declared length and disconnects."""
    host, _, port = world.host.partition(":")
    head = raw.request(
        f"{where}?path=cut",
        ("Host", world.host),
        ("Origin", world.url),
        ("Cookie", cookie(ada)),
        ("Content-Type", kind),
        ("Content-Length", str(2 * MIB)),
        method="POST",
    )
    _, writer = await asyncio.open_connection(host, int(port))
    body = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n' if "form" in kind else b""
    )
    writer.write(head + body + b"x" * MIB)
    with suppress(ConnectionError):
        await writer.drain()
    writer.close()


@pytest.mark.parametrize("kind", ["application/octet-stream", "multipart/form-data; boundary=b"])
async def test_a_client_that_disconnects_during_an_upload_leaves_nothing(
    ada: Person, world: World, where: str, kind: str
) -> None:
    before, used = await stored(world), (await ada.get(where))["used_bytes"]
    for _ in range(20):
        await cut(world, ada, where, kind)
    await asyncio.gather(*(cut(world, ada, where, kind) for _ in range(80)))
    async with soon():
        while world.tertulia.files._uploads._arriving or await stored(world) != before:
            await ada.get(where)
    assert (await ada.get(where))["used_bytes"] == used


async def test_bytes_after_the_content_length_are_not_part_of_the_file(
    world: World, ada: Person, where: str
) -> None:
    """The bytes after the Content-Length belong neither to the file nor to a new request."""
    head = raw.request(
        f"{where}?path=short",
        ("Host", world.host),
        ("Origin", world.url),
        ("Cookie", cookie(ada)),
        ("Content-Type", "application/octet-stream"),
        method="POST",
        body=b"12345",
    )
    assert (await raw.send(world, head + b"67890")).status in (201, 400)
    assert {item["size_bytes"] for item in (await ada.get(where))["items"]} <= {5}


async def test_an_incomplete_form_saves_only_its_complete_files(
    ada: Person, world: World, where: str
) -> None:
    body = part("a.md", b"whole") + part("b.md", b"half")
    answer = await send_form(ada, where, body)
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")
    assert [item["path"] for item in (await ada.get(where))["items"]] == ["a.md"]


# ── malformed forms


def part(name: str, content: bytes) -> bytes:
    head = f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    return head.encode() + content + b"\r\n"


async def send_form(
    person: Person, where: str, body: bytes, kind: str = "multipart/form-data; boundary=b"
) -> httpx2.Response:
    return await person.client.post(where, content=body, headers={"Content-Type": kind})


GOOD = part("a.md", b"x") + b"--b--\r\n"
BROKEN = {
    "no boundary": (GOOD, "multipart/form-data"),
    "an empty boundary": (GOOD, "multipart/form-data; boundary="),
    "a long boundary": (GOOD, "multipart/form-data; boundary=" + "b" * 300),
    "another boundary": (GOOD, "multipart/form-data; boundary=c"),
    "nothing": (b"", "multipart/form-data; boundary=b"),
    "only an end": (b"--b--\r\n", "multipart/form-data; boundary=b"),
    "a large header": (
        b"--b\r\nX-Large: " + b"x" * MIB + b"\r\n\r\nx\r\n--b--\r\n",
        "multipart/form-data; boundary=b",
    ),
    "many headers": (
        b"--b\r\n" + b"X-A: b\r\n" * 100 + b"\r\nx\r\n--b--\r\n",
        "multipart/form-data; boundary=b",
    ),
    "many parts": (
        b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\ny\r\n' * 10_000 + b"--b--\r\n",
        "multipart/form-data; boundary=b",
    ),
    "much before": (b"\r\n" * (2 * MIB) + GOOD, "multipart/form-data; boundary=b"),
    "much after": (GOOD + b"x" * (4 * MIB), "multipart/form-data; boundary=b"),
    "a header without an end": (b"--b\r\nContent-Disposition: form-data", "multipart/form-data; boundary=b"),
    "a long field": (
        b'--b\r\nContent-Disposition: form-data; name="path"\r\n\r\n' + b"x" * 100_000 + b"\r\n--b--\r\n",
        "multipart/form-data; boundary=b",
    ),
}


@pytest.mark.parametrize(("body", "kind"), BROKEN.values(), ids=BROKEN.keys())
async def test_a_malformed_form_is_refused_and_saves_nothing(
    ada: Person, world: World, where: str, body: bytes, kind: str
) -> None:
    await at_rest(world.tertulia)
    before = await stored(world)
    answer = await send_form(ada, where, body, kind)
    assert answer.status_code in (400, 413, 422), answer.text
    assert await stored(world) == before


async def chunked(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), 65_536):
        yield body[start : start + 65_536]


HOSTILE = {
    "parts": b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\ny\r\n' * 10_000,
    "a header": b"--b\r\nX: " + b"x" * MIB,
    "before": b"\r\n" * (50 * MIB),
    "before, dashes": b"\r\n--" * (2 * MIB),
    "after": GOOD + b"x" * (100 * MIB),
    "after, boundaries": GOOD + b"\r\n--b" * (4 * MIB),
    "near boundaries": part("a", b"\r\n--" * 10_000),
    "semicolons": b"--b\r\nContent-Disposition: form-data" + b";" * 60_000 + b"\r\n\r\nx",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
async def test_a_hostile_form_is_refused_with_little_work(body: bytes) -> None:
    """Little of it is read and few functions are called: the event loop's thread serves all clients."""
    received = 0

    async def counted() -> AsyncIterator[bytes]:
        nonlocal received
        async for block in chunked(body):
            received += len(block)
            yield block

    form = FormReader("multipart/form-data; boundary=b", counted())
    with counted_calls() as calls, suppress(TertuliaError):
        async for _ in form.parts():
            async for _ in form.content():
                pass
    assert received <= 2 * AROUND_BYTES + 131_072
    assert calls() < 1_000_000


async def test_an_upload_that_stops_arriving_is_cut_off() -> None:
    messages = [{"type": "http.request", "body": b"x", "more_body": True}]

    async def receive() -> Any:
        return messages.pop() if messages else await asyncio.Event().wait()

    arriving = body_of(Request({"type": "http", "method": "POST", "headers": []}, receive), silence_s=0)
    async with soon():
        assert await anext(arriving) == b"x"
        with pytest.raises(Malformed, match="cut off"):
            await anext(arriving)


async def test_a_long_field_of_a_form_is_refused() -> None:
    """A field is read completely into memory, unlike a file."""
    received = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal received
        yield b'--b\r\nContent-Disposition: form-data; name="path"\r\n\r\n'
        while received < 4 * MIB:
            received += 65_536
            yield b"x" * 65_536

    form = FormReader("multipart/form-data; boundary=b", endless())
    assert (await anext(form.parts())).name == "path"
    with pytest.raises(TooLarge, match="field"):
        await form.text()
    assert received <= MIB


async def test_bytes_around_the_parts_are_limited() -> None:
    received = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal received
        while True:
            received += 65_536
            yield b"\r\n" * 32_768

    with pytest.raises(TooLarge):
        async for _ in FormReader("multipart/form-data; boundary=b", endless()).parts():
            pass
    assert received <= AROUND_BYTES + 131_072


async def test_a_form_in_chunks_of_any_size_reads_the_same() -> None:
    body = part("a.md", b"one\r\n--not the boundary") + part("b.md", b"\r\n") + part("c", b"") + b"--b--\r\n"

    async def read(size: int) -> list[tuple[str | None, bytes]]:
        async def pieces() -> AsyncIterator[bytes]:
            for start in range(0, len(body), size):
                yield body[start : start + size]

        form = FormReader("multipart/form-data; boundary=b", pieces())
        return [(part.filename, b"".join([d async for d in form.content()])) async for part in form.parts()]

    whole = await read(len(body))
    assert whole == [("a.md", b"one\r\n--not the boundary"), ("b.md", b"\r\n"), ("c", b"")]
    for size in range(1, 40):
        assert await read(size) == whole


async def test_a_form_without_a_boundary_or_of_another_type_is_malformed() -> None:
    with pytest.raises(Malformed):
        FormReader("multipart/form-data", chunked(b""))
    with pytest.raises(Malformed):
        FormReader("multipart/mixed; boundary=b", chunked(b""))


# ── memory and other clients


async def test_a_large_file_is_never_completely_in_memory(tmp_path: Path) -> None:
    """200 MB are uploaded and downloaded while the server's memory grows by less than 64 MiB."""
    limits = {"TERTULIA_UPLOAD_LIMIT_MIB": "300", "TERTULIA_QUOTA_MIB": "1000"}
    async with running(tmp_path, limits) as world:
        ada = await world.set_up("Ada")
        url = f"/api/projects/{ada.home}/files"
        block = bytes(range(256)) * 1024
        await ada.upload("warm.bin", block * 8)
        watched = asyncio.create_task(memory_growth())
        answer = await ada.client.post(
            url, params={"path": "large.bin"}, content=blocks(800, block), headers=BYTES, timeout=60
        )
        [made] = answer.json()["items"]
        size = 0
        async with ada.client.stream("GET", f"{url}/{made['id']}", timeout=60) as response:
            async for chunk in response.aiter_bytes():
                size += len(chunk)
        watched.cancel()
        grown = await watched
    assert made["size_bytes"] == size == 800 * len(block)
    assert grown < 64 * MIB


async def memory_growth() -> int:
    """The most by which this process's memory grew, until cancelled."""
    process = psutil.Process()
    began = most = process.memory_info().rss
    try:
        while True:
            most = max(most, process.memory_info().rss)
            await asyncio.sleep(0)
    except asyncio.CancelledError:
        return int(most - began)


async def test_others_are_served_while_a_large_upload_runs(ada: Person, world: World, where: str) -> None:
    other = await world.sign_in("ada@example.org")
    may_end = asyncio.Event()

    async def held() -> AsyncIterator[bytes]:
        async for block in blocks(8):
            yield block
        await may_end.wait()
        async for block in blocks(8):
            yield block

    before = on_disk(world)
    upload = asyncio.create_task(ada.client.post(where, params={"path": "a"}, content=held(), headers=BYTES))
    async with soon():
        while await asyncio.to_thread(on_disk, world) == before:
            await other.get("/api/health")
    assert (await other.get(where))["items"] == []
    assert not upload.done()
    may_end.set()
    assert (await upload).is_success


def cookie(person: Person) -> str:
    return "; ".join(f"{name}={value}" for name, value in person.client.cookies.items())
