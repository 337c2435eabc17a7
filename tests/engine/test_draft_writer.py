"""Draft writer: the text of running replies is stored at least every second."""

from __future__ import annotations

import asyncio

from tertulia.engine.draft_writer import EVERY_S, DraftWriter
from tertulia.store import conversations, drafts
from tests.patience import soon
from tests.upstream.scripted import Finish, Hold, Say, Stall


async def test_running_replies_are_stored_and_stored_again_when_they_have_grown(engine, upstream):
    more = asyncio.Event()
    upstream.plays((Say("One"), Hold(more), Say(", two"), Stall()))
    opened = await engine.open("Count", "alpha", "beta")
    await engine.said(opened.turn, "One")
    await engine.writer.checkpoint()
    first = await kept(engine, opened)
    assert all(draft.content in ("", "One") for draft in first)
    assert len(first) == 2
    more.set()
    await engine.said(opened.turn, ", two")
    await engine.writer.checkpoint()
    assert "One, two" in {draft.content for draft in await kept(engine, opened)}


async def test_a_stored_draft_has_the_text_and_its_number(engine, upstream):
    upstream.plays((Say("a"), Say("b"), Say("c"), Stall()))
    opened = await engine.open("Letters")
    await engine.said(opened.turn, "abc")
    await engine.writer.checkpoint()
    [draft] = await kept(engine, opened)
    live = engine.dependencies.live.find(opened.turn.id)
    assert live is not None
    [reply] = live.replies.values()
    assert (draft.content, draft.number) == ("abc", reply.number)


async def test_drafts_are_stored_more_often_than_once_a_second(engine, upstream):
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await asyncio.sleep(0)

    running = asyncio.create_task(DraftWriter(engine.dependencies, sleep).run())
    upstream.plays((Say("Kept."), Stall()))
    opened = await engine.open("Talk")
    await engine.said(opened.turn, "Kept.")
    async with soon():
        while [draft.content for draft in await kept(engine, opened)] != ["Kept."]:
            pass
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert set(waits) == {EVERY_S}
    assert EVERY_S < 1


async def test_a_conversation_deleted_in_between_is_no_incident_and_other_drafts_are_stored(engine, upstream):
    upstream.plays((Say("Talking"), Stall()))
    staying = await engine.open("Stay")
    going = await engine.open("Go")
    await engine.said(staying.turn, "Talking")
    await engine.said(going.turn, "Talking")
    await engine.db.write(lambda tx: conversations.remove(tx, engine.actor, going.conversation.id))
    ticks = 0

    async def sleep(seconds: float) -> None:
        nonlocal ticks
        ticks += 1
        await asyncio.sleep(0)
        if ticks == 3:
            engine.turns.cancel_in([going.conversation.id])
            await engine.over(going.turn)

    running = asyncio.create_task(DraftWriter(engine.dependencies, sleep).run())
    async with soon():
        while [draft.content for draft in await kept(engine, staying)] != ["Talking"]:
            pass
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert engine.incidents == []


async def test_nothing_is_stored_while_no_reply_runs(engine, upstream):
    upstream.plays((Say("Done."), Finish()))
    opened = await engine.open("Talk")
    await engine.over(opened.turn)
    await engine.writer.checkpoint()
    assert await kept(engine, opened) == ()


async def kept(engine, opened):
    return await engine.db.read(lambda tx: drafts.of_turn(tx, opened.turn.id))
