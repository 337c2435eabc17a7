"""Upload cancellation: nothing of a cancelled upload stays saved, whichever request comes first."""

from __future__ import annotations

import pytest

from tertulia.core.errors import Conflict
from tertulia.core.files import IndexPhase, ProjectFile
from tertulia.core.projects import ProjectRole
from tertulia.core.users import Actor
from tertulia.store import attachments, file_listing, files, projects, uploads, versions
from tertulia.store.database import Database, Tx
from tertulia.store.sql import sql
from tests.store.samples import content
from tests.store_fixtures import Watch

KEY, OTHER_KEY = "upload-1", "upload-2"


def put(
    tx: Tx, actor: Actor, project: str, path: str, content_text: str, key: str | None = KEY
) -> ProjectFile:
    return files.put(tx, actor, project, path, content(tx, content_text), key)


async def paths(db: Database, actor: Actor, project: str) -> list[str]:
    page = await db.read(lambda tx: file_listing.page(tx, actor, project, limit=100))
    return [file_.path for file_ in page.items]


async def test_cancelling_an_upload_deletes_its_new_files(
    db: Database, ada: Actor, adas_home: str, watch: Watch
) -> None:
    await db.write(lambda tx: put(tx, ada, adas_home, "kept.md", "kept", OTHER_KEY))
    for path in ("a.md", "docs/b.md"):
        await db.write(lambda tx, path=path: put(tx, ada, adas_home, path, path))
    await db.write(lambda tx: uploads.cancel(tx, ada, adas_home, KEY))
    assert await paths(db, ada, adas_home) == ["kept.md"]
    waiting = sql("SELECT COUNT(*) AS n FROM jobs WHERE kind = 'index_file' AND state = 'waiting'")
    assert (await db.read(lambda tx: tx.one(waiting))).n == 1


async def test_cancelling_an_upload_restores_the_files_it_changed(
    db: Database, ada: Actor, adas_home: str
) -> None:
    before = await db.write(lambda tx: put(tx, ada, adas_home, "a.md", "one", None))
    for content_text in ("two", "three"):  # one form may hold the same path twice
        await db.write(lambda tx, content_text=content_text: put(tx, ada, adas_home, "a.md", content_text))
    await db.write(lambda tx: uploads.cancel(tx, ada, adas_home, KEY))
    restored = await db.read(lambda tx: files.get(tx, ada, adas_home, before.id))
    assert (restored.version, restored.content_hash, restored.upload_key) == (1, before.content_hash, None)
    assert restored.index.state is IndexPhase.QUEUED
    file_versions = await db.read(lambda tx: versions.of_file(tx, ada, adas_home, before.id))
    assert [version.number for version in file_versions] == [1]


async def test_a_file_uploaded_again_after_a_cancellation_is_indexed(
    db: Database, ada: Actor, adas_home: str
) -> None:
    """Its second version is stored a second time, and with it a job with the same key."""
    file = await db.write(lambda tx: put(tx, ada, adas_home, "a.md", "one", None))
    await db.write(lambda tx: put(tx, ada, adas_home, "a.md", "two"))
    await db.write(lambda tx: uploads.cancel(tx, ada, adas_home, KEY))
    await db.write(lambda tx: tx.execute(sql("DELETE FROM jobs WHERE state = 'waiting' AND key IS NULL")))
    uploaded_again = await db.write(lambda tx: put(tx, ada, adas_home, "a.md", "two", OTHER_KEY))
    assert (uploaded_again.id, uploaded_again.version) == (file.id, 2)
    key = f"index_file:{file.id}:2"
    job = sql("SELECT state FROM jobs WHERE key = :key")
    assert (await db.read(lambda tx: tx.one(job, key=key))).state == "waiting"


async def test_an_upload_under_a_cancelled_key_is_rejected(
    db: Database, ada: Actor, bob: Actor, adas_home: str
) -> None:
    await db.write(lambda tx: uploads.cancel(tx, ada, adas_home, KEY))
    with pytest.raises(Conflict, match="cancelled"):
        await db.read(lambda tx: uploads.must_not_be_cancelled(tx, ada.user_id, KEY))
    await db.read(lambda tx: uploads.must_not_be_cancelled(tx, ada.user_id, OTHER_KEY))
    await db.read(lambda tx: uploads.must_not_be_cancelled(tx, bob.user_id, KEY))


async def test_a_key_cancels_only_the_user_s_own_uploads(
    db: Database, ada: Actor, bob: Actor, adas_home: str
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.EDITOR))
    await db.write(lambda tx: put(tx, ada, adas_home, "a.md", "hers"))
    await db.write(lambda tx: uploads.cancel(tx, bob, adas_home, KEY))
    assert await paths(db, ada, adas_home) == ["a.md"]


async def test_a_file_that_another_user_changed_since_is_not_restored(
    db: Database, ada: Actor, bob: Actor, adas_home: str
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.EDITOR))
    file = await db.write(lambda tx: put(tx, ada, adas_home, "a.md", "hers"))
    await db.write(lambda tx: put(tx, bob, adas_home, "a.md", "his", None))
    await db.write(lambda tx: uploads.cancel(tx, ada, adas_home, KEY))
    assert (await db.read(lambda tx: files.get(tx, ada, adas_home, file.id))).version == 2


@pytest.mark.parametrize("second", [None, OTHER_KEY])
async def test_a_file_that_another_upload_holds_too_stays(
    db: Database, ada: Actor, adas_home: str, second: str | None
) -> None:
    await db.write(lambda tx: put(tx, ada, adas_home, "a.md", "same"))
    await db.write(lambda tx: put(tx, ada, adas_home, "a.md", "same", second))
    await db.write(lambda tx: uploads.cancel(tx, ada, adas_home, KEY))
    assert await paths(db, ada, adas_home) == ["a.md"]


async def test_an_upload_that_was_sent_twice_is_cancelled_completely(
    db: Database, ada: Actor, adas_home: str
) -> None:
    """The client missed the response to its first attempt."""
    for _ in range(2):
        await db.write(lambda tx: put(tx, ada, adas_home, "a.md", "same"))
    await db.write(lambda tx: uploads.cancel(tx, ada, adas_home, KEY))
    assert await paths(db, ada, adas_home) == []


async def test_cancelling_an_upload_deletes_its_attachments(db: Database, ada: Actor, adas_home: str) -> None:
    for key in (KEY, OTHER_KEY):
        await db.write(
            lambda tx, key=key: attachments.add(tx, ada, adas_home, "a.md", content(tx, key), upload_key=key)
        )
    await db.write(lambda tx: uploads.cancel(tx, ada, adas_home, KEY))
    rows = await db.read(lambda tx: tx.execute(sql("SELECT upload_key FROM attachments")))
    assert [row.upload_key for row in rows] == [OTHER_KEY]


async def test_old_cancellations_are_deleted(db: Database, ada: Actor, adas_home: str) -> None:
    await db.write(lambda tx: uploads.cancel(tx, ada, adas_home, KEY))
    await db.write(lambda tx: uploads.forget_cancelled(tx, tx.now + 1))
    await db.read(lambda tx: uploads.must_not_be_cancelled(tx, ada.user_id, KEY))
    count = await db.read(lambda tx: tx.one(sql("SELECT COUNT(*) AS n FROM cancelled_uploads")))
    assert count.n == 0
