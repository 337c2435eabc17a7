"""Receipts: the prompt segments of a reply read back, and each distinct text is stored once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tertulia.core.errors import NotFound
from tertulia.core.receipts import Layer, Receipt, Segment, SegmentReason
from tertulia.core.turns import Purpose
from tertulia.core.users import Actor
from tertulia.store import conversations, files, messages, receipts, turns
from tertulia.store.database import Database, Tx
from tertulia.store.sql import sql
from tests.store.samples import RECEIPT, conversation, file, opened, reply, turn


def store_receipt(tx: Tx, ada: Actor, conversation_id: str, receipt: Receipt) -> str:
    message = reply(tx, opened(tx, ada, conversation_id))
    messages.add(tx, message)
    receipts.save(tx, message.id, conversation_id, receipt)
    return message.id


def texts(tx: Tx) -> list[str]:
    return sorted(row.text for row in tx.execute(sql("SELECT text FROM segments")))


async def test_a_receipt_reads_back_as_it_was_saved(db: Database, ada: Actor) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    id = await db.write(lambda tx: store_receipt(tx, ada, chat.id, RECEIPT))
    assert await db.read(lambda tx: receipts.get(tx, ada, id)) == RECEIPT


async def test_the_first_segments_are_counted_as_cached_by_the_share_of_cached_tokens(
    db: Database, ada: Actor
) -> None:
    """20 of 120 tokens were cached, a sixth of the prompt."""
    chat = await db.write(lambda tx: conversation(tx, ada))
    segments = tuple(Segment(Layer.ROUNDS, "user", f"text {i}", SegmentReason.RECENT, 10) for i in range(12))
    id = await db.write(lambda tx: store_receipt(tx, ada, chat.id, replace(RECEIPT, segments=segments)))
    assert (await db.read(lambda tx: receipts.get(tx, ada, id))).cached_segments == 2


async def test_a_receipt_with_many_segments_reads_back(db: Database, ada: Actor) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    long = replace(
        RECEIPT,
        segments=tuple(
            Segment(Layer.ROUNDS, "user", f"text {i}", SegmentReason.RECENT, i) for i in range(151)
        ),
    )
    id = await db.write(lambda tx: store_receipt(tx, ada, chat.id, long))
    assert (await db.read(lambda tx: receipts.get(tx, ada, id))).segments == long.segments


async def test_a_text_in_several_receipts_is_stored_once(db: Database, ada: Actor) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    twice = replace(RECEIPT, segments=RECEIPT.segments * 2)
    first = await db.write(lambda tx: store_receipt(tx, ada, chat.id, RECEIPT))
    second = await db.write(lambda tx: store_receipt(tx, ada, chat.id, twice))
    assert await db.read(texts) == sorted(segment.text for segment in RECEIPT.segments)
    assert await db.read(lambda tx: receipts.get(tx, ada, first)) == RECEIPT
    assert await db.read(lambda tx: receipts.get(tx, ada, second)) == twice


async def test_characters_that_no_database_stores_are_replaced_in_a_receipt(db: Database, ada: Actor) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    strange = replace(
        RECEIPT, segments=(Segment(Layer.QUESTION, "user", "a\0b\ud800", SegmentReason.ASKED_NOW, 1),)
    )
    id = await db.write(lambda tx: store_receipt(tx, ada, chat.id, strange))
    receipt = await db.read(lambda tx: receipts.get(tx, ada, id))
    assert receipt.segments[0].text == "a\ufffdb\ufffd"


async def test_receipts_are_deleted_with_their_conversation(db: Database, ada: Actor) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    id = await db.write(lambda tx: store_receipt(tx, ada, chat.id, RECEIPT))
    await db.write(lambda tx: conversations.remove(tx, ada, chat.id))
    assert await db.read(texts) == []
    with pytest.raises(NotFound):
        await db.read(lambda tx: receipts.get(tx, ada, id))


async def test_a_receipt_cannot_be_stored_without_its_message(db: Database, ada: Actor) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    with pytest.raises(NotFound):
        await db.write(lambda tx: receipts.save(tx, "no message", chat.id, RECEIPT))


async def test_a_deleted_branch_is_redacted_in_every_version_of_its_summary(db: Database, ada: Actor) -> None:
    segment = Segment(Layer.QUESTION, "user", "the secret", SegmentReason.BRANCH_ROUND, 3, "deleted")
    receipt = replace(RECEIPT, segments=(segment,))

    def summarise_twice(tx: Tx) -> list[str]:
        chat = conversation(tx, ada)
        first = opened(tx, ada, chat.id, purpose=Purpose.SUMMARY)
        again = turn(tx, ada, chat.id, purpose=Purpose.RETRY, round_number=first.round_number)
        turns.open(tx, again, "again")
        replies = [reply(tx, first), reply(tx, again)]
        for message in replies:
            messages.add(tx, message)
            receipts.save(tx, message.id, chat.id, receipt)
        receipts.redact_branch(tx, chat.id, {"deleted"})
        return [message.id for message in replies]

    ids = await db.write(summarise_twice)
    for id in ids:
        [redacted] = (await db.read(lambda tx, id=id: receipts.get(tx, ada, id))).segments
        assert redacted.text == receipts.DELETED_TEXT
    assert "the secret" not in await db.read(texts)


async def test_files_deleted_together_share_one_redaction_job(db: Database, ada: Actor) -> None:
    def remove_files(tx: Tx) -> None:
        for file_ in [file(tx, ada, f"{number}.md") for number in range(3)]:
            files.remove(tx, ada, file_.project_id, file_.id)

    await db.write(remove_files)
    jobs = await db.read(
        lambda tx: tx.execute(sql("SELECT id FROM jobs WHERE kind = 'redact_search_receipts'"))
    )
    assert len(list(jobs)) == 1
