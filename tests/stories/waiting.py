"""Helpers that wait: for the text of a reply, the end of a turn, an item of a topic."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import httpx2

from tests.patience import soon
from tests.server.cast import at_rest
from tests.world import Person, Tab

Item = dict[str, Any]


async def wait_for_text(person: Person, turn_id: str, *texts: str, replies: int = 1) -> None:
    """Waits until each of these texts has appeared in this many replies of the turn."""
    text_by_reply: dict[str, str] = {}
    async with soon(), aclosing(person.follow(turn_id)) as events:
        async for event in events:
            if event.name == "delta":
                reply = event.data["reply_id"]
                text_by_reply[reply] = text_by_reply.get(reply, "") + event.data.get("text", "")
            contents = text_by_reply.values()
            if all(sum(text in content for content in contents) >= replies for text in texts):
                return
    raise AssertionError(f"the turn ended with {text_by_reply}, without all of {texts}")


async def read_until(response: httpx2.Response, text: str) -> None:
    """Reads the lines of a stream up to the first that contains the text."""
    async with soon():
        async for line in response.aiter_lines():
            if text in line:
                return
    raise AssertionError(f"the stream ended without {text!r}")


async def final_state(person: Person, turn_id: str) -> str:
    """Waits for the end of a turn and returns its state."""
    events = await person.wait_for_end(turn_id)
    last = events[-1]
    return str((last.data["turn"] if last.name == "snapshot" else last.data)["state"])


async def wait_for_item(tab: Tab, place: str, fits: Callable[[Item], bool], after: int = 0) -> Item:
    """Follows a topic and returns the first item that fits, whether past or new."""
    items = await tab.follow(place, after)
    match = next((item for item in items if fits(item)), None)
    return match or (await tab.until(fits))[-1]


def is_event(item: Item, noun: str) -> bool:
    return item["type"] == "event" and item["noun"] == noun and item["value"] is not None


def is_reply(item: Item) -> bool:
    return is_event(item, "message") and item["value"]["voice"] is not None


async def settled_title(person: Person, conversation_id: str) -> str:
    """The title of a conversation after all jobs have finished."""
    await at_rest(person.world.tertulia)
    page = await person.get(f"/api/conversations/{conversation_id}")
    return str(page["conversation"]["title"])


async def stored_rounds(person: Person, conversation_id: str) -> list[dict[str, Any]]:
    """All stored rounds of a conversation."""
    page = await person.get(f"/api/conversations/{conversation_id}/messages", limit=100)
    return list(page["rounds"])
