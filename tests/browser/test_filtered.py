"""A reply that a safety filter cut keeps its text and says so; one that came to nothing says why."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import Page, expect

from tests.browser.room import Room
from tests.browser.test_barriers import must_have_no_barriers
from tests.upstream.scripted import Finish, Say, Upstream


async def test_a_reply_cut_by_a_filter_says_so_below_its_text_and_is_not_continued(
    page: Page, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.plays((Say("First you take"), Finish("content_filter")), model="alpha")
    upstream.plays((Finish("tool_calls"),), model="beta")
    room = Room(page)
    await room.seat("Alpha", "Beta")
    await room.ask("How?")
    cut, empty = room.reply("Alpha"), room.reply("Beta")
    await expect(cut).to_contain_text("Stopped by the provider’s safety filter after 3 words.")
    await expect(cut.locator(".words")).to_have_text("First you take")
    await expect(cut.get_by_role("button", name="Continue")).to_have_count(0)
    await expect(cut.get_by_role("button", name="Start over")).to_be_visible()
    await expect(empty).to_contain_text("The model wrote no reply")
    await page.screenshot(path=tmp_path / "filtered.png")
    await must_have_no_barriers(page)
