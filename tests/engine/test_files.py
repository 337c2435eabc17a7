"""Files in the engine: stored before they are announced, extracted once, and deleted completely."""

from __future__ import annotations

import asyncio
import hashlib
import random
import sqlite3
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import httpx2
import psutil
import pytest

from tertulia.core.errors import Invalid, NotFound, QuotaSpent
from tertulia.core.files import IndexPhase, MetadataChange, ProjectFile
from tertulia.core.jobs import IndexFile, SweepBlobs
from tertulia.engine.files import Files, text_of
from tertulia.engine.jobs.index_file import index_file
from tertulia.engine.jobs.sweep_blobs import sweep_blobs
from tertulia.library import mime
from tertulia.store import files, projects
from tertulia.store.blobs import GRACE_MS
from tertulia.store.sql import sql
from tests.engine.conftest import Engine
from tests.engine.serving import Sender, served
from tests.library.documents import ENDLESS_PDF, pdf, xlsx, zipped
from tests.patience import soon

SEED = 20261116
LARGE = random.Random(SEED).randbytes(1_200_000)


async def chunks(content: bytes, size: int = 60_000) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


class Desk:
    """Ada with her first project and the commands for its files."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.files = Files(engine.dependencies, wake_workers=lambda: None)
        self.actor = engine.actor
        self.project = engine.db.read_now(lambda tx: projects.visible_to(tx, engine.actor))[0].id

    async def add(self, path: str, content: bytes) -> ProjectFile:
        return await self.files.add(self.actor, self.project, path, chunks(content))

    async def get(self, file_id: str) -> ProjectFile:
        return await self.engine.db.read(lambda tx: files.get(tx, self.actor, self.project, file_id))

    async def index(self, file: ProjectFile) -> ProjectFile:
        await index_file(self.engine.dependencies, IndexFile(file.id))
        return await self.get(file.id)


@pytest.fixture
def desk(engine: Engine) -> Desk:
    return Desk(engine)


# ── coming in


async def test_an_upload_over_the_quota_is_rejected_while_it_is_received(engine: Engine) -> None:
    dependencies = replace(
        engine.dependencies, limits=replace(engine.dependencies.limits, quota_bytes=100_000)
    )
    project = engine.db.read_now(lambda tx: projects.visible_to(tx, engine.actor))[0].id
    asked_for = []

    async def endless() -> AsyncIterator[bytes]:
        async for chunk in chunks(LARGE, 30_000):
            asked_for.append(len(chunk))
            yield chunk

    with pytest.raises(QuotaSpent):
        await Files(dependencies, wake_workers=lambda: None).add(engine.actor, project, "a", endless())
    assert sum(asked_for) == 120_000


# ── reading


async def test_a_file_is_extracted_once_for_all_requests_of_its_text(desk: Desk) -> None:
    others = readers()
    made = await desk.add("a.pdf", pdf(["Hello"]))
    first = await text_of(desk.engine.dependencies, made)
    extractor = desk.engine.dependencies.extractor
    extractor.close()  # whoever reads it again would have to start it again
    assert first.text == "[Page 1]\nHello\n\n"
    assert await text_of(desk.engine.dependencies, made) == first
    copy = await desk.add("copy.pdf", pdf(["Hello"]))
    assert await text_of(desk.engine.dependencies, copy) == first
    assert readers() <= others


def readers() -> set[int]:
    """The extraction processes, including those of other tests."""
    return {
        child.pid for child in psutil.Process().children() if "extract.worker" in " ".join(child.cmdline())
    }


async def test_the_same_bytes_with_another_mime_type_are_extracted_again(desk: Desk) -> None:
    made = await desk.add("a.txt", b"a,b\n1,2\n")
    assert (await text_of(desk.engine.dependencies, made)).text == "a,b\n1,2\n"
    renamed = await desk.files.rename(desk.actor, desk.project, made.id, "a.csv")
    assert (await text_of(desk.engine.dependencies, renamed)).text == "a | b\n1 | 2\n"


@pytest.mark.parametrize(
    ("name", "content", "state", "reason"),
    [
        ("a.md", b"# Plan\n", None, None),
        ("a.png", b"\x89PNG\r\n\x1a\n", IndexPhase.NOT_INDEXED, "An image"),
        ("empty.md", b"", IndexPhase.NOT_INDEXED, "holds no text"),
        ("a.pdf", b"%PDF-1.7", IndexPhase.FAILED, "damaged"),
        ("a.xlsx", xlsx("<!DOCTYPE x>"), IndexPhase.FAILED, "XML"),
    ],
)
async def test_a_file_shows_the_outcome_of_its_indexing(
    desk: Desk, name: str, content: bytes, state: IndexPhase | None, reason: str | None
) -> None:
    file = await desk.index(await desk.add(name, content))
    assert (
        file.index.state is state if state else file.index.state in (IndexPhase.INDEXING, IndexPhase.INDEXED)
    )
    assert (reason or "") in (file.index.reason or "")


async def test_a_harmful_file_is_stored_and_marked_as_failed(desk: Desk) -> None:
    """The bytes stay stored, since they belong to the person; only their extraction fails."""
    bomb = zipped({"[Content_Types].xml": "<Types/>", "word/document.xml": bytes(32 << 20)})
    made = await desk.add("b.docx", bomb)
    assert made.mime_type == mime.DOCX
    indexed = await desk.index(made)
    assert (indexed.index.state, indexed.index.chunks) == (IndexPhase.FAILED, 0)
    assert "not opened" in (indexed.index.reason or "")
    kept = b"".join([block async for block in desk.engine.dependencies.blobs.read(made.content_hash)])
    assert kept == bomb


async def test_deleting_a_file_stops_its_extraction(desk: Desk) -> None:
    made = await desk.add("slow.pdf", ENDLESS_PDF)
    indexing = asyncio.create_task(index_file(desk.engine.dependencies, IndexFile(made.id)))
    async with soon():
        while made.content_hash not in desk.engine.dependencies.extractor.reading:
            await desk.get(made.id)
    await desk.files.remove(desk.actor, desk.project, made.id)
    async with soon():
        await indexing
    with pytest.raises(NotFound):
        await desk.get(made.id)
    leftover = sql("SELECT COUNT(*) AS n FROM file_texts")
    assert (await desk.engine.db.read(lambda tx: tx.one(leftover))).n == 0


async def test_a_version_added_during_the_indexing_keeps_its_own_state(desk: Desk) -> None:
    made = await desk.add("a.md", b"")
    await desk.index(made)
    changed = await desk.files.change(desk.actor, desk.project, made.id, chunks(b"Words"), 1)
    assert (changed.version, changed.index.state) == (2, IndexPhase.QUEUED)
    assert (await desk.index(changed)).index.reason is None


async def test_the_metadata_of_a_file_is_validated(desk: Desk) -> None:
    made = await desk.add("a.md", b"x")
    with pytest.raises(Invalid):
        await desk.files.set_metadata(desk.actor, desk.project, made.id, MetadataChange(tags=("x" * 51,)))


async def test_the_sweep_deletes_blobs_without_references(desk: Desk, tmp_path: Path) -> None:
    made = await desk.add("a.bin", LARGE)
    kept = await desk.add("b.bin", LARGE[::-1])
    await desk.files.remove(desk.actor, desk.project, made.id)
    await sweep_blobs(desk.engine.dependencies, SweepBlobs())
    assert len(stored(tmp_path)) == 2
    await desk.engine.dependencies.blobs.sweep(desk.engine.dependencies.clock() + GRACE_MS)
    assert [path.name for path in stored(tmp_path)] == [kept.content_hash]


def stored(home: Path) -> list[Path]:
    return [path for path in (home / "blobs").rglob("*") if path.is_file()]


# ── kills


@pytest.mark.slow
async def test_a_kill_between_the_bytes_and_the_row_leaves_neither(
    tmp_path: Path,
) -> None:
    """Three kills at random moments of simultaneous uploads; each acknowledged file is complete."""
    print(f"seed {SEED}")
    chance = random.Random(SEED)
    async with served(tmp_path, {}) as server:
        ada = Sender(server)
        await ada.set_up()
        project = (await ada.get("/api/projects"))["items"][0]["id"]
        acknowledged: dict[str, str] = {}
        for number in range(3):
            uploads = [
                asyncio.create_task(
                    upload(ada, project, f"{number}-{n}", chance.randbytes(1_100_000), acknowledged)
                )
                for n in range(4)
            ]
            await asyncio.sleep(chance.uniform(0.02, 0.3))
            await server.kill()
            await asyncio.gather(*uploads)
            assert server.is_sound()
            must_be_whole(tmp_path, acknowledged)
            await server.start()
            assert not list((tmp_path / "blobs" / "incoming").iterdir())
        for path, hash in acknowledged.items():
            listed = await ada.get(f"/api/projects/{project}/files?prefix={path}")
            assert [item["content_hash"] for item in listed["items"]] == [hash]


async def upload(ada: Sender, project: str, path: str, content: bytes, acknowledged: dict[str, str]) -> None:
    async with ada.client() as client:
        with suppress(httpx2.TransportError):
            answer = await client.post(
                f"/api/projects/{project}/files",
                params={"path": path},
                content=chunks(content),
                headers={"Content-Type": "application/octet-stream"},
            )
            assert answer.status_code == 201, answer.text
            acknowledged[path] = answer.json()["items"][0]["content_hash"]


def must_be_whole(home: Path, acknowledged: dict[str, str]) -> None:
    """Checks, while no server runs, that the bytes of each stored row are on the disk."""
    with sqlite3.connect(f"file:{home / 'tertulia.db'}?mode=ro", uri=True) as database:
        rows = database.execute("SELECT hash, size_bytes FROM blobs WHERE keeping = 'disk'").fetchall()
        paths = dict(database.execute("SELECT path, content_hash FROM project_files").fetchall())
    for hash, size in rows:
        content = (home / "blobs" / hash[:2] / hash).read_bytes()
        assert (hashlib.sha256(content).hexdigest(), len(content)) == (hash, size)
    assert acknowledged.items() <= paths.items()
