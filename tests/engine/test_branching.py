"""Branching under concurrency: simultaneous requests, waiting branches, and crashes."""

from __future__ import annotations

import asyncio

from tertulia.app import new_id
from tertulia.core.messages import Status, Step
from tertulia.core.tables import VoiceRef
from tertulia.core.turns import Purpose, TurnState
from tertulia.engine.jobs import JOBS
from tertulia.engine.requests import BringBackRequest, NewEdit, RetryRequest
from tertulia.store import branches, receipts, trees
from tertulia.store.sql import sql
from tests.engine.conftest import engine_in
from tests.upstream.scripted import Finish, Hold, Say, Stall

ALPHA = (VoiceRef("voices:alpha"),)


async def answered(engine, text: str, **more):
    opened = await engine.open(text, **more)
    assert await engine.over(opened.turn) is TurnState.COMPLETE
    return opened


async def family(engine, conversation_id: str):
    return await engine.db.read(lambda tx: branches.family(tx, engine.actor, conversation_id))


async def test_the_same_edit_sent_four_times_at_once_opens_one_branch(engine, upstream):
    first = await answered(engine, "One?")
    request = NewEdit(new_id(), "Two?", ALPHA, "quick")
    made = await asyncio.gather(
        *(engine.turns.edit(engine.actor, first.conversation.id, 1, request) for _ in range(4))
    )
    assert len({opened.conversation.id for opened in made}) == 1
    await engine.over(made[0].turn)
    assert len(await family(engine, first.conversation.id)) == 2


async def test_the_same_retry_sent_four_times_at_once_opens_one_branch(engine, upstream):
    first = await answered(engine, "One?")
    await answered(engine, "Two?", conversation_id=first.conversation.id)
    [reply] = await engine.replies(first.turn)
    request = RetryRequest(new_id())
    made = await asyncio.gather(*(engine.turns.retry(engine.actor, reply.id, request) for _ in range(4)))
    assert len({opened.conversation.id for opened in made}) == 1
    assert await engine.over(made[0].turn) is TurnState.COMPLETE
    assert len(await family(engine, first.conversation.id)) == 2
    [new] = await engine.replies(made[0].turn)
    assert new.replaces_id == reply.id


async def test_two_retries_of_one_reply_open_two_branches(engine, upstream):
    first = await answered(engine, "One?")
    await answered(engine, "Two?", conversation_id=first.conversation.id)
    [reply] = await engine.replies(first.turn)
    made = await asyncio.gather(
        *(engine.turns.retry(engine.actor, reply.id, RetryRequest(new_id())) for _ in range(2))
    )
    for opened in made:
        assert await engine.over(opened.turn) is TurnState.COMPLETE
    assert len(await family(engine, first.conversation.id)) == 3


async def test_a_message_deleted_during_an_answer_is_redacted_from_the_receipt_written_after(
    engine, upstream
):
    upstream.says("The code is marigold.")
    first = await answered(engine, "What is the code?")
    [said] = await engine.replies(first.turn)
    go_on = asyncio.Event()
    upstream.plays((Say("One"), Hold(go_on), Finish()))
    second = await engine.open("And now?", conversation_id=first.conversation.id)
    await engine.said(second.turn, "One")
    await engine.db.write(lambda tx: trees.remove_message(tx, engine.actor, said.id))
    go_on.set()
    await engine.over(second.turn)
    [late] = await engine.replies(second.turn)
    assert "marigold" in str(await receipt_of(engine, late))
    [left] = await engine.db.read(
        lambda tx: tx.execute(sql("SELECT payload, run_at FROM jobs WHERE kind = 'redact_receipts'"))
    )
    assert left.run_at > engine.dependencies.clock()
    await JOBS["redact_receipts"](engine.dependencies, left.payload)
    assert "marigold" not in str(await receipt_of(engine, late))


async def receipt_of(engine, reply):
    return await engine.db.read(lambda tx: receipts.get(tx, engine.actor, reply.id))


async def begun(engine, upstream, go_on: asyncio.Event):
    """An unfinished round, and a branch of a branch that inherits it."""
    upstream.plays((Say("The code "), Hold(go_on), Say("is marigold."), Finish()))
    first = await engine.open("What is the code?")
    await engine.said(first.turn, "The code ")
    child = await branched(engine, first.conversation.id)
    upstream.says("Noted.")
    return first, await branched(engine, child.id)


