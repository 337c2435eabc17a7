"""Deleting stops running replies, at the provider too, and nothing is stored afterwards."""

from __future__ import annotations

import asyncio

import pytest

from tests.patience import soon
from tests.stories.waiting import wait_for_text
from tests.upstream.scripted import Finish, Hold, Say, Stall, says
from tests.world import Person


async def open_two_rounds(person: Person, upstream, project_id: str | None = None):
    """Opens a conversation with one running and one queued round."""
    upstream.plays((Say("Going on and on"), Stall()))
    opened = await person.ask("Talk", "alpha", "beta", project_id=project_id)
    queued = await person.ask("Then", "alpha", conversation_id=opened["conversation"]["id"])
    await wait_for_text(person, opened["turn"]["id"], "Going on and on", replies=2)
    return opened, queued


async def test_deleting_a_conversation_closes_its_requests_to_the_provider(ada, upstream):
    opened, _ = await open_two_rounds(ada, upstream)
    async with soon():
        await ada.delete(f"/api/conversations/{opened['conversation']['id']}")
        await asyncio.gather(*(request.closed.wait() for request in upstream.requests))
    await ada.get(f"/api/conversations/{opened['conversation']['id']}", expect=404)


async def test_deleting_a_project_closes_the_requests_of_all_its_rounds(ada, upstream):
    project = await ada.post("/api/projects", {"name": "Doomed"}, expect=201)
    opened, _ = await open_two_rounds(ada, upstream, project["id"])
    async with soon():
        await ada.delete(f"/api/projects/{project['id']}")
        await asyncio.gather(*(request.closed.wait() for request in upstream.requests))
    await ada.get(f"/api/conversations/{opened['conversation']['id']}", expect=404)
    await ada.get(f"/api/projects/{project['id']}", expect=404)


async def test_deleting_a_conversation_sends_an_event_and_ends_its_streams(ada, upstream):
    opened, queued = await open_two_rounds(ada, upstream)
    streams = [asyncio.create_task(ada.wait_for_end(turn["turn"]["id"])) for turn in (opened, queued)]
    async with ada.live() as tab:
        await tab.follow(f"project:{ada.home}")
        await ada.delete(f"/api/conversations/{opened['conversation']['id']}")
        items = await tab.until(lambda item: item["type"] == "event" and item["kind"] == "removed")
        assert items[-1]["id"] == opened["conversation"]["id"]
    for events in await asyncio.gather(*streams):
        assert events == [] or events[-1].name in ("ended", "gone")


@pytest.mark.parametrize("script", [says("A late word"), (Say("A late word"), Finish())])
async def test_a_reply_that_arrives_during_the_deletion_is_not_stored(ada, upstream, script):
    """The text arrives at the moment of the deletion."""
    for number in range(1, 6):
        release = asyncio.Event()
        upstream.plays((Hold(release), *script))
        opened = await ada.ask("Talk", "alpha")
        await upstream.wait_for_request(number)
        deleting = asyncio.create_task(ada.delete(f"/api/conversations/{opened['conversation']['id']}"))
        release.set()
        await deleting
        await upstream.last.over.wait()
        listed = await ada.get("/api/conversations", project_id=ada.home)
        assert listed["items"] == []
        await ada.get(f"/api/turns/{opened['turn']['id']}", expect=404)


async def test_a_queued_round_is_never_sent_after_the_deletion(ada, upstream):
    opened, _ = await open_two_rounds(ada, upstream)
    await ada.delete(f"/api/conversations/{opened['conversation']['id']}")
    async with soon():
        await asyncio.gather(*(request.closed.wait() for request in upstream.requests))
    upstream.says("Elsewhere.")
    [reply] = await ada.ask_and_wait("Another conversation", "alpha")
    assert reply["content"] == "Elsewhere."
    assert len(upstream.requests) == 3


async def test_deleted_rounds_no_longer_count_towards_the_limit(ada, upstream):
    for _ in range(5):
        opened, _ = await open_two_rounds(ada, upstream)
        await ada.delete(f"/api/conversations/{opened['conversation']['id']}")
    upstream.says("Room enough.")
    [reply] = await ada.ask_and_wait("Still room?", "alpha")
    assert reply["status"] == "complete"
