"""Stream permissions: strangers receive nothing, and a lost permission ends open streams (AZ 2, 7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tertulia.store.sql import sql
from tests.patience import soon
from tests.server.cast import CANARY
from tests.upstream.scripted import Finish, Hold, Pause, Say, Step, Upstream
from tests.world import PASSWORD, Event, Person, Tab, World


@dataclass
class RunningReply:
    """A reply that is written until the test ends it."""

    upstream: Upstream
    opened: dict[str, Any]
    end: asyncio.Event

    @property
    def turn_id(self) -> str:
        return str(self.opened["turn"]["id"])

    @property
    def conversation_id(self) -> str:
        return str(self.opened["conversation"]["id"])


@asynccontextmanager
async def running_reply(
    person: Person, upstream: Upstream, project_id: str, words: int = 0
) -> AsyncIterator[RunningReply]:
    """Sends one word and waits; with `words`, it sends that many more, one every 50 ms."""
    end = asyncio.Event()
    drip: list[Step] = []
    for number in range(words):
        drip += [Say(f" {CANARY}-{number}"), Pause(0.05)]
    upstream.plays((Say(CANARY), *drip, Hold(end), Say(" the end"), Finish()))
    opened = await person.ask("Tell me", project_id=project_id)
    try:
        await upstream.wait_for_request()
        yield RunningReply(upstream, opened, end)
    finally:
        end.set()


@pytest.fixture
async def project_id(ada: Person, bob: Person) -> str:
    """A project of Ada's with Bob as editor."""
    project = await ada.post("/api/projects", {"name": "Ours"}, expect=201)
    await ada.put(f"/api/projects/{project['id']}/members", {"user_id": bob.id, "role": "editor"})
    return str(project["id"])


# ── streams of other users


@pytest.mark.parametrize(
    "headers",
    [{}, {"Last-Event-ID": "0"}, {"Last-Event-ID": "1"}, {"Accept": "application/x-ndjson"}],
    ids=["from its beginning", "from zero", "from one", "in lines"],
)
async def test_a_stranger_cannot_stream_a_running_turn(
    world: World, ada: Person, upstream: Upstream, headers: dict[str, str]
) -> None:
    eve = await world.create_account(ada, "Eve")
    async with running_reply(ada, upstream, ada.home) as reply:
        answer = await eve.client.get(f"/api/turns/{reply.turn_id}/events", headers=headers)
        assert answer.status_code == 404
        assert CANARY not in answer.text
        for path in (f"/api/turns/{reply.turn_id}", f"/api/conversations/{reply.conversation_id}"):
            assert CANARY not in (await eve.client.get(path)).text
        await eve.post(f"/api/turns/{reply.turn_id}/stop", {}, expect=404)
        reply.end.set()
        heard = await ada.wait_for_end(reply.turn_id)
    assert [event.name for event in heard][-2:] == ["finished", "ended"]
    assert heard[-2].data["content"] == f"{CANARY} the end"
    assert heard[-2].data["status"] == "complete"


async def test_a_strangers_tab_receives_nothing_of_a_running_turn(
    world: World, ada: Person, upstream: Upstream
) -> None:
    eve = await world.create_account(ada, "Eve")
    async with running_reply(ada, upstream, ada.home, words=3) as reply, eve.live() as tab:
        await tab.follow(f"user:{eve.id}")
        seen = await tab.follow(f"conversation:{reply.conversation_id}")
        reply.end.set()
        await ada.wait_for_end(reply.turn_id)
        await tab.send({"type": "ping"})
        seen += await tab.until(lambda item: item["type"] == "pong")
    assert [item["type"] for item in seen] == ["gone", "pong"]


# ── lost permissions

End = Callable[["People"], Awaitable[None]]


@dataclass
class People:
    world: World
    ada: Person
    bob: Person
    project_id: str


async def sign_out_from_another_device(people: People) -> None:
    other = await people.world.sign_in("bob@example.org")
    await other.delete(f"/api/sessions/{people.bob.me['session']['id']}")


async def sign_out(people: People) -> None:
    await people.bob.post("/api/logout", expect=204)


async def change_password_elsewhere(people: People) -> None:
    other = await people.world.sign_in("bob@example.org")
    await other.put("/api/me/password", {"current": PASSWORD, "new": "new " + PASSWORD}, expect=204)


async def suspend(people: People) -> None:
    await people.ada.put(f"/api/users/{people.bob.id}", {"suspended": True})


async def make_administrator(people: People) -> None:
    await people.ada.put(f"/api/users/{people.bob.id}", {"role": "admin"})


SIGNED_OUT = [
    sign_out_from_another_device,
    sign_out,
    change_password_elsewhere,
    suspend,
    make_administrator,
]


