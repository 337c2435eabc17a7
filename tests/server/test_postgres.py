"""The server on PostgreSQL: messages, streams and files, with one server and with two on one database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from tertulia.app import new_id
from tests.library.documents import zipped
from tests.patience import soon
from tests.server.cast import CANARY, at_rest, gather_cast
from tests.server.requests import HTTP, request_to
from tests.upstream.scripted import Finish, Hold, Say, Upstream, refuses, says
from tests.world import Event, Person, World, endpoints, running


@pytest.fixture
async def world(tmp_path: Path, upstream: Upstream, postgres_url: str) -> AsyncIterator[World]:
    environ = {"TERTULIA_ENDPOINTS": endpoints(upstream), "TERTULIA_DATABASE_URL": postgres_url}
    async with running(tmp_path, environ) as made:
        yield made


async def test_a_message_is_answered_and_another_device_receives_the_replies(
    world: World, ada: Person, upstream: Upstream
) -> None:
    assert world.tertulia.db.version.startswith("PostgreSQL")
    upstream.says("Tea, of course.", model="alpha")
    upstream.says("Coffee.", model="beta")
    phone = await world.sign_in("ada@example.org")
    async with phone.live() as tab:
        await tab.follow(f"project:{ada.home}")
        replies = await ada.ask_and_wait("Tea or coffee?", "alpha", "beta")
        told = await tab.until(lambda item: item.get("noun") == "conversation" and item["value"]["title"])
    assert [(r["content"], r["status"]) for r in replies] == [
        ("Tea, of course.", "complete"),
        ("Coffee.", "complete"),
    ]
    page = await phone.get(f"/api/conversations/{told[-1]['id']}")
    assert {message["content"] for message in page["rounds"][0]["messages"]} >= {"Tea, of course.", "Coffee."}
    await at_rest(world.tertulia)


@pytest.fixture
async def second(tmp_path: Path, upstream: Upstream, postgres_url: str) -> AsyncIterator[World]:
    """Another server on the same database."""
    environ = {"TERTULIA_ENDPOINTS": endpoints(upstream), "TERTULIA_DATABASE_URL": postgres_url}
    async with running(tmp_path / "second", environ) as made:
        yield made


async def test_a_client_of_another_server_receives_the_deltas_and_can_stop_the_reply(
    world: World, second: World, ada: Person, upstream: Upstream
) -> None:
    held = asyncio.Event()
    upstream.plays((Say("Tea, "), Say("of course."), Hold(held), Finish()), model="alpha")
    phone = await second.sign_in("ada@example.org")
    conversation = new_id()
    async with phone.live() as tab:
        await tab.follow(f"project:{ada.home}")
        opened = await ada.ask("Tea?", conversation_id=conversation, project_id=ada.home)
        await tab.until(lambda item: item.get("id") == conversation)
        following = asyncio.create_task(phone.wait_for_end(opened["turn"]["id"]))
        seen = await tab.follow(f"conversation:{conversation}")
        shown = Drafts()
        while shown.text != "Tea, of course.":
            shown.apply(seen)
            seen = [] if shown.text == "Tea, of course." else [await tab.next()]
        page = await phone.get(f"/api/conversations/{conversation}")
        assert [draft["content"] for draft in page["drafts"]] == ["Tea, of course."]
        await phone.post(f"/api/turns/{opened['turn']['id']}/stop", expect=202)
        [*_, told] = await tab.until(lambda item: item.get("noun") == "message")
    assert (told["value"]["content"], told["value"]["status"]) == ("Tea, of course.", "stopped")
    streamed = await following
    assert [event.name for event in streamed][-2:] == ["finished", "ended"]
    assert streamed[-1].data["state"] == "stopped"
    held.set()
    await at_rest(world.tertulia)


async def test_a_client_of_another_server_can_end_the_wait_before_a_retry(
    world: World, second: World, ada: Person, upstream: Upstream
) -> None:
    upstream.plays(refuses(429, retry_after="50"), says("Here."), model="alpha")
    phone = await second.sign_in("ada@example.org")
    opened = await ada.ask("Tea?")
    async with soon(), aclosing(phone.follow(opened["turn"]["id"])) as events:
        async for event in events:
            if event.name == "waiting" and event.data["waiting"]:
                await phone.post(f"/api/turns/{opened['turn']['id']}/retry-now", expect=202)
    told = [
        event.data["waiting"]
        for event in await ada.wait_for_end(opened["turn"]["id"])
        if event.name == "waiting"
    ]
    ends = [waiting["until"] for waiting in told if waiting]
    assert [reply["content"] for reply in await ada.replies(opened["conversation"]["id"], 1)] == ["Here."]
    assert ends[-1] < ends[0], "the wait went on to its end"
    await at_rest(world.tertulia)


async def test_a_stream_resumes_at_another_server_without_gap_or_repeat(
    world: World, second: World, ada: Person, upstream: Upstream
) -> None:
    held, more = asyncio.Event(), asyncio.Event()
    script = (Say("Tea, "), Say("of "), Hold(more), Say("course"), Hold(held), Say("."), Finish())
    upstream.plays(script, model="alpha")
    upstream.says("Coffee.", model="beta")
    opened = await ada.ask("Tea?", "alpha", "beta")
    turn_id = opened["turn"]["id"]
    phone = await second.sign_in("ada@example.org")
    there = await until_text(phone, turn_id, "", "Tea, of ")
    more.set()
    here = await until_text(ada, turn_id, there[-1].id, "Tea, of course")
    assert here[0].name == "snapshot", "the numbers of another server's log mean nothing here"
    held.set()
    resumed = [event async for event in phone.follow(turn_id, there[-1].id)]
    [tea] = [event.data for event in resumed if event.data.get("content") == "Tea, of course."]
    words = [event.data["text"] for event in resumed if event.data.get("reply_id") == tea["id"]]
    assert "".join(words) == "course."
    assert resumed[-1].name == "ended"
    assert len({event.id for event in resumed}) == len(resumed)
    await at_rest(world.tertulia)


async def until_text(person: Person, turn_id: str, after: str, text: str) -> list[Event]:
    """The events of a stream up to the one after which a reply has this text."""
    replies: dict[str, str] = {}
    seen: list[Event] = []
    async for event in person.follow(turn_id, after):
        seen.append(event)
        if event.name == "snapshot":
            replies |= {draft["id"]: draft["content"] for draft in event.data["drafts"]}
        elif event.name == "reply":
            replies[event.data["id"]] = event.data["content"]
        elif event.name == "delta":
            replies[event.data["reply_id"]] += event.data["text"]
        if text in replies.values():
            return seen
    raise AssertionError(f"{text!r} was never received: {replies}")


class Drafts:
    """The text of one reply, put together from the items that a tab receives."""

    def __init__(self) -> None:
        self.text = ""
        self._number = 0

    def apply(self, items: list[dict[str, Any]]) -> None:
        for item in items:
            if item["type"] == "draft":
                self.text, self._number = item["value"]["content"], item["value"]["number"]
            elif item["type"] == "delta":
                assert item["after"] == self._number
                self.text, self._number = self.text + item["text"], item["number"]


async def test_large_files_are_stored_in_the_database_for_all_nodes(world: World, ada: Person) -> None:
    content = bytes(range(256)) * 12_000
    made = await ada.upload("large.bin", content)
    where = f"/api/projects/{ada.home}/files"
    assert (await ada.client.get(f"{where}/{made['id']}")).content == content
    packed = zipped({"a.md": "# A", "b.md": "# B", "../c": "no"})
    answer = await ada.client.post(where, params={"unzip": "true"}, files=[("file", ("x.zip", packed))])
    assert [item["path"] for item in answer.json()["items"]] == ["a.md", "b.md"]
    changed = await ada.client.put(
        f"{where}/{made['id']}", content=content[:5], headers={"Content-Type": "application/octet-stream"}
    )
    assert changed.json()["version"] == 2
    assert (await ada.client.get(f"{where}/{made['id']}/versions/1")).content == content
    assert [path for path in (world.home / "blobs").rglob("*") if path.is_file()] == []
    await ada.delete(f"{where}/{made['id']}")
    assert len((await ada.get(where))["items"]) == 2
    await at_rest(world.tertulia)


async def test_objects_of_another_user_are_not_found_on_postgresql(world: World) -> None:
    cast = await gather_cast(world)
    async with cast.untouched():
        for entry in (entry for entry in HTTP if entry.access == "signed_in" and entry.ids):
            request = request_to(entry, cast.almas, probed=entry.ids[0])
            answer = await cast.bruno.client.request(
                request.method, request.path, params=request.params, **request.sent
            )
            assert answer.status_code == 404, (entry, answer.text)
            assert CANARY not in answer.text
