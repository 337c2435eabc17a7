"""Two people in one conversation see the author of each question live."""

from __future__ import annotations

import re

from playwright.async_api import Locator, expect

from tests.browser.conversation_page import ConversationPage
from tests.browser.windows import Windows
from tests.upstream.scripted import Upstream
from tests.world import Person, World


async def test_authors_are_named_live_and_after_they_left(
    windows: Windows, world: World, administrator: Person, sam: Person, upstream: Upstream
) -> None:
    [reply] = await sam.ask_and_wait("Who is here?", "alpha")
    sams_window = ConversationPage(await windows.open(sam, f"/c/{reply['conversation_id']}"))
    await expect(sams_window.reply("Alpha", "finished")).to_be_visible()

    zoe = await world.create_account(administrator, f"Zoe{sam.me['user']['name']}")
    name = zoe.me["user"]["name"]
    await sam.put(f"/api/projects/{sam.home}/members", {"user_id": zoe.id, "role": "editor"})
    zoes_window = ConversationPage(await windows.open(zoe, f"/c/{reply['conversation_id']}"))
    await expect(author_label(zoes_window, sam.me["user"]["name"])).to_be_visible()
    await zoes_window.ask("I am.")
    await expect(author_label(sams_window, name)).to_be_visible()
    await zoe.ask_and_wait("And this is mine.", "alpha", project_id=sam.home)
    zoes_link = sams_window.sidebar.get_by_role("link", name=re.compile(f"And this is mine.*, by {name}"))
    await expect(zoes_link).to_be_visible()

    await sam.delete(f"/api/projects/{sam.home}/members/{zoe.id}")
    await sams_window.page.reload()
    await expect(author_label(sams_window, name)).to_be_visible()
    await expect(sams_window.feed.get_by_text("Someone")).to_have_count(0)


def author_label(conversation: ConversationPage, name: str) -> Locator:
    return conversation.rounds.get_by_text(name, exact=True)
