"""Event vectors: Python and the web replay the same sequences, and the server really sends them.

This file records the vectors named "recorded-…". `WRITE_VECTORS=1 pytest` on this file writes them
again, after an intended change of what the server sends.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tertulia.app import new_id
from tertulia.core import projects
from tertulia.core.conversations import Conversation
from tertulia.core.messages import Message
from tertulia.core.projects import Project
from tertulia.core.serialization import from_plain, to_plain
from tertulia.core.sessions import Session
from tertulia.core.turns import Draft, Turn
from tertulia.core.users import User
from tests.device import Device, Item
from tests.patience import soon
from tests.server.cast import at_rest
from tests.upstream.scripted import Cut, Finish, Hold, Say, Stall, Think, refuses
from tests.world import Person, Tab

VECTORS = Path(__file__).parent.parent / "vectors" / "events"
NOUNS = {
    "user": User,
    "session": Session,
    "project": Project,
    "person": projects.Person,
    "conversation": Conversation,
    "message": Message,
    "turn": Turn,
}


def vectors() -> list[Path]:
    return sorted(VECTORS.glob("*.json"))


@pytest.mark.parametrize("path", vectors(), ids=lambda path: path.stem)
def test_the_python_device_replays_every_vector(path: Path) -> None:
    vector = json.loads(path.read_text(encoding="utf-8"))
    device = Device.from_state(vector["start"])
    device.take(*deepcopy(vector["items"]))
    assert device.state == vector["end"]
    assert device.wishes == vector["wishes"]


@pytest.mark.parametrize("path", vectors(), ids=lambda path: path.stem)
def test_every_value_in_a_vector_has_the_servers_schema(path: Path) -> None:
    vector = json.loads(path.read_text(encoding="utf-8"))
    for state in (vector["start"], vector["end"]):
        for noun, table in state["tables"].items():
            for value in table.values():
                assert to_plain(from_plain(NOUNS[noun], value)) == value
    for item in vector["items"]:
        if item["type"] == "draft":
            assert to_plain(from_plain(Draft, item["value"])) == item["value"]
        elif item["type"] == "event" and item["value"] is not None and item["noun"] in NOUNS:
            assert to_plain(from_plain(NOUNS[item["noun"]], item["value"])) == item["value"]


class Recorder:
    """A live connection that records its items and applies them to a device."""

    def __init__(self, tab: Tab, place: str) -> None:
        self._tab = tab
        self._place = place
        self.items: list[Item] = []
        self.device = Device(cursors={place: 0})

    async def follow(self) -> None:
        self._take(*await self._tab.follow(self._place, self.device.cursors[self._place]))

    async def leave(self) -> None:
        """Leaves the topic: everything that happens meanwhile arrives at once when it follows again."""
        await self._tab.send({"type": "leave", "place": self._place})
        await self._tab.send({"type": "ping"})
        await self._tab.until(lambda item: item["type"] == "pong")

    async def until(self, holds: Any) -> None:
        while not holds(self.device):
            self._take(await self._tab.next())

    def _take(self, *items: Item) -> None:
        self.items += deepcopy(items)
        self.device.take(*deepcopy(items))


def has_draft(text: str):
    return lambda device: text in [draft["content"] for draft in device.drafts.values()]


def has_ended_turns(number: int):
    return lambda device: sum(bool(turn["finished_at"]) for turn in device.tables["turn"].values()) == number


async def test_the_server_sends_the_recorded_events_of_a_reply(ada: Person, upstream) -> None:
    release_middle, release_end = asyncio.Event(), asyncio.Event()
    upstream.plays(
        (
            Think("Scattering, "),
            Say("Blue "),
            Hold(release_middle),
            Say("light."),
            Hold(release_end),
            Say(" Éh."),
            Finish(),
        )
    )
    opened = await ada.ask("Why is the sky blue?", "alpha")
    async with ada.live() as tab:
        recorder = Recorder(tab, f"conversation:{opened['conversation']['id']}")
        await upstream.wait_for_request()
        await wait_for_draft(ada, opened, "Blue ")
        await recorder.follow()
        release_middle.set()
        await recorder.until(has_draft("Blue light."))
        release_end.set()
        await recorder.until(has_ended_turns(1))
    compare_with_vector("recorded reply", "A tab opens during a reply and follows it to its end.", recorder)


async def test_the_server_sends_the_recorded_events_of_new_versions(ada: Person, upstream) -> None:
    releases = [asyncio.Event(), asyncio.Event()]
    upstream.plays(
        (Say("Once upon"), Cut()),
        (Hold(releases[0]), Say(" a time."), Finish()),
        (Hold(releases[1]), *refuses(401)),
    )
    [broken] = await ada.ask_and_wait("Tell a story", "alpha")
    async with ada.live() as tab:
        recorder = Recorder(tab, f"conversation:{broken['conversation_id']}")
        await recorder.follow()
        for turn_count, (action, text) in enumerate((("continue", "Once upon"), ("retry", "")), start=2):
            await recorder.leave()
            newest = list(recorder.device.tables["message"])[-1]
            opened = await ada.post(f"/api/messages/{newest}/{action}", {"id": new_id()}, expect=202)
            await wait_for_draft(ada, opened, text)
            await recorder.follow()
            releases[turn_count - 2].set()
            await recorder.until(has_ended_turns(turn_count))
    compare_with_vector(
        "recorded new versions", "An interrupted reply is continued, then a retry fails.", recorder
    )


async def test_the_server_sends_the_recorded_events_of_a_stop(ada: Person, upstream) -> None:
    upstream.plays((Say("On and on"), Stall()))
    opened = await ada.ask("Talk", "alpha")
    await wait_for_draft(ada, opened, "On and on")
    async with ada.live() as tab:
        recorder = Recorder(tab, f"conversation:{opened['conversation']['id']}")
        await recorder.follow()
        await ada.post(f"/api/turns/{opened['turn']['id']}/stop", {}, expect=202)
        await recorder.until(has_ended_turns(1))
    compare_with_vector("recorded stop", "A person stops a reply.", recorder)


async def test_the_server_sends_the_recorded_events_of_a_conversations_life(ada: Person, upstream) -> None:
    project = await ada.post("/api/projects", {"name": "Sky"}, expect=201)
    async with ada.live() as tab:
        recorder = Recorder(tab, f"project:{project['id']}")
        await recorder.follow()
        opened = await ada.ask("Why is the sky blue?", "alpha", project_id=project["id"])
        path = f"/api/conversations/{opened['conversation']['id']}"
        await recorder.until(lambda device: [c["is_answering"] for c in conversations_of(device)] == [True])
        await ada.wait_for_end(opened["turn"]["id"])
        await recorder.until(lambda device: [c["is_answering"] for c in conversations_of(device)] == [False])
        await at_rest(ada.world.tertulia)
        await ada.put(f"{path}/title", {"title": "Skies"})
        await ada.put(f"{path}/pinned", {"pinned": True})
        await ada.delete(path)
        await recorder.until(lambda device: conversations_of(device) == [])
    compare_with_vector(
        "recorded conversation changes",
        "A conversation is created, titled, renamed, pinned and deleted.",
        recorder,
    )


def conversations_of(device: Device) -> list[Item]:
    return list(device.tables["conversation"].values())


async def wait_for_draft(person: Person, opened: Item, text: str) -> None:
    """Waits until the conversation page has a draft with this text."""
    async with soon():
        while True:
            page = await person.get(f"/api/conversations/{opened['conversation']['id']}")
            if [draft["content"] for draft in page["drafts"]] == [text]:
                return


def compare_with_vector(name: str, description: str, recorder: Recorder) -> None:
    start = Device(cursors={place: 0 for place in recorder.device.cursors}).state
    recorded = {"start": start, "items": recorder.items, "end": recorder.device.state, "wishes": []}
    vector = {"says": description} | anonymised(recorded)
    assert recorder.device.wishes == []
    path = VECTORS / f"{re.sub('[^a-z]+', '-', name)}.json"
    if os.environ.get("WRITE_VECTORS"):
        path.write_text(json.dumps(vector, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    assert json.loads(path.read_text(encoding="utf-8")) == vector, "WRITE_VECTORS=1 writes it again"


def anonymised(recorded: Item) -> Item:
    """The recording with short ids and fixed times, so that two recordings are equal."""
    text = json.dumps(recorded, ensure_ascii=False)
    for number, ulid in enumerate(
        dict.fromkeys(re.findall(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b", text)), start=1
    ):
        text = text.replace(ulid, f"ID{number}")
    text = re.sub(r'("(?:\w+_at|until)": )\d+', r"\g<1>1000", text)
    text = re.sub(r'("(?:latency_ms|first_token_ms)": )\d+', r"\g<1>1", text)
    text = re.sub(r'("seconds": )[\d.]+', r"\g<1>0.1", text)
    result: Item = json.loads(text)
    return result
