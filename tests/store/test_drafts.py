"""Drafts: the text of running replies."""

from __future__ import annotations

from dataclasses import replace

from tertulia.core.messages import ReadReply
from tertulia.core.turns import Draft, Turn
from tertulia.core.users import Actor
from tertulia.store import drafts
from tertulia.store.database import Database, Tx
from tests.store.samples import VOICES, conversation, draft, opened


def two_drafts(tx: Tx, ada: Actor) -> tuple[Turn, list[Draft]]:
    turn = opened(tx, ada, conversation(tx, ada).id)
    pair = [draft(tx, turn, voice) for voice in VOICES]
    drafts.begin(tx, pair)
    return turn, pair


async def test_new_drafts_are_read_back_unchanged(db: Database, ada: Actor) -> None:
    turn, pair = await db.write(lambda tx: two_drafts(tx, ada))
    assert await db.read(lambda tx: drafts.of_turn(tx, turn.id)) == tuple(pair)


async def test_a_draft_keeps_the_list_of_replies_its_model_read(db: Database, ada: Actor) -> None:
    turn = await db.write(lambda tx: opened(tx, ada, conversation(tx, ada).id))
    read_replies = (ReadReply("M1", 1, "Alpha"), ReadReply("M2", 2, "Beta", "Answer A"))
    saved = await db.write(lambda tx: replace(draft(tx, turn, VOICES[0]), read_replies=read_replies))
    await db.write(lambda tx: drafts.begin(tx, [saved]))
    assert await db.read(lambda tx: drafts.of_turn(tx, turn.id)) == (saved,)


async def test_a_checkpoint_saves_text_and_thinking_so_far(db: Database, ada: Actor) -> None:
    turn, [first, second] = await db.write(lambda tx: two_drafts(tx, ada))
    await db.write(
        lambda tx: drafts.checkpoint(
            tx, [(first.id, "Because", "Hm.", 3), (second.id, "", "…", 1), ("gone", "x", "", 1)]
        )
    )
    assert await db.read(lambda tx: drafts.of_turn(tx, turn.id)) == (
        replace(first, content="Because", thinking="Hm.", number=3),
        replace(second, thinking="…", number=1),
    )


async def test_a_draft_is_removed_when_its_reply_becomes_a_message(db: Database, ada: Actor) -> None:
    turn, [first, second] = await db.write(lambda tx: two_drafts(tx, ada))
    await db.write(lambda tx: drafts.remove(tx, first.id))
    await db.write(lambda tx: drafts.remove(tx, first.id))
    assert await db.read(lambda tx: drafts.of_turn(tx, turn.id)) == (second,)
    await db.write(lambda tx: drafts.remove_of_turn(tx, turn.id))
    assert await db.read(lambda tx: drafts.of_turn(tx, turn.id)) == ()


async def test_saving_an_empty_list_of_drafts_changes_nothing(db: Database, ada: Actor) -> None:
    turn, pair = await db.write(lambda tx: two_drafts(tx, ada))
    await db.write(lambda tx: drafts.begin(tx, []))
    await db.write(lambda tx: drafts.checkpoint(tx, []))
    assert await db.read(lambda tx: drafts.of_turn(tx, turn.id)) == tuple(pair)
