"""Votes as one gives them: a star, a choice without names, a leaderboard; and another table that is tried."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, ViewportSize, expect

from tests.browser.room import Room, in_parts
from tests.browser.test_asking import HEAR
from tests.browser.test_barriers import must_have_no_barriers
from tests.browser.windows import DESK, PHONE, Windows
from tests.upstream.scripted import Upstream, says
from tests.world import Person

BEST = re.compile("^Best, Marked as best by ")


async def test_a_star_marks_the_best_here_and_in_another_window(
    windows: Windows, sam: Person, upstream: Upstream
) -> None:
    replies = await sam.hear("Tea or coffee?", "alpha", "beta")
    path = f"/c/{replies[0]['conversation_id']}"
    page, other = await windows.open(sam, path), await windows.open(sam, path)
    beta = Room(page).reply("Beta", "finished")
    await beta.hover()
    await beta.get_by_role("button", name="Mark as best").first.click()
    await expect(beta.get_by_text(BEST)).to_be_visible()
    await expect(Room(other).reply("Beta").get_by_text(BEST)).to_be_visible()
    alpha = Room(page).reply("Alpha", "finished")
    await alpha.focus()
    await page.keyboard.press("s")
    await expect(alpha.get_by_text(BEST)).to_be_visible()
    await expect(beta.get_by_text(BEST)).to_be_hidden()
    await page.keyboard.press("s")
    await expect(alpha.get_by_text(BEST)).to_be_hidden()


async def test_a_blind_round_hides_who_is_who_until_one_has_voted(
    page: Page, upstream: Upstream, tmp_path: Path
) -> None:
    room, more = Room(page), asyncio.Event()
    upstream.plays(says("I would take tea."), model="alpha")
    upstream.plays(in_parts("I would take ", more, "coffee."), model="beta")
    await room.seat("Alpha", "Beta")
    await page.get_by_role("button", name="Blind test").click()
    await room.ask("Tea or coffee?")
    vote = page.get_by_role("group", name="Which answer is best?")
    await expect(vote).to_contain_text("You can vote when all have finished.")
    tea = page.get_by_role("article", name=re.compile("^Voice .*finished$")).filter(has_text="tea")
    await expect(vote_button(tea)).to_be_disabled()
    more.set()
    await expect(vote).to_contain_text("Names are hidden until you vote.")
    await expect(room.reply("Voice A", "finished")).to_be_visible()
    await expect(room.feed.get_by_text("Alpha")).to_have_count(0)
    await must_have_no_barriers(page)
    await page.screenshot(path=tmp_path / "blind.png")
    await expect(vote_button(page).first).to_have_accessible_description(re.compile("^Which answer is best"))
    coffee = page.get_by_role("article", name=re.compile("^Voice ")).filter(has_text="coffee")
    await page.evaluate(HEAR)
    await vote_button(coffee).click()
    beta = room.reply("Beta", "finished")
    await expect(beta.get_by_text(BEST)).to_be_visible()
    await expect(vote).to_be_hidden()
    await expect(vote_button(page)).to_have_count(0)
    result = page.get_by_role("group", name="Result of the blind vote")
    await expect(result).to_contain_text("You chose Beta.")
    await page.wait_for_function("() => heard.includes('You chose Beta.')")
    await page.screenshot(path=tmp_path / "known.png")
    await result.get_by_role("button", name="Undo").click()
    await expect(result).to_contain_text("No vote counts now.")
    await expect(result).to_be_focused()
    await expect(beta.get_by_text(BEST)).to_be_hidden()


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
async def test_names_appear_in_the_cards_one_voted_on_and_nothing_moves(
    windows: Windows, sam: Person, upstream: Upstream, tmp_path: Path, size: ViewportSize
) -> None:
    for model in ("alpha", "beta"):
        upstream.says("\n\n".join(f"Paragraph {n} of {model}." for n in range(40)), model=model)
    replies = await sam.hear("Tea or coffee?", "alpha", "beta", is_blind=True)
    page = await windows.open(sam, f"/c/{replies[0]['conversation_id']}", viewport=size)
    question = page.get_by_role("group", name="Which answer is best?")
    await expect(question).to_contain_text("Names are hidden until you vote.")
    cards = page.get_by_role("article", name=re.compile("^Voice "))
    await expect(cards.last).to_be_visible()
    assert (await top(question)) < (await top(cards.first))

    button = vote_button(cards.last)
    if size == PHONE:
        await page.get_by_role("tab", name="Voice B").click()
    await button.scroll_into_view_if_needed()
    await page.screenshot(path=tmp_path / f"before-{size['width']}.png")
    await button.focus()
    voted = await cards.last.get_attribute("data-message")
    foot = page.locator(f"[data-message='{voted}'] footer")
    before = await top(foot)
    await page.keyboard.press("Enter")
    card = page.locator(f"[data-message='{voted}']")
    await expect(card).to_be_focused()
    await expect(card.get_by_text(BEST)).to_have_count(1)
    assert abs(await top(foot) - before) <= 1
    assert await card.evaluate("card => [...document.querySelectorAll('[data-message]')].pop() === card")
    await page.screenshot(path=tmp_path / f"after-{size['width']}.png")


async def test_a_tie_is_told_in_every_window_in_place_of_the_question(
    windows: Windows, sam: Person, upstream: Upstream
) -> None:
    upstream.says("Tea.", model="alpha")
    upstream.says("Coffee.", model="beta")
    replies = await sam.hear("Tea or coffee?", "alpha", "beta", is_blind=True)
    path = f"/c/{replies[0]['conversation_id']}"
    page, other = await windows.open(sam, path), await windows.open(sam, path)
    await page.get_by_role("group", name="Which answer is best?").get_by_role("button", name="Tie").click()
    for each in (page, other):
        result = each.get_by_role("group", name="Result of the blind vote")
        await expect(result).to_contain_text("You voted for a tie.")
        await expect(Room(each).reply("Alpha", "finished")).to_be_visible()
    await expect(page.get_by_role("group", name="Result of the blind vote")).to_be_focused()


def vote_button(within: Page | Locator) -> Locator:
    """What gives the vote to a reply whose name is hidden."""
    return within.get_by_role("button", name=re.compile("^Vote for Voice "))


async def top(element: Locator) -> float:
    box = await element.bounding_box()
    assert box is not None
    return box["y"]


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
