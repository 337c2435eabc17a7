"""Deleting wins: what was being answered stops, at the provider too, and nothing comes back to life."""

from __future__ import annotations

import asyncio

import pytest

from tests.patience import soon
from tests.stories.listening import said
from tests.upstream.scripted import Finish, Hold, Say, Stall, says
from tests.world import Person


async def begin(person: Person, upstream, project_id: str | None = None):
    """A conversation with one round being answered and one that waits."""
    upstream.plays((Say("Going on and on"), Stall()))
    opened = await person.ask("Talk", "alpha", "beta", project_id=project_id)
    waiting = await person.ask("Then", "alpha", conversation_id=opened["conversation"]["id"])
    await said(person, opened["turn"]["id"], "Going on and on")
    return opened, waiting


async def test_deleting_a_conversation_stops_its_round_at_the_providers(ada, upstream):
    opened, _ = await begin(ada, upstream)
    async with soon():
        await ada.delete(f"/api/conversations/{opened['conversation']['id']}")
        await asyncio.gather(*(seen.closed.wait() for seen in upstream.requests))
    await ada.get(f"/api/conversations/{opened['conversation']['id']}", expect=404)


async def test_deleting_a_project_stops_every_round_in_it(ada, upstream):
    project = await ada.post("/api/projects", {"name": "Doomed"}, expect=201)
    opened, _ = await begin(ada, upstream, project["id"])
    async with soon():
        await ada.delete(f"/api/projects/{project['id']}")
        await asyncio.gather(*(seen.closed.wait() for seen in upstream.requests))
    await ada.get(f"/api/conversations/{opened['conversation']['id']}", expect=404)
    await ada.get(f"/api/projects/{project['id']}", expect=404)


async def test_those_who_watch_are_told_and_their_streams_end(ada, upstream):
    opened, waiting = await begin(ada, upstream)
    watching = [asyncio.create_task(ada.ended(one["turn"]["id"])) for one in (opened, waiting)]
    async with ada.live() as tab:
        await tab.follow(f"project:{ada.home}")
        await ada.delete(f"/api/conversations/{opened['conversation']['id']}")
        told = await tab.until(lambda item: item["type"] == "event" and item["kind"] == "removed")
        assert told[-1]["id"] == opened["conversation"]["id"]
    for events in await asyncio.gather(*watching):
        assert events == [] or events[-1].name in ("ended", "gone")


@pytest.mark.parametrize("late", [says("A late word"), (Say("A late word"), Finish())])
async def test_nothing_comes_back_to_life(ada, upstream, late):
    """The words arrive in the moment of the deletion."""
    for _ in range(5):
        held = asyncio.Event()
        upstream.plays((Hold(held), *late))
        opened = await ada.ask("Talk", "alpha")
        await upstream.heard(len(upstream.requests) or 1)
        deleting = asyncio.create_task(ada.delete(f"/api/conversations/{opened['conversation']['id']}"))
        held.set()
        await deleting
        await upstream.last.over.wait()
        listed = await ada.get("/api/conversations", project_id=ada.home)
        assert listed["items"] == []
        await ada.get(f"/api/turns/{opened['turn']['id']}", expect=404)


async def test_a_round_that_waited_is_not_asked_after_the_deletion(ada, upstream):
    opened, _ = await begin(ada, upstream)
    await ada.delete(f"/api/conversations/{opened['conversation']['id']}")
    async with soon():
        await asyncio.gather(*(seen.closed.wait() for seen in upstream.requests))
    upstream.says("Elsewhere.")
    [reply] = await ada.hear("Another conversation", "alpha")
    assert reply["content"] == "Elsewhere."
    assert len(upstream.requests) == 3


async def test_room_for_new_rounds_is_free_again(ada, upstream):
    for _ in range(5):
        opened, _ = await begin(ada, upstream)
        await ada.delete(f"/api/conversations/{opened['conversation']['id']}")
    upstream.says("Room enough.")
    [reply] = await ada.hear("Still room?", "alpha")
    assert reply["status"] == "complete"
