"""Attachments: who may see them, which message they belong to, and when unsent ones are removed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tertulia.core.attachments import UNSENT_KEPT_MS
from tertulia.core.errors import Conflict, Forbidden, Invalid, NotFound
from tertulia.core.projects import ProjectRole
from tertulia.core.prompts import Picture
from tertulia.core.receipts import Layer, LeftOut, LeftOutReason, Segment, SegmentReason, SourceLocation
from tertulia.core.turns import TurnState
from tertulia.core.users import Actor
from tertulia.store import (
    attachments,
    conversations,
    file_listing,
    files,
    jobs,
    messages,
    projects,
    receipts,
    trees,
    turns,
)
from tertulia.store.blobs import GRACE_MS, Blobs
from tertulia.store.database import Database, Tx
from tests.store.samples import RECEIPT, attachment, content, conversation, file, opened, reply, said_with
from tests.store_fixtures import Clock, Ids, Watch


async def test_an_unsent_attachment_is_visible_to_its_uploader_only_and_emits_no_event(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.EDITOR))
    async with watch(ada, bob) as events:
        notes = await db.write(lambda tx: attachment(tx, ada))
    assert events == []
    assert await db.read(lambda tx: attachments.get(tx, ada, notes.id)) == notes
    assert await db.read(lambda tx: attachments.unsent(tx, ada, adas_home, [notes.id, notes.id])) == (notes,)
    for call in (
        lambda tx: attachments.get(tx, bob, notes.id),
        lambda tx: attachments.unsent(tx, bob, adas_home, [notes.id]),
        lambda tx: attachments.remove(tx, bob, notes.id),
    ):
        with pytest.raises(NotFound):
            await db.write(call)


async def test_a_message_carries_its_attachment_and_project_members_can_read_it(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.VIEWER))
    chat = await db.write(lambda tx: conversation(tx, ada))
    notes = await db.write(lambda tx: attachment(tx, ada))
    async with watch(ada, bob):
        question = await db.write(lambda tx: said_with(tx, ada, chat.id, notes))
    assert (await db.read(lambda tx: messages.get(tx, bob, question.id))).attachments == (notes,)
    assert await db.read(lambda tx: attachments.get(tx, bob, notes.id)) == notes
    assert (await db.read(lambda tx: file_listing.page(tx, ada, adas_home, limit=5))).items == ()


async def test_a_sent_attachment_can_be_neither_sent_again_nor_removed(
    db: Database, ada: Actor, adas_home: str, watch: Watch
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    notes = await db.write(lambda tx: attachment(tx, ada))
    question = await db.write(lambda tx: said_with(tx, ada, chat.id, notes))
    async with watch.untouched():
        for call in (
            lambda tx: attachments.unsent(tx, ada, adas_home, [notes.id]),
            lambda tx: attachments.send(tx, [notes], question.id),
            lambda tx: attachments.remove(tx, ada, notes.id),
        ):
            with pytest.raises(Conflict):
                await db.write(call)


async def test_two_concurrent_messages_cannot_send_the_same_attachment(db: Database, ada: Actor) -> None:
    chats = [await db.write(lambda tx: conversation(tx, ada)) for _ in range(2)]
    notes = await db.write(lambda tx: attachment(tx, ada))
    outcomes = await asyncio.gather(
        *(db.write(lambda tx, id=chat.id: said_with(tx, ada, id, notes)) for chat in chats),
        return_exceptions=True,
    )
    assert sorted(isinstance(outcome, Conflict) for outcome in outcomes) == [False, True]


async def test_an_attachment_of_another_project_is_not_found(
    db: Database, ada: Actor, adas_home: str
) -> None:
    project = await db.write(lambda tx: projects.add(tx, ada, "Another"))
    notes = await db.write(lambda tx: attachment(tx, ada, project_id=project.id))
    with pytest.raises(NotFound):
        await db.read(lambda tx: attachments.unsent(tx, ada, adas_home, [notes.id]))


async def test_a_viewer_cannot_add_an_attachment(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.VIEWER))
    blob = await db.write(lambda tx: content(tx, "x"))
    async with watch.untouched():
        with pytest.raises(Forbidden):
            await db.write(lambda tx: attachments.add(tx, bob, adas_home, "x.md", blob))


@pytest.mark.parametrize(
    ("name", "stored_name"),
    [
        ("plan.md", "plan.md"),
        ("C:\\fakepath\\plan.md", "plan.md"),
        ("../../etc/passwd", "passwd"),
        ("a/b/cafe\u0301.md ", "caf\u00e9.md"),
    ],
)
async def test_an_attachment_name_is_cut_to_the_last_part_of_its_path(
    db: Database, ada: Actor, name: str, stored_name: str
) -> None:
    assert (await db.write(lambda tx: attachment(tx, ada, name))).name == stored_name


@pytest.mark.parametrize("name", ["", " ", "..", "a/..", "/", "a\x00.md", "invoice\u202efdp.exe", "a" * 256])
async def test_an_empty_or_deceptive_attachment_name_is_refused(db: Database, ada: Actor, name: str) -> None:
    with pytest.raises(Invalid):
        await db.write(lambda tx: attachment(tx, ada, name))


async def test_attachments_count_towards_a_users_used_bytes_and_equal_bytes_once(
    db: Database, ada: Actor, bob: Actor
) -> None:
    await db.write(lambda tx: file(tx, ada, written="same bytes"))
    await db.write(lambda tx: attachment(tx, ada, written="same bytes"))
    assert await db.read(lambda tx: files.used_bytes(tx, ada.user_id)) == 10
    second = await db.write(lambda tx: attachment(tx, ada, written="others"))
    assert await db.read(lambda tx: files.used_bytes(tx, ada.user_id)) == 16
    assert await db.read(lambda tx: files.used_bytes(tx, bob.user_id)) == 0
    await db.write(lambda tx: attachments.remove(tx, ada, second.id))
    assert await db.read(lambda tx: files.used_bytes(tx, ada.user_id)) == 10


async def test_a_sweep_removes_attachments_unsent_for_a_day_and_keeps_sent_ones(
    db: Database, ada: Actor, clock: Clock
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    sent = await db.write(lambda tx: attachment(tx, ada, written="sent"))
    await db.write(lambda tx: said_with(tx, ada, chat.id, sent))
    expired = await db.write(lambda tx: attachment(tx, ada, written="forgotten"))
    clock.forward(UNSENT_KEPT_MS // 2)
    fresh = await db.write(lambda tx: attachment(tx, ada, written="fresh"))
    clock.forward(UNSENT_KEPT_MS // 2 + 1)
    await db.write(lambda tx: attachments.sweep(tx, tx.now - UNSENT_KEPT_MS))
    for survivor in (sent, fresh):
        assert await db.read(lambda tx, id=survivor.id: attachments.get(tx, ada, id)) == survivor
    with pytest.raises(NotFound):
        await db.read(lambda tx: attachments.get(tx, ada, expired.id))


async def test_attachments_of_one_hour_share_one_sweep_job_due_after_a_day(
    db: Database, ada: Actor, clock: Clock
) -> None:
    for name in ("a.md", "b.md"):
        await db.write(lambda tx, name=name: attachment(tx, ada, name))

    def run_all(tx: Tx) -> list[str]:
        kinds = []
        while job := jobs.claim(tx, "node", 1000):
            kinds.append(job.kind)
            jobs.finish(tx, job.id)
        return kinds

    assert await db.write(run_all) == []
    clock.forward(UNSENT_KEPT_MS + 2 * 3_600_000)
    assert await db.write(run_all) == ["sweep_attachments"]


async def test_a_deleted_conversations_attachment_bytes_are_removed_after_the_grace_period(
    db: Database, ada: Actor, adas_home: str, clock: Clock, ids: Ids, tmp_path: Path
) -> None:
    blobs = Blobs(db, tmp_path / "blobs", ids)
    chat = await db.write(lambda tx: conversation(tx, ada))
    unshared = await db.write(lambda tx: attachment(tx, ada, written="alone"))
    shared = await db.write(lambda tx: attachment(tx, ada, "b.md", written="shared"))
    await db.write(lambda tx: file(tx, ada, written="shared"))
    for sent in (unshared, shared):
        await db.write(lambda tx, sent=sent: said_with(tx, ada, chat.id, sent))
    clock.forward(2 * GRACE_MS)
    assert await blobs.sweep(clock.now - GRACE_MS) == 0
    await db.write(lambda tx: conversations.remove(tx, ada, chat.id))
    assert await blobs.sweep(clock.now - GRACE_MS) == 0
    clock.forward(GRACE_MS + 1)
    assert await blobs.sweep(clock.now - GRACE_MS) == 1
    with pytest.raises(NotFound):
        await blobs.head(unshared.content_hash)
    assert await blobs.head(shared.content_hash) == b"shared"
    blobs.close()


async def test_a_deleted_projects_attachment_bytes_are_removed_after_the_grace_period(
    db: Database, ada: Actor, clock: Clock, ids: Ids, tmp_path: Path
) -> None:
    blobs = Blobs(db, tmp_path / "blobs", ids)
    project = await db.write(lambda tx: projects.add(tx, ada, "Short"))
    await db.write(lambda tx: attachment(tx, ada, project_id=project.id))
    await db.write(lambda tx: projects.remove(tx, ada, project.id))
    clock.forward(GRACE_MS + 1)
    assert await blobs.sweep(clock.now - GRACE_MS) == 1
    blobs.close()


async def test_deleting_a_message_redacts_its_attachments_in_later_receipts(db: Database, ada: Actor) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    notes = await db.write(lambda tx: attachment(tx, ada, "secret-notes.md"))
    photo = await db.write(lambda tx: attachment(tx, ada, "secret-photo.png"))
    question = await db.write(lambda tx: said_with(tx, ada, chat.id, notes))
    await db.write(lambda tx: turns.set_state(tx, question.turn_id, TurnState.COMPLETE))
    location = SourceLocation(file_name="secret-notes.md")
    reason = SegmentReason.ATTACHED
    segment = Segment(Layer.ROUNDS, "user", "the secret", reason, 3, notes.id, 1, location=location)
    picture = Picture(photo.content_hash, "image/png")
    left_out = LeftOut(Layer.ROUNDS, LeftOutReason.OVER_BUDGET, 3, notes.id, 1, location)
    receipt = replace(
        RECEIPT, segments=(segment, replace(segment, picture=picture)), left_out=(left_out, *RECEIPT.left_out)
    )

    def answer_later(tx: Tx) -> str:
        message = reply(tx, opened(tx, ada, chat.id))
        messages.add(tx, message)
        receipts.save(tx, message.id, chat.id, receipt)
        turns.set_state(tx, message.turn_id, TurnState.COMPLETE)
        return message.id

    later_id = await db.write(answer_later)
    assert await db.read(lambda tx: receipts.get(tx, ada, later_id)) == receipt
    await db.write(lambda tx: trees.remove_message(tx, ada, question.id))
    redacted = await db.read(lambda tx: receipts.get(tx, ada, later_id))
    assert "secret" not in str(redacted)
    assert photo.content_hash not in str(redacted)
    assert [segment.tokens for segment in redacted.segments] == [3, 3]


async def test_an_edited_question_gets_copies_of_the_first_questions_attachments(
    db: Database, ada: Actor, bob: Actor, adas_home: str
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.EDITOR))
    chat = await db.write(lambda tx: conversation(tx, ada))
    notes = await db.write(lambda tx: attachment(tx, ada))
    question = await db.write(lambda tx: said_with(tx, ada, chat.id, notes))
    own_notes = await db.write(lambda tx: attachment(tx, bob, "more.md", project_id=adas_home))
    edited_ids = [notes.id, own_notes.id, notes.id]
    ids = await db.write(lambda tx: attachments.again(tx, bob, adas_home, question, edited_ids))
    [copy, own] = await db.read(lambda tx: attachments.unsent(tx, bob, adas_home, ids))
    assert copy == replace(notes, id=copy.id)
    assert copy.id != notes.id
    assert own == own_notes