async def branched(engine, conversation_id: str):
    return await engine.db.write(lambda tx: branches.add(tx, engine.actor, conversation_id, at_round=1))


async def test_a_branch_waits_for_an_inherited_round_that_is_unfinished(engine, upstream):
    go_on = asyncio.Event()
    first, branch = await begun(engine, upstream, go_on)
    opened = await engine.open("And now?", conversation_id=branch.id)
    assert opened.turn.state is TurnState.QUEUED
    go_on.set()
    assert await engine.over(opened.turn) is TurnState.COMPLETE
    assert await engine.over(first.turn) is TurnState.COMPLETE
    asked = upstream.requests[-1].body["messages"]
    assert [one["content"] for one in asked if one["role"] == "assistant"] == ["The code is marigold."]


async def test_a_turn_that_waits_in_a_branch_can_be_stopped(engine, upstream):
    go_on = asyncio.Event()
    first, branch = await begun(engine, upstream, go_on)
    opened = await engine.open("And now?", conversation_id=branch.id)
    await engine.turns.stop(engine.actor, opened.turn.id)
    assert await engine.over(opened.turn) is TurnState.STOPPED
    assert len(upstream.requests) == 1
    go_on.set()
    assert await engine.over(first.turn) is TurnState.COMPLETE


async def test_a_branch_from_an_earlier_round_does_not_wait(engine, upstream):
    first = await answered(engine, "One?")
    branch = await branched(engine, first.conversation.id)
    go_on = asyncio.Event()
    upstream.plays((Say("Two"), Hold(go_on), Finish()), (Say("Else."), Finish()))
    second = await engine.open("Two?", conversation_id=first.conversation.id)
    await engine.said(second.turn, "Two")
    assert (
        await engine.over((await engine.open("Else?", conversation_id=branch.id)).turn) is TurnState.COMPLETE
    )
    go_on.set()
    assert await engine.over(second.turn) is TurnState.COMPLETE


async def test_the_summary_of_a_branch_waits_in_the_queue_of_the_parent(engine, upstream):
    first = await answered(engine, "One?")
    edited = await engine.turns.edit(
        engine.actor, first.conversation.id, 1, NewEdit(new_id(), "Else?", ALPHA, "quick")
    )
    await engine.over(edited.turn)
    upstream.plays((Say("Going on"), Stall()), (Say("In short."), Finish()))
    running = await engine.open("Two?", conversation_id=first.conversation.id)
    await engine.said(running.turn, "Going on")
    back = await engine.turns.bring_back(
        engine.actor, edited.conversation.id, BringBackRequest(new_id(), ALPHA[0])
    )
    assert (back.turn.state, back.turn.round_number) == (TurnState.QUEUED, 3)
    await engine.turns.stop(engine.actor, running.turn.id)
    assert await engine.over(back.turn) is TurnState.COMPLETE
    assert [reply.content for reply in await engine.replies(back.turn)] == ["In short."]


async def test_a_branch_summary_that_a_crash_interrupted_can_be_retried(tmp_path, upstream):
    async with engine_in(tmp_path, upstream) as engine:
        first = await answered(engine, "One?")
        edited = await engine.turns.edit(
            engine.actor, first.conversation.id, 1, NewEdit(new_id(), "Else?", ALPHA, "quick")
        )
        await engine.over(edited.turn)
        upstream.plays((Stall(),))
        back = await engine.turns.bring_back(
            engine.actor, edited.conversation.id, BringBackRequest(new_id(), ALPHA[0])
        )
    async with engine_in(tmp_path, upstream) as engine:
        [cut] = await engine.replies(back.turn)
        assert (cut.status, cut.step) == (Status.INTERRUPTED, Step.SUMMARY)
        upstream.says("In short.")
        again = await engine.turns.retry(engine.actor, cut.id, RetryRequest(new_id()))
        assert (again.turn.purpose, await engine.over(again.turn)) == (Purpose.RETRY, TurnState.COMPLETE)
        [told] = await engine.replies(back.turn)
        assert (told.content, told.step, told.replaces_id) == ("In short.", Step.SUMMARY, cut.id)
