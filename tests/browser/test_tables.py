"""The table: personas in their colours, mentions, a chair with instructions, saved tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.browser.conversation_page import ConversationPage
from tests.browser.test_accessibility import must_be_accessible
from tests.browser.windows import PHONE, Windows
from tests.patience import soon
from tests.upstream.scripted import Upstream, says
from tests.world import Person

BEEKEEPER = {
    "name": "The Beekeeper",
    "glyph": "🐝",
    "hue": 5,
    "instructions": "You keep bees and speak of nothing else.",
    "model": "voices:beta",
    "tools": False,
}


SCROLL_AND_WAIT = """
    (list) => new Promise((settled) => {
        list.scrollTop = list.scrollTop ? 0 : list.scrollHeight;
        requestAnimationFrame(() => requestAnimationFrame(() => settled()));
    })
"""
"""Waits for two frames, not for a scroll event: a list that fits into its box sends none."""


async def create_beekeeper(sam: Person, **change: Any) -> str:
    """Creates a private persona and returns its id."""
    new = {"scope": "user", "character": BEEKEEPER | change}
    return str((await sam.post("/api/personas", new, expect=201))["id"])


async def choose_mode(page: Page, name: str) -> None:
    await page.get_by_role("button", name=re.compile("^Mode")).click()
    await page.get_by_role("option", name=re.compile(f"^{name}")).click()


def requests_text(upstream: Upstream, model: str) -> str:
    """The bodies of all requests to a model."""
    return str([request.body for request in upstream.requests if request.model == model])


async def test_the_estimate_lists_tokens_and_price_for_each_reply(page: Page) -> None:
    conversation = ConversationPage(page)
    await conversation.seat("Alpha", "Beta")
    await choose_mode(page, "Brain trust")
    await page.get_by_role("button", name="price unknown for 2 replies and a summary").click()
    costs = page.get_by_role("dialog", name="Estimate").get_by_role("row")
    await expect(costs).to_have_count(5)
    await expect(costs.nth(1)).to_contain_text(re.compile(r"alpha.*\d %.*price unknown"))
    await expect(costs.nth(3)).to_contain_text("Summary, Alpha")
    await expect(page.get_by_role("dialog", name="Estimate")).to_contain_text(
        "recent replies, or 500 tokens until"
    )
    await page.keyboard.press("Escape")
    await expect(costs).to_have_count(0)
    await expect(conversation.table).to_be_visible()


async def test_a_new_table_has_the_three_built_in_personas(page: Page, tmp_path: Path) -> None:
    conversation = ConversationPage(page)
    for name in ("The Sage", "The Skeptic", "The Strategist"):
        await expect(conversation.table.get_by_role("button", name=f"Remove {name}")).to_be_visible()
    await page.screenshot(path=tmp_path / "laid.png")
    await must_be_accessible(page)


async def test_the_list_of_voices_does_not_move_while_several_are_added(page: Page) -> None:
    conversation = ConversationPage(page)
    await conversation.seat("Alpha")
    await conversation.table.get_by_role("button", name="Add a voice").click()
    names = page.get_by_role("listbox", name="Models and personas")
    await conversation.option("Gamma").scroll_into_view_if_needed()
    box_before = await names.bounding_box()
    await conversation.option("Gamma").click()
    await expect(conversation.table.get_by_role("button", name="Remove Gamma")).to_be_visible()
    async with soon():
        await names.evaluate(SCROLL_AND_WAIT)
    assert await names.bounding_box() == box_before


async def test_a_persona_has_its_colour_and_its_instructions(
    page: Page, sam: Person, upstream: Upstream
) -> None:
    await create_beekeeper(sam)
    upstream.says("Ask the hive.", model="beta")
    conversation = ConversationPage(page)
    await conversation.seat("Alpha", "The Beekeeper")
    await conversation.ask("Who should lead?")
    await expect(conversation.reply("The Beekeeper", "finished")).to_contain_text("Ask the hive.")
    await expect(conversation.reply("The Beekeeper")).to_have_attribute("data-seat", "5")
    await expect(conversation.reply("Alpha")).to_have_attribute("data-seat", "1")
    assert "You keep bees and speak of nothing else." in requests_text(upstream, "beta")
    assert "You keep bees" not in requests_text(upstream, "alpha")


async def test_an_at_mention_asks_one_voice_and_keeps_the_table(
    page: Page, sam: Person, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.says("As you all say.", model="beta")
    await create_beekeeper(sam)
    conversation = ConversationPage(page)
    await conversation.seat("Alpha", "Gamma")
    await conversation.ask("Good morning, all.")
    await expect(conversation.reply("Gamma", "finished")).to_be_visible()
    await conversation.field.click()
    await conversation.field.press_sequentially("So, @bee")
    offered = page.get_by_role("listbox", name="Who should answer")
    await expect(offered.get_by_role("option")).to_have_text(re.compile("The Beekeeper"))
    await page.screenshot(path=tmp_path / "naming.png")
    await conversation.field.press("Enter")
    await expect(conversation.field).to_have_value("So, @The Beekeeper ")
    await conversation.field.press_sequentially("what now?")
    await expect(page.get_by_text("Only The Beekeeper will answer this time.")).to_be_visible()
    await page.screenshot(path=tmp_path / "named.png")
    await must_be_accessible(page)
    before = len(upstream.requests)
    await conversation.field.press("Enter")
    await expect(conversation.reply("The Beekeeper", "finished")).to_contain_text("As you all say.")
    assert [request.model for request in upstream.requests[before:]] == ["beta"]
    stored = await sam.get(f"/api/conversations/{conversation.id}")
    assert [voice["name"] for voice in stored["conversation"]["table"]] == ["Alpha", "Gamma"]
    await conversation.field.click()
    await expect(conversation.table.get_by_role("button", name="Remove Gamma")).to_be_visible()
    await conversation.ask("@gamma and you?")
    await expect(conversation.rounds.nth(2)).to_contain_text("Round 3 · One model")
    await expect(conversation.rounds.nth(2).get_by_role("article")).to_have_attribute("data-seat", "2")


async def test_a_mode_shows_its_minimum_of_voices_and_its_chair(
    page: Page, sam: Person, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.plays(says("All in all: tea."), says("{}"), model="gamma")
    conversation = ConversationPage(page)
    await conversation.seat("Alpha")
    await choose_mode(page, "Brain trust")
    await conversation.field.fill("Tea or coffee?")
    await expect(page.get_by_text("Brain trust needs at least two voices.")).to_be_visible()
    await expect(page.get_by_role("button", name="Send", exact=True)).to_be_disabled()
    await conversation.seat("Alpha", "Beta")
    await page.get_by_role("button", name="Summary: Alpha").click()
    chair = page.get_by_role("dialog", name="Summary")
    await chair.get_by_label("Instructions for the summary (optional)").fill("Say it in one word.")
    await page.screenshot(path=tmp_path / "chair.png")
    await must_be_accessible(page)
    await chair.get_by_role("button", name="Another model").click()
    await option(page, "Gamma").click()
    await expect(chair.get_by_role("radio", name=re.compile("Gamma"))).to_be_checked()
    await page.keyboard.press("Escape")
    await conversation.ask("Tea or coffee?")
    await expect(conversation.feed.get_by_role("heading", name="Summary")).to_be_visible()
    await expect(conversation.feed).to_contain_text("All in all: tea.")
    assert "Say it in one word." in requests_text(upstream, "gamma")
    await page.reload()
    await conversation.field.click()
    await page.get_by_role("button", name="Summary: Gamma").click()
    await expect(chair.get_by_label("Instructions for the summary (optional)")).to_have_value(
        "Say it in one word."
    )


def option(page: Page, name: str) -> Locator:
    return page.get_by_role("option", disabled=False).filter(has=page.locator("b", has_text=name))


async def test_a_phone_sets_the_table_in_its_sheet(
    windows: Windows, sam: Person, upstream: Upstream, tmp_path: Path
) -> None:
    await create_beekeeper(sam)
    page = await windows.open(sam, "/new", PHONE, is_mobile=True, has_touch=True)
    await page.get_by_role("button", name="Ask all").tap()
    sheet = page.get_by_role("dialog", name="Write a message")
    await expect(sheet.get_by_role("button", name="Remove The Sage")).to_be_visible()
    await sheet.get_by_role("button", name=re.compile("^Mode")).tap()
    await page.get_by_role("option", name=re.compile("^Brain trust")).tap()
    await expect(sheet.get_by_role("button", name="Summary: The Sage")).to_be_visible()
    await sheet.get_by_role("textbox", name="Message").fill("Well, @The Beekeeper, what now?")
    await expect(sheet).to_contain_text("Only The Beekeeper will answer this time.")
    await page.screenshot(path=tmp_path / "sheet.png", animations="disabled")
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    await sheet.get_by_role("button", name="Send").tap()
    await expect(ConversationPage(page).reply("The Beekeeper", "finished")).to_contain_text("beta heard:")
    await page.get_by_role("button", name="Ask all").tap()
    await expect(sheet.get_by_role("button", name="Remove The Sage")).to_be_visible()


async def test_a_table_can_be_saved_reused_renamed_and_deleted(
    page: Page, sam: Person, upstream: Upstream, tmp_path: Path
) -> None:
    await create_beekeeper(sam)
    conversation = ConversationPage(page)
    await conversation.seat("The Beekeeper", "Gamma")
    await choose_mode(page, "One after another")
    tables = page.get_by_role("dialog", name="Saved groups")
    await page.get_by_role("button", name="Saved groups", exact=True).click()
    await tables.get_by_label("Save the current group as").fill("Garden council")
    await must_be_accessible(page)
    await tables.get_by_role("button", name="Save group").click()
    await expect(tables.get_by_role("button", name=re.compile("^Garden council"))).to_be_visible()
    await page.screenshot(path=tmp_path / "tables.png")
    await tables.get_by_role("button", name="More for Garden council").click()
    await page.get_by_role("menuitemradio", name="My default").click()
    await expect(tables).to_contain_text("your default")
    await page.keyboard.press("Escape")

    await page.evaluate("localStorage.clear()")
    await page.reload()
    await expect(conversation.table.get_by_role("button", name="Remove The Beekeeper")).to_be_visible()
    await expect(page.get_by_role("button", name="Mode: One after another")).to_be_visible()
    await conversation.seat("Alpha")
    await page.get_by_role("listitem").get_by_role("button", name=re.compile("^Garden council")).click()
    await expect(conversation.table.get_by_role("button", name="Remove Gamma")).to_be_visible()
    await page.screenshot(path=tmp_path / "kept.png")

    await page.get_by_role("button", name="Saved groups", exact=True).click()
    await tables.get_by_role("button", name="More for Garden council").click()
    await page.get_by_role("menuitem", name="Rename").click()
    await tables.get_by_label("Name of the group").fill("Orchard council")
    await tables.get_by_label("Name of the group").press("Enter")
    await tables.get_by_role("button", name="More for Orchard council").click()
    await page.get_by_role("menuitem", name="Delete").click()
    await page.get_by_role("button", name="Delete group").click()
    await expect(page.get_by_text("Orchard council")).to_have_count(0)


async def test_a_summary_can_be_added_to_an_earlier_round(
    windows: Windows, sam: Person, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.plays(says("Tea."), says("Later."), says("Tea it is, all in all."), says("{}"), model="alpha")
    [first, _] = await sam.ask_and_wait("Tea or coffee?", "alpha", "beta")
    await sam.ask_and_wait("And later?", "alpha", "beta", conversation_id=first["conversation_id"])
    page = await windows.open(sam, f"/c/{first['conversation_id']}")
    conversation = ConversationPage(page)
    await expect(conversation.rounds.first).to_contain_text("Round 1 · Parallel · everyone sees all")
    await conversation.rounds.first.get_by_role("button", name="More for round 1").click()
    await page.get_by_role("menuitem", name="Ask for a summary").click()
    dialog = page.get_by_role("dialog", name="Summary of round 1")
    await dialog.get_by_label("Instructions for the summary (optional)").fill("Count the cups.")
    await page.screenshot(path=tmp_path / "asking.png")
    await must_be_accessible(page)
    await dialog.get_by_role("button", name="Write a summary").click()
    await expect(conversation.rounds.first.get_by_role("heading", name="Summary")).to_be_visible()
    await expect(conversation.rounds.first).to_contain_text("Tea it is, all in all.")
    assert "Count the cups." in requests_text(upstream, "alpha")
    stored = await sam.get(f"/api/conversations/{conversation.id}")
    assert [message["step"] for message in stored["rounds"][0]["messages"]].count("synthesis") == 1
