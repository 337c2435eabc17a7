"""Every window that follows a conversation gets the same events and texts in the same order."""

from __future__ import annotations

import asyncio

import pytest

from tertulia.app import new_id
from tertulia.server.live_socket import LiveSocket
from tests.device import Device, Item
from tests.patience import soon
from tests.server.cast import at_rest
from tests.stories.waiting import wait_for_text
from tests.timers import HOUR
from tests.upstream.scripted import Cut, Finish, Hold, Say, Stall, refuses, says
from tests.world import Person


async def test_a_second_window_gets_every_event_of_the_round_in_order(world, ada, upstream):
    upstream.says("RecordedRequest by both.")
    second_device = await world.sign_in("ada@example.org")
    first = await ada.ask("Begin", "alpha")
    await ada.wait_for_end(first["turn"]["id"])
    place = f"conversation:{first['conversation']['id']}"
    page = await second_device.get(f"/api/conversations/{first['conversation']['id']}")
    async with second_device.live() as window:
        await window.follow(place, page["cursor"])
        opened = await ada.ask("Again", "alpha", conversation_id=first["conversation"]["id"])
        items = await window.until(
            lambda i: i["type"] == "event" and i["noun"] == "turn" and i["value"]["finished_at"]
        )
    numbers = [item["number"] for item in items if item["type"] == "event"]
    assert numbers == list(range(page["cursor"] + 1, page["cursor"] + 1 + len(numbers)))
    assert [item["value"]["content"] for item in items if item.get("noun") == "message"] == [
        "Again",
        "RecordedRequest by both.",
    ]
    assert items[-1]["id"] == opened["turn"]["id"]


async def test_a_window_opened_during_a_reply_gets_events_then_drafts_then_deltas(ada, upstream):
    release = asyncio.Event()
    upstream.plays((Say("Before"), Hold(release), Say(" and after."), Finish()))
    opened = await ada.ask("Talk", "alpha", "beta")
    await wait_for_text(ada, opened["turn"]["id"], "Before")
    async with ada.live() as window:
        first = await window.follow(f"conversation:{opened['conversation']['id']}")
        assert [item["type"] for item in first] == ["event", "event", "draft", "draft", "following"]
        assert {item["noun"] for item in first[:2]} == {"message", "turn"}
        release.set()
        rest = await window.until(lambda item: item["type"] == "event")
    assert {item["type"] for item in rest[:-1]} == {"delta"}
    for item in rest[:-1]:
        draft = next(d["value"] for d in first if d["type"] == "draft" and d["value"]["id"] == item["id"])
        assert item["after"] >= draft["number"]
        assert item["number"] > item["after"]


async def test_the_wait_before_a_retry_is_sent_with_its_end(ada, upstream):
    upstream.says("Hello.")
    first = await ada.ask("Are you there?", "alpha")
    await ada.wait_for_end(first["turn"]["id"])
    upstream.plays(refuses(429, retry_after="55"), says("Here."))
    place = f"conversation:{first['conversation']['id']}"
    async with ada.live() as window:
        device = Device(cursors={place: 0})
        items = await window.follow(place)
        opened = await ada.ask("Busy?", "alpha", conversation_id=first["conversation"]["id"])
        items += await window.until(is_waiting)
        await ada.post(f"/api/turns/{opened['turn']['id']}/retry-now", expect=202)
        items += await window.until(
            lambda i: i["type"] == "event" and i["noun"] == "message" and i["value"]["content"] == "Here."
        )
    device.take(*items)
    waits = [i["value"] for i in items if i["type"] == "waiting"]
    waits += [i["value"]["waiting"] for i in items if i["type"] == "draft" and i["value"]["waiting"]]
    wait_ = next(wait for wait in waits if wait)
    assert (wait_["attempt"], wait_["attempts"]) == (1, 2)
    assert wait_["until"] > opened["turn"]["created_at"]
    assert wait_["reason"] == "voices asked us to slow down. Too many requests this minute."
    assert [i["value"] for i in items if i["type"] == "waiting"][-1] is None


def is_waiting(item: Item) -> bool:
    value = item.get("value") or {}
    return bool(value if item["type"] == "waiting" else item["type"] == "draft" and value["waiting"])


async def test_the_deltas_of_a_fast_model_are_batched(ada, upstream, monkeypatch):
    """A frame with words is followed by a pause, here of an hour, however many words there are."""
    monkeypatch.setattr(LiveSocket, "frame_s", HOUR)
    follows, reads = asyncio.Event(), asyncio.Event()
    words = [Say(f"{n} ") for n in range(300)]
    upstream.plays((Say("One, "), Hold(follows), Say("two, "), Hold(reads), *words, Finish()))
    opened = await ada.ask("Quickly", "alpha")
    await wait_for_text(ada, opened["turn"]["id"], "One, ")
    frames = []
    async with ada.live() as window:
        await window.follow(f"conversation:{opened['conversation']['id']}")
        follows.set()
        await window.until(lambda item: item["type"] == "delta")
        reads.set()
        await ada.wait_for_end(opened["turn"]["id"])
        reading = asyncio.create_task(collect(window._socket, frames))
        async with soon():
            await (await window._socket.ping())  # what was sent before it has arrived now
        reading.cancel()
    assert frames == []