@pytest.mark.parametrize("end", SIGNED_OUT, ids=lambda end: end.__name__)
async def test_the_end_of_a_session_ends_its_streams(
    world: World, ada: Person, bob: Person, project_id: str, upstream: Upstream, end: End
) -> None:
    people = People(world, ada, bob, project_id)
    async with running_reply(ada, upstream, project_id) as reply, bob.live() as tab:
        await tab.follow(f"user:{bob.id}", bob.me["cursor"])
        await tab.follow(f"conversation:{reply.conversation_id}")
        async with streaming(bob, reply.turn_id) as stream:
            await stream.begun()
            await end(people)
            assert (await stream.last()).data == {"reason": "signed_out"}
        assert (await tab.until(is_signed_out))[-1] == {"type": "signed_out"}
        assert await tab.closed() == 4401
    await bob.get("/api/me", expect=401)


async def test_removal_from_a_project_ends_its_streams_and_topics(
    world: World, ada: Person, bob: Person, project_id: str, upstream: Upstream
) -> None:
    async with running_reply(ada, upstream, project_id) as reply, bob.live() as tab:
        topics = (f"project:{project_id}", f"conversation:{reply.conversation_id}")
        for topic in (f"project:{bob.home}", *topics):
            await tab.follow(topic)
        async with streaming(bob, reply.turn_id) as stream:
            await stream.begun()
            await ada.delete(f"/api/projects/{project_id}/members/{bob.id}")
            assert (await stream.last()).data == {"reason": "not_found"}
        gone = await tab.until(lambda item: item["type"] == "gone") + [await tab.next()]
        assert {(item["type"], item["place"]) for item in gone[-2:]} == {("gone", topic) for topic in topics}
        reply.end.set()
        await ada.wait_for_end(reply.turn_id)
        assert await receives_nothing_more(tab)
        await bob.post("/api/projects", {"name": "Still here"}, expect=201)
    await bob.get(f"/api/conversations/{reply.conversation_id}", expect=404)
    await bob.get(f"/api/turns/{reply.turn_id}/events", expect=404)


async def test_a_busy_stream_ends_soon_after_its_session_was_removed_by_another_node(
    world: World, ada: Person, bob: Person, project_id: str, upstream: Upstream
) -> None:
    """No event reaches this node while deltas continue, so only the clock causes the next check."""
    async with running_reply(ada, upstream, project_id, words=400) as reply, bob.live() as tab:
        await tab.follow(f"conversation:{reply.conversation_id}")
        async with streaming(bob, reply.turn_id) as stream:
            await stream.begun()
            await world.tertulia.db.write(lambda tx: tx.execute(_DELETE_SESSION, id=bob.me["session"]["id"]))
            assert (await stream.last()).data == {"reason": "signed_out"}
            assert (await tab.until(is_signed_out))[-1] == {"type": "signed_out"}
            assert await tab.closed() == 4401


_DELETE_SESSION = sql("DELETE FROM sessions WHERE id = :id")


async def test_a_viewers_stream_continues_when_other_members_are_removed(
    world: World, ada: Person, bob: Person, project_id: str, upstream: Upstream
) -> None:
    eve = await world.create_account(ada, "Eve")
    await ada.put(f"/api/projects/{project_id}/members", {"user_id": eve.id, "role": "viewer"})
    async with running_reply(ada, upstream, project_id) as reply:
        listener = asyncio.create_task(eve.wait_for_end(reply.turn_id))
        await upstream.wait_for_request()
        await ada.delete(f"/api/projects/{project_id}/members/{bob.id}")
        reply.end.set()
        assert (await listener)[-1].name == "ended"


# ── receiving


class Stream:
    def __init__(self, events: AsyncIterator[Event]) -> None:
        self._events = events

    async def begun(self) -> None:
        """Waits for the first text."""
        async with soon():
            while (await anext(self._events)).name not in ("delta", "snapshot"):
                pass

    async def last(self) -> Event:
        """The last event of the stream."""
        async with soon():
            return [event async for event in self._events][-1]


@asynccontextmanager
async def streaming(person: Person, turn_id: str) -> AsyncIterator[Stream]:
    events = person.follow(turn_id)
    try:
        yield Stream(events)
    finally:
        await events.aclose()  # type: ignore[attr-defined]


def is_signed_out(item: dict[str, Any]) -> bool:
    return item["type"] == "signed_out"


async def receives_nothing_more(tab: Tab) -> bool:
    """True if the tab receives the answer to its own ping and no text of Ada's reply."""
    await tab.send({"type": "ping"})
    seen = await tab.until(lambda item: item["type"] == "pong")
    return CANARY not in repr(seen) and "the end" not in repr(seen)
