"""Enough is enough: a stop reaches the provider, keeps the text and lets no word through."""

from __future__ import annotations

import asyncio

import pytest

from tests.patience import soon
from tests.stories.listening import rounds, said, state_of
from tests.upstream.scripted import Finish, Hold, Say, Stall, refuses
from tests.world import Person, turn


async def stop(person: Person, turn_id: str, reply_id: str | None = None):
    return await person.post(f"/api/turns/{turn_id}/stop", {"reply_id": reply_id}, expect=202)


async def test_a_stop_reaches_every_provider_and_keeps_the_text(ada, upstream):
    upstream.plays((Say("So far "), Say("so good"), Stall()))
    opened = await ada.ask("Talk", "alpha", "beta")
    await said(ada, opened["turn"]["id"], "so good")
    async with soon():
        await stop(ada, opened["turn"]["id"])
        await asyncio.gather(*(seen.closed.wait() for seen in upstream.requests))
    assert await state_of(ada, opened["turn"]["id"]) == "stopped"
    replies = await ada.replies(opened["conversation"]["id"], 1)
    assert [(r["status"], r["content"], r["failure"]) for r in replies] == [
        ("stopped", "So far so good", None)
    ] * 2


async def test_no_word_comes_after_a_stop(ada, upstream):
    stopped = asyncio.Event()
    upstream.plays((Say("Before."), Hold(stopped), *[Say(" After.")] * 50, Finish()))
    opened = await ada.ask("Talk", "alpha")
    await said(ada, opened["turn"]["id"], "Before.")
    await stop(ada, opened["turn"]["id"])
    stopped.set()
    events = await ada.ended(opened["turn"]["id"])
    assert "".join(event.data.get("text", "") for event in events if event.name == "delta") == "Before."
    [reply] = await ada.replies(opened["conversation"]["id"], 1)
    assert reply["content"] == "Before."


async def test_one_reply_can_be_stopped_while_the_other_goes_on(ada, upstream):
    stopped = asyncio.Event()
    upstream.plays((Say("Long-winded"), Stall()), model="alpha")
    upstream.plays((Say("Patient"), Hold(stopped), Say(" and done."), Finish()), model="beta")
    opened = await ada.ask("Talk", "alpha", "beta")
    await said(ada, opened["turn"]["id"], "Long-winded", "Patient")
    page = await ada.get(f"/api/conversations/{opened['conversation']['id']}")
    tiresome = next(draft["id"] for draft in page["drafts"] if draft["voice"]["name"] == "Alpha")
    await stop(ada, opened["turn"]["id"], tiresome)
    async with soon():
        await next(seen for seen in upstream.requests if seen.model == "alpha").closed.wait()
    stopped.set()
    assert await state_of(ada, opened["turn"]["id"]) == "complete"
    alpha, beta = await ada.replies(opened["conversation"]["id"], 1)
    assert (alpha["id"], alpha["status"], alpha["content"]) == (tiresome, "stopped", "Long-winded")
    assert (beta["status"], beta["content"]) == ("complete", "Patient and done.")


async def test_a_stop_before_the_first_word_reaches_the_provider_too(ada, upstream):
    upstream.plays((Stall(),))
    opened = await ada.ask("Silent?", "alpha")
    seen = await upstream.heard()
    async with soon():
        await stop(ada, opened["turn"]["id"])
        await seen.closed.wait()
    assert await state_of(ada, opened["turn"]["id"]) == "stopped"
    [reply] = await ada.replies(opened["conversation"]["id"], 1)
    assert (reply["status"], reply["content"]) == ("stopped", "")


async def test_a_stop_ends_the_wait_for_a_busy_provider(ada, upstream):
    upstream.plays(refuses(429, retry_after="30"))
    opened = await ada.ask("Busy?", "alpha")
    async with soon():
        async for event in ada.follow(opened["turn"]["id"]):
            if event.name == "waiting":
                break
    async with soon():
        await stop(ada, opened["turn"]["id"])
        assert await state_of(ada, opened["turn"]["id"]) == "stopped"
    assert len(upstream.requests) == 1


async def test_a_stop_right_after_the_send_stops_before_anything_is_said(ada, upstream):
    """The two may cross anywhere between the commit and the call; ten of them meet different moments."""
    upstream.plays((Say("Too late"), Stall()))
    for _ in range(10):
        asked = turn("Never mind", "alpha", "beta")
        opened, _ = await asyncio.gather(
            ada.post("/api/turn", asked, expect=202), stop_as_soon_as_known(ada, asked["id"])
        )
        assert await state_of(ada, asked["id"]) == "stopped"
        await asyncio.gather(*(seen.over.wait() for seen in upstream.requests))
        [round_] = await rounds(ada, opened["conversation"]["id"])
        assert {m["status"] for m in round_["messages"] if m["role"] != "user"} <= {"stopped"}


async def stop_as_soon_as_known(person: Person, turn_id: str) -> None:
    async with soon():
        while (await person.client.post(f"/api/turns/{turn_id}/stop", json={})).status_code != 202:
            pass


async def test_a_round_that_waits_in_line_can_be_stopped_and_never_asks_anyone(ada, upstream):
    held = asyncio.Event()
    upstream.plays((Say("First"), Hold(held), Finish()))
    first = await ada.ask("One", "alpha")
    await said(ada, first["turn"]["id"], "First")
    waiting = await ada.ask("Two", "beta", conversation_id=first["conversation"]["id"])
    assert waiting["turn"]["state"] == "queued"
    assert (await stop(ada, waiting["turn"]["id"]))["state"] == "stopped"
    held.set()
    assert await state_of(ada, first["turn"]["id"]) == "complete"
    assert await state_of(ada, waiting["turn"]["id"]) == "stopped"
    assert [seen.model for seen in upstream.requests] == ["alpha"]
    one, two = await rounds(ada, first["conversation"]["id"])
    assert [message["content"] for message in two["messages"]] == ["Two"]
    page = await ada.get(f"/api/conversations/{first['conversation']['id']}")
    assert page["conversation"]["is_answering"] is False


@pytest.mark.parametrize("end", [(Finish(),), ()], ids=["complete", "cut"])
async def test_a_turn_that_is_over_stays_as_it_ended(ada, upstream, end):
    upstream.plays((Say("Done"), *end))
    opened = await ada.ask("Talk", "alpha")
    before = await state_of(ada, opened["turn"]["id"])
    assert (await stop(ada, opened["turn"]["id"]))["state"] == before
    assert (await ada.get(f"/api/turns/{opened['turn']['id']}"))["state"] == before


async def test_a_stranger_can_neither_see_nor_stop_a_turn(ada, bob, upstream):
    upstream.plays((Say("Mine"), Stall()))
    opened = await ada.ask("Private", "alpha")
    await said(ada, opened["turn"]["id"], "Mine")
    await bob.post(f"/api/turns/{opened['turn']['id']}/stop", {}, expect=404)
    assert not upstream.last.closed.is_set()
    await stop(ada, opened["turn"]["id"])
    await ada.ended(opened["turn"]["id"])