async def collect(socket, frames):
    async for frame in socket:
        frames.append(frame)


async def test_one_websocket_can_follow_several_conversations(ada, upstream):
    release = asyncio.Event()
    upstream.plays((Say("Here"), Hold(release), Finish()))
    places = []
    async with ada.live() as window:
        for n in range(3):
            opened = await ada.ask(f"Conversation {n}", "alpha")
            await wait_for_text(ada, opened["turn"]["id"], "Here")
            places.append(f"conversation:{opened['conversation']['id']}")
            await window.follow(places[-1])
        release.set()
        finished_places: set[str] = set()
        while finished_places != set(places):
            item = await window.next()
            if item["type"] == "event" and item["noun"] == "turn" and item["value"]["finished_at"]:
                finished_places.add(item["place"])
    assert finished_places == set(places)


async def test_a_window_that_leaves_a_topic_gets_no_more_items_of_it(ada, upstream):
    first = await ada.ask("Begin", "alpha")
    await ada.wait_for_end(first["turn"]["id"])
    place = f"conversation:{first['conversation']['id']}"
    async with ada.live() as window:
        await window.follow(place)
        await window.send({"type": "leave", "place": place})
        await window.send({"type": "ping"})
        assert await window.next() == {"type": "pong"}
        await ada.ask_and_wait("Unseen", "alpha", conversation_id=first["conversation"]["id"])
        await window.send({"type": "ping"})
        assert await window.next() == {"type": "pong"}


@pytest.mark.parametrize("change", ["ask", "fail", "retry", "continue", "stop", "rename", "pin", "archive"])
async def test_a_page_plus_its_later_events_equals_the_reloaded_page(world, ada, upstream, change):
    """For each kind of change: an old page plus the events since equals a new page."""
    upstream.plays((Say("Once"), Cut()), says("Twice."))
    [reply] = await ada.ask_and_wait("Begin", "alpha")
    conversation = reply["conversation_id"]
    await at_rest(world.tertulia)
    device = await device_from_page(ada, conversation)
    async with ada.live() as window:
        for place, cursor in tuple(device.cursors.items()):
            device.take(*await window.follow(place, cursor))
        await CHANGES[change](ada, upstream, conversation, reply)
        await at_rest(world.tertulia)
        reloaded = await device_from_page(ada, conversation)
        while any(device.cursors[place] < cursor for place, cursor in reloaded.cursors.items()):
            device.take(await window.next())
    assert device.cursors == reloaded.cursors
    for noun in ("conversation", "message"):
        assert device.tables[noun] == reloaded.tables[noun]
    assert device.wishes == []


async def device_from_page(person: Person, conversation_id: str) -> Device:
    page = await person.get(f"/api/conversations/{conversation_id}")
    listed = await person.get(
        "/api/conversations", project_id=person.home, archived=page["conversation"]["archived"]
    )
    device = Device(
        cursors={
            f"conversation:{conversation_id}": page["cursor"],
            f"project:{person.home}": listed["cursor"],
        }
    )
    device.tables["conversation"] = {item["id"]: item for item in listed["items"]}
    device.tables["message"] = {m["id"]: m for round_ in page["rounds"] for m in round_["messages"]}
    return device


async def ask_next(ada, upstream, conversation, reply):
    await ada.ask_and_wait("More", "alpha", "beta", conversation_id=conversation)


async def fail(ada, upstream, conversation, reply):
    upstream.plays(refuses(401))
    await ada.ask_and_wait("More", "alpha", conversation_id=conversation)


async def retry(ada, upstream, conversation, reply):
    opened = await ada.post(f"/api/messages/{reply['id']}/retry", {"id": new_id()}, expect=202)
    await ada.wait_for_end(opened["turn"]["id"])


async def continue_(ada, upstream, conversation, reply):
    opened = await ada.post(f"/api/messages/{reply['id']}/continue", {"id": new_id()}, expect=202)
    await ada.wait_for_end(opened["turn"]["id"])


async def stop(ada, upstream, conversation, reply):
    upstream.plays((Say("On"), Stall()))
    opened = await ada.ask("More", "alpha", conversation_id=conversation)
    await wait_for_text(ada, opened["turn"]["id"], "On")
    await ada.post(f"/api/turns/{opened['turn']['id']}/stop", {}, expect=202)
    await ada.wait_for_end(opened["turn"]["id"])


async def rename(ada, upstream, conversation, reply):
    await ada.put(f"/api/conversations/{conversation}/title", {"title": "Another name"})


async def pin(ada, upstream, conversation, reply):
    await ada.put(f"/api/conversations/{conversation}/pinned", {"pinned": True})


async def archive(ada, upstream, conversation, reply):
    await ada.put(f"/api/conversations/{conversation}/archived", {"archived": True})


CHANGES = {
    "ask": ask_next,
    "fail": fail,
    "retry": retry,
    "continue": continue_,
    "stop": stop,
    "rename": rename,
    "pin": pin,
    "archive": archive,
}
