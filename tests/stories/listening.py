"""What the stories listen for: the first words of a reply, the end of a turn, the news of a place."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from tests.patience import soon
from tests.server.cast import at_rest
from tests.world import Person, Tab

Item = dict[str, Any]


async def said(person: Person, turn_id: str, *texts: str) -> None:
    """Waits until every one of these texts has been heard from some voice of the turn."""
    heard: dict[str, str] = {}
    async with soon(), aclosing(person.follow(turn_id)) as events:
        async for event in events:
            if event.name == "delta":
                reply = event.data["reply_id"]
                heard[reply] = heard.get(reply, "") + event.data.get("text", "")
            if all(any(text in words for words in heard.values()) for text in texts):
                return
    raise AssertionError(f"the turn ended with {heard} and never said all of {texts}")


async def state_of(person: Person, turn_id: str) -> str:
    """How a turn ended."""
    events = await person.ended(turn_id)
    last = events[-1]
    return str((last.data["turn"] if last.name == "snapshot" else last.data)["state"])


async def heard(tab: Tab, place: str, fits: Callable[[Item], bool], after: int = 0) -> Item:
    """Follows a place up to the first item that fits, whether it had happened before or comes now."""
    items = await tab.follow(place, after)
    found = next((item for item in items if fits(item)), None)
    return found or (await tab.until(fits))[-1]


def is_event(item: Item, noun: str) -> bool:
    return item["type"] == "event" and item["noun"] == noun and item["value"] is not None


def is_reply(item: Item) -> bool:
    return is_event(item, "message") and item["value"]["voice"] is not None


async def title_of(person: Person, conversation_id: str) -> str:
    """A conversation's title, once nobody looks for a better one."""
    await at_rest(person.world.tertulia)
    page = await person.get(f"/api/conversations/{conversation_id}")
    return str(page["conversation"]["title"])


async def rounds(person: Person, conversation_id: str) -> list[dict[str, Any]]:
    """Everything said in a conversation, as stored."""
    page = await person.get(f"/api/conversations/{conversation_id}/messages", limit=100)
    return list(page["rounds"])
