"""A reply cut by a safety filter keeps its text and says so; an empty reply says why."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import Page, expect

from tests.browser.conversation_page import ConversationPage
from tests.browser.test_accessibility import must_be_accessible
from tests.upstream.scripted import Finish, Say, Upstream


async def test_a_filtered_reply_keeps_its_text_and_cannot_be_continued(
    page: Page, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.plays((Say("First you take"), Finish("content_filter")), model="alpha")
    upstream.plays((Finish("tool_calls"),), model="beta")
    conversation = ConversationPage(page)
    await conversation.seat("Alpha", "Beta")
    await conversation.ask("How?")
    cut, empty = conversation.reply("Alpha"), conversation.reply("Beta")
    await expect(cut).to_contain_text("Stopped by the provider’s safety filter after 3 words.")
    await expect(cut.locator(".words")).to_have_text("First you take")
    await expect(cut.get_by_role("button", name="Continue")).to_have_count(0)
    await expect(cut.get_by_role("button", name="Start over")).to_be_visible()
    await expect(empty).to_contain_text("The model wrote no reply")
    await page.screenshot(path=tmp_path / "filtered.png")
    await must_be_accessible(page)
