"""Drafts: the text of running replies."""

from __future__ import annotations

from dataclasses import replace

from tertulia.core.messages import ReadReply
from tertulia.core.turns import Draft, Turn
from tertulia.core.users import Actor
from tertulia.store import drafts
from tertulia.store.database import Database, Tx
from tests.store.samples import VOICES, conversation, draft, opened


def begun(tx: Tx, ada: Actor) -> tuple[Turn, list[Draft]]:
    turn = opened(tx, ada, conversation(tx, ada).id)
    made = [draft(tx, turn, voice) for voice in VOICES]
    drafts.begin(tx, made)
    return turn, made


async def test_drafts_read_back_as_they_were_begun(db: Database, ada: Actor) -> None:
    turn, made = await db.write(lambda tx: begun(tx, ada))
    assert await db.read(lambda tx: drafts.of_turn(tx, turn.id)) == tuple(made)


async def test_a_draft_keeps_what_it_was_shown(db: Database, ada: Actor) -> None:
    turn = await db.write(lambda tx: opened(tx, ada, conversation(tx, ada).id))
    read = (ReadReply("M1", 1, "Alpha"), ReadReply("M2", 2, "Beta", "Answer A"))
    made = await db.write(lambda tx: replace(draft(tx, turn, VOICES[0]), read_replies=read))
    await db.write(lambda tx: drafts.begin(tx, [made]))
    assert await db.read(lambda tx: drafts.of_turn(tx, turn.id)) == (made,)


async def test_a_checkpoint_keeps_what_was_said_so_far(db: Database, ada: Actor) -> None:
    turn, [first, second] = await db.write(lambda tx: begun(tx, ada))
    await db.write(
        lambda tx: drafts.checkpoint(
            tx, [(first.id, "Because", "Hm.", 3), (second.id, "", "…", 1), ("gone", "x", "", 1)]
        )
    )
    assert await db.read(lambda tx: drafts.of_turn(tx, turn.id)) == (
        replace(first, content="Because", thinking="Hm.", number=3),
        replace(second, thinking="…", number=1),
    )


async def test_a_draft_goes_when_it_has_become_a_message(db: Database, ada: Actor) -> None:
    turn, [first, second] = await db.write(lambda tx: begun(tx, ada))
    await db.write(lambda tx: drafts.remove(tx, first.id))
    await db.write(lambda tx: drafts.remove(tx, first.id))
    assert await db.read(lambda tx: drafts.of_turn(tx, turn.id)) == (second,)
    await db.write(lambda tx: drafts.remove_of_turn(tx, turn.id))
    assert await db.read(lambda tx: drafts.of_turn(tx, turn.id)) == ()


async def test_no_drafts_is_nothing_to_do(db: Database, ada: Actor) -> None:
    turn, begun_drafts = await db.write(lambda tx: begun(tx, ada))
    await db.write(lambda tx: drafts.begin(tx, []))
    await db.write(lambda tx: drafts.checkpoint(tx, []))
    assert await db.read(lambda tx: drafts.of_turn(tx, turn.id)) == tuple(begun_drafts)
