"""Votes as one gives them: a star, a choice without names, a leaderboard; and another table that is tried."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from playwright.async_api import Page, expect

from tests.browser.room import Room, in_parts
from tests.browser.windows import Windows
from tests.upstream.scripted import Upstream, says
from tests.world import Person


async def test_a_star_marks_the_best_here_and_in_another_window(
    windows: Windows, sam: Person, upstream: Upstream
) -> None:
    replies = await sam.hear("Tea or coffee?", "alpha", "beta")
    path = f"/c/{replies[0]['conversation_id']}"
    page, other = await windows.open(sam, path), await windows.open(sam, path)
    beta = Room(page).reply("Beta", "finished")
    await beta.hover()
    await beta.get_by_role("button", name="Mark as best").first.click()
    await expect(beta.get_by_text("Best", exact=True)).to_be_visible()
    await expect(Room(other).reply("Beta").get_by_text("Best", exact=True)).to_be_visible()
    alpha = Room(page).reply("Alpha", "finished")
    await alpha.focus()
    await page.keyboard.press("s")
    await expect(alpha.get_by_text("Best", exact=True)).to_be_visible()
    await expect(beta.get_by_text("Best", exact=True)).to_be_hidden()
    await page.keyboard.press("s")
    await expect(alpha.get_by_text("Best", exact=True)).to_be_hidden()


async def test_a_blind_round_hides_who_is_who_until_one_has_voted(
    page: Page, upstream: Upstream, tmp_path: Path
) -> None:
    room, more = Room(page), asyncio.Event()
    upstream.plays(says("I would take tea."), model="alpha")
    upstream.plays(in_parts("I would take ", more, "coffee."), model="beta")
    await room.seat("Alpha", "Beta")
    await page.get_by_role("button", name="Blind test").click()
    await room.ask("Tea or coffee?")
    vote = page.get_by_role("group", name="Which reply is best?")
    await expect(vote).to_contain_text("You can vote when all have finished.")
    await expect(vote.get_by_role("button", name="Voice").first).to_be_disabled()
    more.set()
    await expect(vote).to_contain_text("Names are shown after you vote.")
    await expect(room.reply("Voice A", "finished")).to_be_visible()
    await expect(room.feed.get_by_text("Alpha")).to_have_count(0)
    await page.screenshot(path=tmp_path / "blind.png")
    coffee = page.get_by_role("article", name=re.compile("^Voice ")).filter(has_text="coffee")
    name = await coffee.get_by_role("heading").inner_text()
    await vote.get_by_role("button", name=name).click()
    await expect(room.reply("Beta", "finished").get_by_text("Best", exact=True)).to_be_visible()
    await expect(vote).to_be_hidden()


async def test_the_leaderboard_shows_whose_answers_are_kept(
    windows: Windows, sam: Person, upstream: Upstream, tmp_path: Path
) -> None:
    page = await windows.open(sam, f"/p/{sam.home}")
    await page.get_by_role("tab", name="Leaderboard").click()
    await expect(page.get_by_text("No votes yet")).to_be_visible()
    for _ in range(2):
        alpha, _beta = await sam.hear("Tea or coffee?", "alpha", "beta")
        await sam.post(f"/api/messages/{alpha['id']}/vote", {"verdict": "best"})
    await page.reload()
    await page.get_by_role("tab", name="Leaderboard").click()
    rows = page.get_by_role("table").get_by_role("row")
    await expect(rows).to_have_count(3)
    await expect(rows.nth(1)).to_contain_text("Alpha")
    await expect(rows.nth(1)).to_contain_text("2 · 0 · 0")
    await expect(rows.nth(1)).to_contain_text("too few to rank")
    await page.screenshot(path=tmp_path / "leaderboard.png")


async def test_another_table_is_tried_and_laid_beside_the_first(
    windows: Windows, sam: Person, upstream: Upstream, tmp_path: Path
) -> None:
    replies = await sam.hear("Tea or coffee?", "alpha")
    source = replies[0]["conversation_id"]
    page = await windows.open(sam, f"/c/{source}")
    room = Room(page)
    await expect(room.reply("Alpha", "finished")).to_be_visible()
    upstream.says("Coffee, of course.", model="beta")
    await room.field.press("Escape")
    await page.keyboard.press("ControlOrMeta+k")
    await page.keyboard.type("other models")
    await page.get_by_role("option", name="Ask everything again with other models").click()
    dialog = page.get_by_role("dialog", name="Ask everything again with other models")
    answering = dialog.get_by_role("group", name="Answering")
    await answering.get_by_role("button", name="Add a voice").click()
    await room.option("Beta").click()
    await page.keyboard.press("Escape")
    await answering.get_by_role("button", name="Remove Alpha").click()
    await expect(answering.get_by_role("button", name=re.compile("^Remove "))).to_have_count(1)
    await expect(dialog.get_by_role("status")).to_have_text("1 round, price unknown")
    await page.screenshot(path=tmp_path / "what-if.png")
    await dialog.get_by_role("button", name="Ask again").click()
    await expect(page.get_by_text("The round was asked again.")).to_be_visible()
    await expect(room.reply("Beta", "finished")).to_contain_text("Coffee, of course.")
    assert source not in page.url
    await page.get_by_role("link", name="Compare").click()
    await expect(page.get_by_text("Coffee, of course.")).to_be_visible()
    await expect(page).to_have_url(re.compile("/compare/"))
