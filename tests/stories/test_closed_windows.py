"""A turn runs on the server: it goes on when its author closes every window or signs out."""

from __future__ import annotations

import asyncio

from tests.stories.waiting import is_event, read_until, wait_for_item
from tests.upstream.scripted import Finish, Hold, Say
from tests.world import turn


async def test_a_turn_goes_on_when_every_window_is_closed(world, ada, upstream):
    release = asyncio.Event()
    upstream.plays((Say("You left,"), Hold(release), Say(" I went on."), Finish()))
    body = turn("Answer while I am away", "alpha")
    async with ada.live() as tab:
        await tab.follow(f"project:{ada.home}")
        async with ada.client.stream(
            "POST", "/api/turn", json=body, headers={"Accept": "text/event-stream"}
        ) as response:
            await read_until(response, "You left,")
    request = await upstream.wait_for_request()
    release.set()
    await request.over.wait()
    assert not request.closed.is_set()
    returned = await world.sign_in("ada@example.org")
    await returned.wait_for_end(body["id"])
    conversation = (await returned.get(f"/api/turns/{body['id']}"))["conversation_id"]
    [reply] = await returned.replies(conversation, 1)
    assert (reply["status"], reply["content"]) == ("complete", "You left, I went on.")


async def test_a_turn_goes_on_when_the_person_signs_out(world, ada, upstream):
    release = asyncio.Event()
    upstream.plays((Say("Still"), Hold(release), Say(" here."), Finish()))
    opened = await ada.ask("Good night", "alpha")
    await upstream.wait_for_request()
    await ada.post("/api/logout", expect=204)
    release.set()
    returned = await world.sign_in("ada@example.org")
    await returned.wait_for_end(opened["turn"]["id"])
    [reply] = await returned.replies(opened["conversation"]["id"], 1)
    assert reply["content"] == "Still here."


async def test_a_client_that_returns_gets_the_end_of_the_turn_at_once(ada, upstream):
    opened = await ada.ask("Quick", "alpha")
    await ada.wait_for_end(opened["turn"]["id"])
    async with ada.live() as tab:
        place = f"conversation:{opened['conversation']['id']}"
        item = await wait_for_item(tab, place, lambda i: is_event(i, "turn") and i["value"]["finished_at"])
        assert item["value"]["state"] == "complete"
