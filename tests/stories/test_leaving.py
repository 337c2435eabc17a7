"""A turn belongs to the house: whoever asked may leave, and finds the answer when they come back."""

from __future__ import annotations

import asyncio

from tests.patience import soon
from tests.stories.listening import heard, is_event
from tests.upstream.scripted import Finish, Hold, Say
from tests.world import turn


async def test_closing_every_window_stops_nothing(world, ada, upstream):
    held = asyncio.Event()
    upstream.plays((Say("You left,"), Hold(held), Say(" I went on."), Finish()))
    asked = turn("Answer while I am away", "alpha")
    async with ada.live() as tab:
        await tab.follow(f"project:{ada.home}")
        async with ada.client.stream(
            "POST", "/api/turn", json=asked, headers={"Accept": "text/event-stream"}
        ) as response:
            async for line in response.aiter_lines():
                if "You left," in line:
                    break
    seen = await upstream.heard()
    held.set()
    async with soon():
        await seen.over.wait()
    assert not seen.closed.is_set()
    back = await world.sign_in("ada@example.org")
    await back.ended(asked["id"])
    conversation = (await back.get(f"/api/turns/{asked['id']}"))["conversation_id"]
    [reply] = await back.replies(conversation, 1)
    assert (reply["status"], reply["content"]) == ("complete", "You left, I went on.")


async def test_signing_out_in_the_middle_stops_nothing_either(world, ada, upstream):
    held = asyncio.Event()
    upstream.plays((Say("Still"), Hold(held), Say(" here."), Finish()))
    opened = await ada.ask("Good night", "alpha")
    await upstream.heard()
    await ada.post("/api/logout", expect=204)
    held.set()
    back = await world.sign_in("ada@example.org")
    await back.ended(opened["turn"]["id"])
    [reply] = await back.replies(opened["conversation"]["id"], 1)
    assert reply["content"] == "Still here."


async def test_whoever_returns_sees_the_end_at_once(ada, upstream):
    opened = await ada.ask("Quick", "alpha")
    await ada.ended(opened["turn"]["id"])
    async with ada.live() as tab:
        place = f"conversation:{opened['conversation']['id']}"
        over = await heard(tab, place, lambda i: is_event(i, "turn") and i["value"]["finished_at"])
        assert over["value"]["state"] == "complete"
