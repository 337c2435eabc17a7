"""Votes in the interface: best replies, blind votes, the leaderboard, and replays with other models."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, ViewportSize, expect

from tests.browser.conversation_page import ConversationPage, reply_in_parts
from tests.browser.test_accessibility import must_be_accessible
from tests.browser.test_asking import RECORD_ANNOUNCEMENTS
from tests.browser.windows import DESK, PHONE, Windows
from tests.upstream.scripted import Upstream, says
from tests.world import Person

BEST = re.compile("^Best, Marked as best by ")


async def test_a_best_vote_appears_in_every_window_and_can_be_withdrawn(
    windows: Windows, sam: Person, upstream: Upstream
) -> None:
    replies = await sam.ask_and_wait("Tea or coffee?", "alpha", "beta")
    path = f"/c/{replies[0]['conversation_id']}"
    page, second_page = await windows.open(sam, path), await windows.open(sam, path)
    beta = ConversationPage(page).reply("Beta", "finished")
    await beta.hover()
    await beta.get_by_role("button", name="Mark as best").first.click()
    await expect(beta.get_by_text(BEST)).to_be_visible()
    await expect(ConversationPage(second_page).reply("Beta").get_by_text(BEST)).to_be_visible()
    alpha = ConversationPage(page).reply("Alpha", "finished")
    await alpha.focus()
    await page.keyboard.press("s")
    await expect(alpha.get_by_text(BEST)).to_be_visible()
    await expect(beta.get_by_text(BEST)).to_be_hidden()
    await page.keyboard.press("s")
    await expect(alpha.get_by_text(BEST)).to_be_hidden()


async def test_a_blind_round_hides_the_names_until_the_vote(
    page: Page, upstream: Upstream, tmp_path: Path
) -> None:
    conversation, finish_beta = ConversationPage(page), asyncio.Event()
    upstream.plays(says("I would take tea."), model="alpha")
    upstream.plays(reply_in_parts("I would take ", finish_beta, "coffee."), model="beta")
    await conversation.seat("Alpha", "Beta")
    await page.get_by_role("button", name="Blind test").click()
    await conversation.ask("Tea or coffee?")
    vote = page.get_by_role("group", name="Which answer is best?")
    await expect(vote).to_contain_text("You can vote when all have finished.")
    tea = page.get_by_role("article", name=re.compile("^Voice .*finished$")).filter(has_text="tea")
    await expect(vote_button(tea)).to_be_disabled()
    finish_beta.set()
    await expect(vote).to_contain_text("Names are hidden until you vote.")
    await expect(conversation.reply("Voice A", "finished")).to_be_visible()
    await expect(conversation.feed.get_by_text("Alpha")).to_have_count(0)
    await must_be_accessible(page)
    await page.screenshot(path=tmp_path / "blind.png")
    await expect(vote_button(page).first).to_have_accessible_description(re.compile("^Which answer is best"))
    coffee = page.get_by_role("article", name=re.compile("^Voice ")).filter(has_text="coffee")
    await page.evaluate(RECORD_ANNOUNCEMENTS)
    await vote_button(coffee).click()
    beta = conversation.reply("Beta", "finished")
    await expect(beta.get_by_text(BEST)).to_be_visible()
    await expect(vote).to_be_hidden()
    await expect(vote_button(page)).to_have_count(0)
    result = page.get_by_role("group", name="Result of the blind vote")
    await expect(result).to_contain_text("You chose Beta.")
    await page.wait_for_function("() => announcements.includes('You chose Beta.')")
    await page.screenshot(path=tmp_path / "known.png")
    await result.get_by_role("button", name="Undo").click()
    await expect(result).to_contain_text("No vote counts now.")
    await expect(result).to_be_focused()
    await expect(beta.get_by_text(BEST)).to_be_hidden()


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
async def test_the_vote_reveals_the_names_without_moving_the_page(
    windows: Windows, sam: Person, upstream: Upstream, tmp_path: Path, size: ViewportSize
) -> None:
    for model in ("alpha", "beta"):
        upstream.says("\n\n".join(f"Paragraph {n} of {model}." for n in range(40)), model=model)
    replies = await sam.ask_and_wait("Tea or coffee?", "alpha", "beta", is_blind=True)
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
    message_id = await cards.last.get_attribute("data-message")
    footer = page.locator(f"[data-message='{message_id}'] footer")
    top_before = await top(footer)
    await page.keyboard.press("Enter")
    card = page.locator(f"[data-message='{message_id}']")
    await expect(card).to_be_focused()
    await expect(card.get_by_text(BEST)).to_have_count(1)
    assert abs(await top(footer) - top_before) <= 1
    assert await card.evaluate("card => [...document.querySelectorAll('[data-message]')].pop() === card")
    await page.screenshot(path=tmp_path / f"after-{size['width']}.png")


async def test_a_tie_appears_in_every_window(windows: Windows, sam: Person, upstream: Upstream) -> None:
    upstream.says("Tea.", model="alpha")
    upstream.says("Coffee.", model="beta")
    replies = await sam.ask_and_wait("Tea or coffee?", "alpha", "beta", is_blind=True)
    path = f"/c/{replies[0]['conversation_id']}"
    page, second_page = await windows.open(sam, path), await windows.open(sam, path)
    await page.get_by_role("group", name="Which answer is best?").get_by_role("button", name="Tie").click()
    for window in (page, second_page):
        result = window.get_by_role("group", name="Result of the blind vote")
        await expect(result).to_contain_text("You voted for a tie.")
        await expect(ConversationPage(window).reply("Alpha", "finished")).to_be_visible()
    await expect(page.get_by_role("group", name="Result of the blind vote")).to_be_focused()


def vote_button(within: Page | Locator) -> Locator:
    """The vote button of a reply whose name is hidden."""
    return within.get_by_role("button", name=re.compile("^Vote for Voice "))


async def top(element: Locator) -> float:
    box = await element.bounding_box()
    assert box is not None
    return box["y"]


async def test_the_leaderboard_counts_the_votes(
    windows: Windows, sam: Person, upstream: Upstream, tmp_path: Path
) -> None:
    page = await windows.open(sam, f"/p/{sam.home}")
    await page.get_by_role("tab", name="Leaderboard").click()
    await expect(page.get_by_text("No votes yet")).to_be_visible()
    for _ in range(2):
        alpha, _beta = await sam.ask_and_wait("Tea or coffee?", "alpha", "beta")
        await sam.post(f"/api/messages/{alpha['id']}/vote", {"verdict": "best"})
    await page.reload()
    await page.get_by_role("tab", name="Leaderboard").click()
    rows = page.get_by_role("table").get_by_role("row")
    await expect(rows).to_have_count(3)
    await expect(rows.nth(1)).to_contain_text("Alpha")
    await expect(rows.nth(1)).to_contain_text("2 · 0 · 0")
    await expect(rows.nth(1)).to_contain_text("too few to rank")
    await page.screenshot(path=tmp_path / "leaderboard.png")


async def test_a_replay_with_another_model_can_be_compared(
    windows: Windows, sam: Person, upstream: Upstream, tmp_path: Path
) -> None:
    replies = await sam.ask_and_wait("Tea or coffee?", "alpha")
    source = replies[0]["conversation_id"]
    page = await windows.open(sam, f"/c/{source}")
    conversation = ConversationPage(page)
    await expect(conversation.reply("Alpha", "finished")).to_be_visible()
    upstream.says("Coffee, of course.", model="beta")
    await conversation.field.press("Escape")
    await page.keyboard.press("ControlOrMeta+k")
    await page.keyboard.type("other models")
    await page.get_by_role("option", name="Ask everything again with other models").click()
    dialog = page.get_by_role("dialog", name="Ask everything again with other models")
    answering = dialog.get_by_role("group", name="Answering")
    await answering.get_by_role("button", name="Add a voice").click()
    await conversation.option("Beta").click()
    await page.keyboard.press("Escape")
    await answering.get_by_role("button", name="Remove Alpha").click()
    await expect(answering.get_by_role("button", name=re.compile("^Remove "))).to_have_count(1)
    await expect(dialog.get_by_role("status")).to_have_text("1 round, price unknown")
    await page.screenshot(path=tmp_path / "what-if.png")
    await dialog.get_by_role("button", name="Ask again").click()
    await expect(page.get_by_text("The round was asked again.")).to_be_visible()
    await expect(conversation.reply("Beta", "finished")).to_contain_text("Coffee, of course.")
    assert source not in page.url
    await page.get_by_role("link", name="Compare").click()
    await expect(page.get_by_text("Coffee, of course.")).to_be_visible()
    await expect(page).to_have_url(re.compile("/compare/"))
