"""A stop closes the request to the provider, keeps the text so far and sends no more."""

from __future__ import annotations

import asyncio

import pytest

from tests.patience import soon
from tests.stories.waiting import final_state, stored_rounds, wait_for_text
from tests.upstream.scripted import Finish, Hold, Say, Stall, refuses
from tests.world import Person, turn


async def stop(person: Person, turn_id: str, reply_id: str | None = None):
    return await person.post(f"/api/turns/{turn_id}/stop", {"reply_id": reply_id}, expect=202)


async def test_a_stop_closes_every_request_and_keeps_the_text(ada, upstream):
    upstream.plays((Say("So far "), Say("so good"), Stall()))
    opened = await ada.ask("Talk", "alpha", "beta")
    await wait_for_text(ada, opened["turn"]["id"], "so good", replies=2)
    async with soon():
        await stop(ada, opened["turn"]["id"])
        await asyncio.gather(*(request.closed.wait() for request in upstream.requests))
    assert await final_state(ada, opened["turn"]["id"]) == "stopped"
    replies = await ada.replies(opened["conversation"]["id"], 1)
    assert [(r["status"], r["content"], r["failure"]) for r in replies] == [
        ("stopped", "So far so good", None)
    ] * 2


async def test_no_text_is_sent_after_a_stop(ada, upstream):
    release = asyncio.Event()
    upstream.plays((Say("Before."), Hold(release), *[Say(" After.")] * 50, Finish()))
    opened = await ada.ask("Talk", "alpha")
    await wait_for_text(ada, opened["turn"]["id"], "Before.")
    await stop(ada, opened["turn"]["id"])
    release.set()
    events = await ada.wait_for_end(opened["turn"]["id"])
    assert "".join(event.data.get("text", "") for event in events if event.name == "delta") == "Before."
    [reply] = await ada.replies(opened["conversation"]["id"], 1)
    assert reply["content"] == "Before."


async def test_one_reply_can_be_stopped_while_the_other_goes_on(ada, upstream):
    release = asyncio.Event()
    upstream.plays((Say("Long-winded"), Stall()), model="alpha")
    upstream.plays((Say("Patient"), Hold(release), Say(" and done."), Finish()), model="beta")
    opened = await ada.ask("Talk", "alpha", "beta")
    await wait_for_text(ada, opened["turn"]["id"], "Long-winded", "Patient")
    page = await ada.get(f"/api/conversations/{opened['conversation']['id']}")
    alpha_id = next(draft["id"] for draft in page["drafts"] if draft["voice"]["name"] == "Alpha")
    await stop(ada, opened["turn"]["id"], alpha_id)
    async with soon():
        await next(request for request in upstream.requests if request.model == "alpha").closed.wait()
    release.set()
    assert await final_state(ada, opened["turn"]["id"]) == "complete"
    alpha, beta = await ada.replies(opened["conversation"]["id"], 1)
    assert (alpha["id"], alpha["status"], alpha["content"]) == (alpha_id, "stopped", "Long-winded")
    assert (beta["status"], beta["content"]) == ("complete", "Patient and done.")


async def test_a_stop_before_the_first_text_closes_the_request(ada, upstream):
    upstream.plays((Stall(),))
    opened = await ada.ask("Silent?", "alpha")
    request = await upstream.wait_for_request()
    async with soon():
        await stop(ada, opened["turn"]["id"])
        await request.closed.wait()
    assert await final_state(ada, opened["turn"]["id"]) == "stopped"
    [reply] = await ada.replies(opened["conversation"]["id"], 1)
    assert (reply["status"], reply["content"]) == ("stopped", "")


async def test_a_stop_ends_the_wait_before_a_retry(ada, upstream):
    upstream.plays(refuses(429, retry_after="30"))
    opened = await ada.ask("Busy?", "alpha")
    async with soon():
        async for event in ada.follow(opened["turn"]["id"]):
            if event.name == "waiting":
                break
    async with soon():
        await stop(ada, opened["turn"]["id"])
        assert await final_state(ada, opened["turn"]["id"]) == "stopped"
    assert len(upstream.requests) == 1


async def test_a_stop_sent_together_with_the_turn_stops_it(ada, upstream):
    """The stop may arrive at any moment between commit and request; ten tries meet different ones."""
    upstream.plays((Say("Too late"), Stall()))
    for _ in range(10):
        body = turn("Never mind", "alpha", "beta")
        opened, _ = await asyncio.gather(
            ada.post("/api/turn", body, expect=202), stop_as_soon_as_it_exists(ada, body["id"])
        )
        assert await final_state(ada, body["id"]) == "stopped"
        await asyncio.gather(*(request.over.wait() for request in upstream.requests))
        [round_] = await stored_rounds(ada, opened["conversation"]["id"])
        assert {m["status"] for m in round_["messages"] if m["role"] != "user"} <= {"stopped"}


async def stop_as_soon_as_it_exists(person: Person, turn_id: str) -> None:
    async with soon():
        while (await person.client.post(f"/api/turns/{turn_id}/stop", json={})).status_code != 202:
            pass


async def test_a_stopped_queued_round_sends_no_request(ada, upstream):
    release = asyncio.Event()
    upstream.plays((Say("First"), Hold(release), Finish()))
    first = await ada.ask("One", "alpha")
    await wait_for_text(ada, first["turn"]["id"], "First")
    queued = await ada.ask("Two", "beta", conversation_id=first["conversation"]["id"])
    assert queued["turn"]["state"] == "queued"
    assert (await stop(ada, queued["turn"]["id"]))["state"] == "stopped"
    release.set()
    assert await final_state(ada, first["turn"]["id"]) == "complete"
    assert await final_state(ada, queued["turn"]["id"]) == "stopped"
    assert [request.model for request in upstream.requests] == ["alpha"]
    first_round, second_round = await stored_rounds(ada, first["conversation"]["id"])
    assert [message["content"] for message in second_round["messages"]] == ["Two"]
    page = await ada.get(f"/api/conversations/{first['conversation']['id']}")
    assert page["conversation"]["is_answering"] is False


@pytest.mark.parametrize("end", [(Finish(),), ()], ids=["complete", "cut"])
async def test_stopping_a_finished_turn_changes_nothing(ada, upstream, end):
    upstream.plays((Say("Done"), *end))
    opened = await ada.ask("Talk", "alpha")
    before = await final_state(ada, opened["turn"]["id"])
    assert (await stop(ada, opened["turn"]["id"]))["state"] == before
    assert (await ada.get(f"/api/turns/{opened['turn']['id']}"))["state"] == before


async def test_a_stranger_cannot_stop_a_turn(ada, bob, upstream):
    upstream.plays((Say("Mine"), Stall()))
    opened = await ada.ask("Private", "alpha")
    await wait_for_text(ada, opened["turn"]["id"], "Mine")
    await bob.post(f"/api/turns/{opened['turn']['id']}/stop", {}, expect=404)
    assert not upstream.last.closed.is_set()
    await stop(ada, opened["turn"]["id"])
    await ada.wait_for_end(opened["turn"]["id"])
