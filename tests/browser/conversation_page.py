"""Page object of a conversation: finds its parts by their accessible names."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.upstream.scripted import Finish, Hold, Say, Script
from tests.world import Person


class ConversationPage:
    """A conversation in a window."""

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
        """Seats exactly these voices at the table."""
        await self.field.click()
        await expect(self._chips).not_to_have_count(0)  # the table appears after the models are loaded
        for _ in range(await self._chips.count()):
            await self._chips.first.click()
        await self.table.get_by_role("button", name="Add a voice").click()
        for name in names:
            await self.option(name).click()
        await self.page.keyboard.press("Escape")
        await expect(self._chips).to_have_count(len(names))

    def option(self, name: str) -> Locator:
        """A model or persona in the list of voices that can be added."""
        name_label = self.page.locator("b", has_text=re.compile(f"^{re.escape(name)}$"))
        return self.page.get_by_role("option", disabled=False).filter(has=name_label)

    @property
    def _chips(self) -> Locator:
        return self.table.get_by_role("button", name=re.compile("^Remove "))

    def reply(self, name: str, state: str = "") -> Locator:
        """The card of a voice, optionally only in this state."""
        return self.page.get_by_role("article", name=re.compile(f"^{name}, .*{state}$"))

    def reply_text(self, name: str) -> Locator:
        """The text of a voice's reply, without its thinking."""
        return self.reply(name).locator(".words")

    def meter(self, name: str) -> Locator:
        """The usage figures below a reply."""
        return self.reply(name).locator("footer .meter > span")

    def question(self, text: str) -> Locator:
        return self.feed.get_by_text(text, exact=True)

    def sidebar_link(self, title: str) -> Locator:
        """The link of a conversation in the sidebar, in any state."""
        return self.sidebar.get_by_role("link", name=re.compile(f"^{re.escape(title)}( ,.*)?$"))

    async def choose(self, title: str, action: str) -> None:
        """Chooses an action in the menu of a conversation in the sidebar."""
        await self.sidebar_link(title).hover()
        await self.sidebar.get_by_role("button", name=f"More for {title}").click()
        await self.page.get_by_role("menuitem", name=action).click()

    async def paragraphs(self, name: str) -> str:
        """The text of a reply with a blank line between its paragraphs."""
        return "\n\n".join(await self.reply_text(name).locator("p").all_inner_texts())

    @property
    def id(self) -> str:
        return self.page.url.rpartition("/")[2]


async def stored_replies(person: Person, conversation_id: str, round_number: int = 1) -> dict[str, Any]:
    """The stored replies of a round, by the names of their voices."""
    replies = await person.replies(conversation_id, round_number)
    return {reply["voice"]["name"]: reply for reply in replies}


def reply_in_parts(*parts: str | asyncio.Event) -> Script:
    """A script that sends texts and waits for events in between."""
    return (*(Say(part) if isinstance(part, str) else Hold(part) for part in parts), Finish())
