"""Attachments: whose they are, which message took them, and what becomes of those no message took."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tertulia.core.attachments import UNSENT_KEPT_MS
from tertulia.core.errors import Conflict, Forbidden, Invalid, NotFound
from tertulia.core.projects import Membership
from tertulia.core.prompts import Picture
from tertulia.core.receipts import Layer, LeftOut, Segment
from tertulia.core.turns import State
from tertulia.core.users import Actor
from tertulia.store import (
    attachments,
    conversations,
    files,
    jobs,
    messages,
    projects,
    receipts,
    shelves,
    trees,
    turns,
)
from tertulia.store.blobs import GRACE_MS, Blobs
from tertulia.store.database import Database, Tx
from tests.store.samples import RECEIPT, attachment, content, conversation, file, opened, reply, said_with
from tests.store_fixtures import Clock, Ids, Watch


async def test_an_unsent_one_is_told_to_nobody_and_seen_by_who_brought_it(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, Membership.EDITOR))
    async with watch(ada, bob) as news:
        made = await db.write(lambda tx: attachment(tx, ada))
    assert news == []
    assert await db.read(lambda tx: attachments.get(tx, ada, made.id)) == made
    assert await db.read(lambda tx: attachments.unsent(tx, ada, adas_home, [made.id, made.id])) == (made,)
    for ask in (
        lambda tx: attachments.get(tx, bob, made.id),
        lambda tx: attachments.unsent(tx, bob, adas_home, [made.id]),
        lambda tx: attachments.remove(tx, bob, made.id),
    ):
        with pytest.raises(NotFound):
            await db.write(ask)


async def test_a_message_carries_what_was_brought_along(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, Membership.VIEWER))
    talk = await db.write(lambda tx: conversation(tx, ada))
    brought = await db.write(lambda tx: attachment(tx, ada))
    async with watch(ada, bob):
        said = await db.write(lambda tx: said_with(tx, ada, talk.id, brought))
    assert (await db.read(lambda tx: messages.get(tx, bob, said.id))).attachments == (brought,)
    assert await db.read(lambda tx: attachments.get(tx, bob, brought.id)) == brought
    assert (await db.read(lambda tx: shelves.page(tx, ada, adas_home, limit=5))).items == ()


async def test_one_that_was_sent_is_neither_sent_again_nor_taken_back(
    db: Database, ada: Actor, adas_home: str, watch: Watch
) -> None:
    talk = await db.write(lambda tx: conversation(tx, ada))
    brought = await db.write(lambda tx: attachment(tx, ada))
    said = await db.write(lambda tx: said_with(tx, ada, talk.id, brought))
    async with watch.untouched():
        for ask in (
            lambda tx: attachments.unsent(tx, ada, adas_home, [brought.id]),
            lambda tx: attachments.send(tx, [brought], said.id),
            lambda tx: attachments.remove(tx, ada, brought.id),
        ):
            with pytest.raises(Conflict):
                await db.write(ask)


async def test_two_messages_at_once_cannot_take_the_same_one(db: Database, ada: Actor) -> None:
    talks = [await db.write(lambda tx: conversation(tx, ada)) for _ in range(2)]
    brought = await db.write(lambda tx: attachment(tx, ada))
    ends = await asyncio.gather(
        *(db.write(lambda tx, id=talk.id: said_with(tx, ada, id, brought)) for talk in talks),
        return_exceptions=True,
    )
    assert sorted(isinstance(end, Conflict) for end in ends) == [False, True]


async def test_one_of_another_project_is_not_there(db: Database, ada: Actor, adas_home: str) -> None:
    other = await db.write(lambda tx: projects.add(tx, ada, "Another"))
    brought = await db.write(lambda tx: attachment(tx, ada, project_id=other.id))
    with pytest.raises(NotFound):
        await db.read(lambda tx: attachments.unsent(tx, ada, adas_home, [brought.id]))


async def test_who_may_not_write_brings_nothing_along(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, Membership.VIEWER))
    held = await db.write(lambda tx: content(tx, "x"))
    async with watch.untouched():
        with pytest.raises(Forbidden):
            await db.write(lambda tx: attachments.add(tx, bob, adas_home, "x.md", held))


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("plan.md", "plan.md"),
        ("C:\\fakepath\\plan.md", "plan.md"),
        ("../../etc/passwd", "passwd"),
        ("a/b/cafe\u0301.md ", "caf\u00e9.md"),
    ],
)
async def test_a_name_is_a_name_and_no_path(db: Database, ada: Actor, said: str, kept: str) -> None:
    assert (await db.write(lambda tx: attachment(tx, ada, said))).name == kept


@pytest.mark.parametrize("said", ["", " ", "..", "a/..", "/", "a\x00.md", "invoice\u202efdp.exe", "a" * 256])
async def test_a_name_that_pretends_is_refused(db: Database, ada: Actor, said: str) -> None:
    with pytest.raises(Invalid):
        await db.write(lambda tx: attachment(tx, ada, said))


async def test_it_counts_among_what_a_person_takes_up(db: Database, ada: Actor, bob: Actor) -> None:
    await db.write(lambda tx: file(tx, ada, written="same bytes"))
    await db.write(lambda tx: attachment(tx, ada, written="same bytes"))
    assert await db.read(lambda tx: files.used_bytes(tx, ada.user_id)) == 10
    made = await db.write(lambda tx: attachment(tx, ada, written="others"))
    assert await db.read(lambda tx: files.used_bytes(tx, ada.user_id)) == 16
    assert await db.read(lambda tx: files.used_bytes(tx, bob.user_id)) == 0
    await db.write(lambda tx: attachments.remove(tx, ada, made.id))
    assert await db.read(lambda tx: files.used_bytes(tx, ada.user_id)) == 10


async def test_what_waited_a_day_is_swept_and_what_was_sent_is_not(
    db: Database, ada: Actor, clock: Clock
) -> None:
    talk = await db.write(lambda tx: conversation(tx, ada))
    sent = await db.write(lambda tx: attachment(tx, ada, written="sent"))
    await db.write(lambda tx: said_with(tx, ada, talk.id, sent))
    forgotten = await db.write(lambda tx: attachment(tx, ada, written="forgotten"))
    clock.forward(UNSENT_KEPT_MS // 2)
    fresh = await db.write(lambda tx: attachment(tx, ada, written="fresh"))
    clock.forward(UNSENT_KEPT_MS // 2 + 1)
    await db.write(lambda tx: attachments.sweep(tx, tx.now - UNSENT_KEPT_MS))
    for one in (sent, fresh):
        assert await db.read(lambda tx, id=one.id: attachments.get(tx, ada, id)) == one
    with pytest.raises(NotFound):
        await db.read(lambda tx: attachments.get(tx, ada, forgotten.id))


async def test_its_sweep_is_due_after_a_day_and_left_once_an_hour(
    db: Database, ada: Actor, clock: Clock
) -> None:
    for name in ("a.md", "b.md"):
        await db.write(lambda tx, name=name: attachment(tx, ada, name))

    def claimed(tx: Tx) -> list[str]:
        found = []
        while job := jobs.claim(tx, "node", 1000):
            found.append(job.kind)
            jobs.finish(tx, job.id)
        return found

    assert await db.write(claimed) == []
    clock.forward(UNSENT_KEPT_MS + 2 * 3_600_000)
    assert await db.write(claimed) == ["sweep_attachments"]


async def test_its_bytes_go_some_time_after_its_conversation(
    db: Database, ada: Actor, adas_home: str, clock: Clock, ids: Ids, tmp_path: Path
) -> None:
    blobs = Blobs(db, tmp_path / "blobs", ids)
    talk = await db.write(lambda tx: conversation(tx, ada))
    alone = await db.write(lambda tx: attachment(tx, ada, written="alone"))
    shared = await db.write(lambda tx: attachment(tx, ada, "b.md", written="shared"))
    await db.write(lambda tx: file(tx, ada, written="shared"))
    for one in (alone, shared):
        await db.write(lambda tx, one=one: said_with(tx, ada, talk.id, one))
    clock.forward(2 * GRACE_MS)
    assert await blobs.sweep(clock.now - GRACE_MS) == 0
    await db.write(lambda tx: conversations.remove(tx, ada, talk.id))
    assert await blobs.sweep(clock.now - GRACE_MS) == 0
    clock.forward(GRACE_MS + 1)
    assert await blobs.sweep(clock.now - GRACE_MS) == 1
    with pytest.raises(NotFound):
        await blobs.head(alone.content_hash)
    assert await blobs.head(shared.content_hash) == b"shared"
    blobs.close()


async def test_its_bytes_go_with_the_project_too(
    db: Database, ada: Actor, clock: Clock, ids: Ids, tmp_path: Path
) -> None:
    blobs = Blobs(db, tmp_path / "blobs", ids)
    project = await db.write(lambda tx: projects.add(tx, ada, "Short"))
    await db.write(lambda tx: attachment(tx, ada, project_id=project.id))
    await db.write(lambda tx: projects.remove(tx, ada, project.id))
    clock.forward(GRACE_MS + 1)
    assert await blobs.sweep(clock.now - GRACE_MS) == 1
    blobs.close()


async def test_nothing_of_it_stays_in_the_receipts_when_its_message_is_deleted(
    db: Database, ada: Actor
) -> None:
    talk = await db.write(lambda tx: conversation(tx, ada))
    notes = await db.write(lambda tx: attachment(tx, ada, "secret-notes.md"))
    photo = await db.write(lambda tx: attachment(tx, ada, "secret-photo.png"))
    said = await db.write(lambda tx: said_with(tx, ada, talk.id, notes))
    await db.write(lambda tx: turns.set_state(tx, said.turn_id, State.COMPLETE))
    shown = Segment(Layer.ROUNDS, "user", "the secret", "attached", 3, notes.id, 1, name="secret-notes.md")
    picture = Picture(photo.content_hash, "image/png")
    left = LeftOut(Layer.ROUNDS, "over the budget", 3, notes.id, 1, "secret-notes.md")
    receipt = replace(
        RECEIPT, segments=(shown, replace(shown, picture=picture)), left_out=(left, *RECEIPT.left_out)
    )

    def answer_later(tx: Tx) -> str:
        message = reply(tx, opened(tx, ada, talk.id))
        messages.add(tx, message)
        receipts.save(tx, message.id, talk.id, receipt, 0)
        turns.set_state(tx, message.turn_id, State.COMPLETE)
        return message.id

    later = await db.write(answer_later)
    assert await db.read(lambda tx: receipts.get(tx, ada, later)) == receipt
    await db.write(lambda tx: trees.remove_message(tx, ada, said.id))
    after = await db.read(lambda tx: receipts.get(tx, ada, later))
    assert "secret" not in str(after)
    assert photo.content_hash not in str(after)
    assert [one.tokens for one in after.segments] == [3, 3]


async def test_what_the_first_question_brought_comes_along_again_as_ones_own(
    db: Database, ada: Actor, bob: Actor, adas_home: str
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, Membership.EDITOR))
    talk = await db.write(lambda tx: conversation(tx, ada))
    notes = await db.write(lambda tx: attachment(tx, ada))
    said = await db.write(lambda tx: said_with(tx, ada, talk.id, notes))
    more = await db.write(lambda tx: attachment(tx, bob, "more.md", project_id=adas_home))
    wanted = [notes.id, more.id, notes.id]
    ids = await db.write(lambda tx: attachments.again(tx, bob, adas_home, said, wanted))
    [copied, same] = await db.read(lambda tx: attachments.unsent(tx, bob, adas_home, ids))
    assert copied == replace(notes, id=copied.id)
    assert copied.id != notes.id
    assert same == more
