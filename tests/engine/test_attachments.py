"""Attachments in the engine: uploaded as a stream, read for a prompt, and deleted by a job if unsent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tertulia.core.attachments import UNSENT_KEPT_MS, Attachment
from tertulia.core.errors import NotFound
from tertulia.core.jobs import SweepAttachments
from tertulia.core.messages import Message, Role, Status
from tertulia.core.prompts import Picture, Prompt, PromptMessage
from tertulia.engine.attachments import Attachments, pictures_of, read_all
from tertulia.engine.uploads import Uploads
from tertulia.store import attachments, jobs, projects
from tertulia.store.database import Tx
from tertulia.store.sql import sql
from tests.engine.conftest import Engine
from tests.library.documents import png

LARGE = png(800, 600) + bytes(2 << 20)


async def take(engine: Engine, name: str, content: bytes) -> Attachment:
    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(content), 100_000):
            yield content[start : start + 100_000]

    home = await engine.db.read(lambda tx: projects.visible_to(tx, engine.actor)[0].id)
    verbs = Attachments(engine.dependencies, Uploads(engine.dependencies, wake_workers=lambda: None))
    return await verbs.add(engine.actor, home, name, chunks())


def said(*brought: Attachment) -> Message:
    return Message("m", "c", 1, "t", "user", Role.USER, "Look", Status.COMPLETE, "u", 0, attachments=brought)


async def test_a_picture_is_stored_with_its_size_and_sent_to_the_model(engine: Engine) -> None:
    made = await take(engine, "photo.png", LARGE)
    assert (made.mime_type, made.width, made.height) == ("image/png", 800, 600)
    shown = PromptMessage("user", "Look", pictures=(Picture(made.content_hash, made.mime_type),) * 2)
    assert await pictures_of(engine.dependencies, Prompt("", (shown, shown))) == {made.content_hash: LARGE}
    assert await pictures_of(engine.dependencies, Prompt("", (PromptMessage("user", "Hello"),))) == {}


async def test_an_attachment_is_extracted_once_and_an_unreadable_one_has_a_reason(engine: Engine) -> None:
    notes = await take(engine, "notes.md", b"# Notes\n")
    photo = await take(engine, "photo.png", png(2, 2))
    gone = replace(notes, id="gone", content_hash="0" * 64)
    for _ in range(2):
        read = await read_all(engine.dependencies, [said(notes, photo), said(gone)], 1 << 20)
        assert [(one.id, one.text) for one in read] == [(notes.id, "# Notes\n"), ("gone", "")]
        assert read[1].reason


async def test_the_job_deletes_attachments_unsent_for_more_than_a_day(engine: Engine) -> None:
    old, fresh = await take(engine, "old.md", b"old"), await take(engine, "fresh.md", b"fresh")

    def age(tx: Tx) -> None:
        long_ago = tx.now - UNSENT_KEPT_MS - 1
        tx.execute(sql("UPDATE attachments SET created_at = :at WHERE id = :id"), at=long_ago, id=old.id)
        jobs.enqueue(tx, SweepAttachments())

    await engine.db.write(age)
    while await engine.worker.work():
        pass
    assert await engine.db.read(lambda tx: jobs.dead_jobs(tx)) == ()
    assert await engine.db.read(lambda tx: attachments.get(tx, engine.actor, fresh.id)) == fresh
    with pytest.raises(NotFound):
        await engine.db.read(lambda tx: attachments.get(tx, engine.actor, old.id))
