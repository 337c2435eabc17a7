"""A conversation as one sees it in a window, by the names a screen reader would say."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.upstream.scripted import Finish, Hold, Say, Script
from tests.world import Person


class Room:
    def __init__(self, page: Page) -> None:
        self.page = page
        self.field = page.get_by_role("textbox", name="Message", exact=True)
        self.table = page.get_by_role("group", name="Answering")
        self.feed = page.get_by_role("feed", name="Conversation")
        self.rounds = self.feed.locator("[aria-posinset]")
        self.sidebar = page.get_by_role("navigation", name="Workspace")
        self.banner = page.get_by_role("status").filter(has_text=re.compile("offline|Reconnecting"))

    async def ask(self, text: str) -> None:
        await self.field.fill(text)
        await self.field.press("Enter")

    async def seat(self, *names: str) -> None:
        """These and no others sit at the table."""
        await self.field.click()
        await expect(self._chips).not_to_have_count(0)  # it is laid when all that can be asked is known
        for _ in range(await self._chips.count()):
            await self._chips.first.click()
        await self.table.get_by_role("button", name="Add a voice").click()
        for name in names:
            await self.option(name).click()
        await self.page.keyboard.press("Escape")
        await expect(self._chips).to_have_count(len(names))

    def option(self, name: str) -> Locator:
        """Someone who can be invited."""
        called = self.page.locator("b", has_text=re.compile(f"^{re.escape(name)}$"))
        return self.page.get_by_role("option", disabled=False).filter(has=called)

    @property
    def _chips(self) -> Locator:
        return self.table.get_by_role("button", name=re.compile("^Remove "))

    def reply(self, name: str, state: str = "") -> Locator:
        """A mind's card, perhaps only when it says what the mind is doing."""
        return self.page.get_by_role("article", name=re.compile(f"^{name}, .*{state}$"))

    def words(self, name: str) -> Locator:
        """What a mind has said so far, without its thoughts."""
        return self.reply(name).locator(".words")

    def meter(self, name: str) -> Locator:
        """The parts of what a reply took."""
        return self.reply(name).locator("footer .meter > span")

    def question(self, text: str) -> Locator:
        return self.feed.get_by_text(text, exact=True)

    def row(self, title: str) -> Locator:
        """A conversation in the sidebar, whether or not a reply is being written."""
        return self.sidebar.get_by_role("link", name=re.compile(f"^{re.escape(title)}( ,.*)?$"))

    async def choose(self, title: str, action: str) -> None:
        """Something from the menu of a conversation in the sidebar."""
        await self.row(title).hover()
        await self.sidebar.get_by_role("button", name=f"More for {title}").click()
        await self.page.get_by_role("menuitem", name=action).click()

    async def paragraphs(self, name: str) -> str:
        """A mind's words as they were typed, if they are paragraphs."""
        return "\n\n".join(await self.words(name).locator("p").all_inner_texts())

    @property
    def id(self) -> str:
        return self.page.url.rpartition("/")[2]


async def stored(person: Person, conversation_id: str, round_number: int = 1) -> dict[str, Any]:
    """The replies the server keeps, by the name of who gave them."""
    replies = await person.replies(conversation_id, round_number)
    return {reply["voice"]["name"]: reply for reply in replies}


def in_parts(*parts: str | asyncio.Event) -> Script:
    """Says some, waits for an event, says more."""
    return (*(Say(part) if isinstance(part, str) else Hold(part) for part in parts), Finish())
