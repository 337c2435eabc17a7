"""Receipts: what was shown can be read again, and a text is kept once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import text

from tertulia.core.errors import NotFound
from tertulia.core.receipts import Layer, Receipt, Segment
from tertulia.core.users import Actor
from tertulia.store import conversations, files, messages, receipts
from tertulia.store.database import Database, Tx
from tests.store.samples import RECEIPT, conversation, file, opened, reply


def kept(tx: Tx, ada: Actor, conversation_id: str, receipt: Receipt) -> str:
    message = reply(tx, opened(tx, ada, conversation_id))
    messages.add(tx, message)
    receipts.save(tx, message.id, conversation_id, receipt, cached_tokens=5)
    return message.id


def texts(tx: Tx) -> list[str]:
    return sorted(row.text for row in tx.execute(text("SELECT text FROM segments")))


async def test_a_receipt_reads_back_as_it_was_saved(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    id = await db.write(lambda tx: kept(tx, ada, made.id, RECEIPT))
    assert await db.read(lambda tx: receipts.get(tx, ada, id)) == RECEIPT


async def test_the_first_pieces_are_said_to_come_from_the_cache_as_far_as_the_provider_counted(
    db: Database, ada: Actor
) -> None:
    """20 of 120 tokens were cached: a sixth of what was sent."""
    made = await db.write(lambda tx: conversation(tx, ada))
    pieces = tuple(Segment(Layer.ROUNDS, "user", f"text {i}", "recent", 10) for i in range(12))
    id = await db.write(lambda tx: kept(tx, ada, made.id, replace(RECEIPT, segments=pieces)))
    assert (await db.read(lambda tx: receipts.get(tx, ada, id))).cached_segments == 2


async def test_a_long_receipt_reads_back_too(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    long = replace(
        RECEIPT, segments=tuple(Segment(Layer.ROUNDS, "user", f"text {i}", "recent", i) for i in range(151))
    )
    id = await db.write(lambda tx: kept(tx, ada, made.id, long))
    assert (await db.read(lambda tx: receipts.get(tx, ada, id))).segments == long.segments


async def test_a_text_shown_again_is_kept_once(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    twice = replace(RECEIPT, segments=RECEIPT.segments * 2)
    first = await db.write(lambda tx: kept(tx, ada, made.id, RECEIPT))
    second = await db.write(lambda tx: kept(tx, ada, made.id, twice))
    assert await db.read(texts) == sorted(segment.text for segment in RECEIPT.segments)
    assert await db.read(lambda tx: receipts.get(tx, ada, first)) == RECEIPT
    assert await db.read(lambda tx: receipts.get(tx, ada, second)) == twice


async def test_a_text_that_no_database_holds_does_not_lose_the_receipt(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    strange = replace(RECEIPT, segments=(Segment(Layer.QUESTION, "user", "a\0b\ud800", "asked now", 1),))
    id = await db.write(lambda tx: kept(tx, ada, made.id, strange))
    read = await db.read(lambda tx: receipts.get(tx, ada, id))
    assert read.segments[0].text == "a\ufffdb\ufffd"


async def test_receipts_go_with_their_conversation(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    id = await db.write(lambda tx: kept(tx, ada, made.id, RECEIPT))
    await db.write(lambda tx: conversations.remove(tx, ada, made.id))
    assert await db.read(texts) == []
    with pytest.raises(NotFound):
        await db.read(lambda tx: receipts.get(tx, ada, id))


async def test_a_receipt_needs_its_message(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    with pytest.raises(NotFound):
        await db.write(lambda tx: receipts.save(tx, "no message", made.id, RECEIPT, 0))


async def test_what_is_deleted_together_is_looked_for_once(db: Database, ada: Actor) -> None:
    def removed(tx: Tx) -> None:
        for made in [file(tx, ada, f"{number}.md") for number in range(3)]:
            files.remove(tx, ada, made.project_id, made.id)

    await db.write(removed)
    jobs = await db.read(lambda tx: tx.execute(text("SELECT id FROM jobs WHERE kind = 'forget_found'")))
    assert len(list(jobs)) == 1
