"""The thinking effort is chosen at the seat and in the persona, if the model has efforts."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.conversation_page import ConversationPage
from tests.browser.test_accessibility import must_be_accessible
from tests.browser.windows import PHONE, Windows
from tests.upstream.scripted import Upstream
from tests.world import Person, World, running

MODELS = [
    {"id": "thinker", "name": "Thinker", "efforts": ["off", "low", "medium", "high"]},
    {"id": "plain", "name": "Plain"},
]


@pytest_asyncio.fixture(loop_scope="session")
async def world(tmp_path: Path, upstream: Upstream) -> AsyncIterator[World]:
    """A server with a model that has efforts and one that has none."""
    row = {"name": "voices", "base_url": f"{upstream.url}/v1", "is_local": False, "models": MODELS}
    async with running(tmp_path, {"TERTULIA_ENDPOINTS": json.dumps([row])}) as world:
        yield world


@pytest_asyncio.fixture(loop_scope="session")
async def sam(world: World) -> Person:
    return await world.set_up("Sam")


def sent_efforts(upstream: Upstream) -> dict[str, str | None]:
    return {request.model: request.body.get("reasoning_effort") for request in upstream.requests}


async def test_the_menu_of_a_seat_sets_its_effort_and_the_receipt_shows_it(
    page: Page, upstream: Upstream, tmp_path: Path
) -> None:
    conversation = ConversationPage(page)
    await conversation.seat("Thinker", "Plain")
    await expect(page.get_by_role("button", name="Thinking: automatic (Thinker)")).to_be_visible()
    await expect(page.get_by_role("button", name="(Plain)")).to_have_count(0)
    await page.get_by_role("button", name="Thinking: automatic (Thinker)").press("Enter")
    menu = page.get_by_role("menu", name="Thinking of Thinker")
    await expect(menu.get_by_role("menuitemradio")).to_have_text(
        ["Automatic", "Off", "Low", "Medium", "High"]
    )
    await page.screenshot(path=tmp_path / "menu.png")
    await must_be_accessible(page)
    await page.keyboard.press("h")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Thinking: high (Thinker)")).to_be_visible()
    await page.screenshot(path=tmp_path / "chosen.png")
    await conversation.ask("How many?")
    await expect(conversation.reply("Thinker", "finished")).to_be_visible()
    await expect(conversation.reply("Plain", "finished")).to_be_visible()
    assert sent_efforts(upstream) == {"thinker": "high", "plain": None}
    await conversation.reply("Thinker").focus()
    await page.keyboard.press("r")
    await expect(page.get_by_text("Thinking: high", exact=True)).to_be_visible()
    await page.screenshot(path=tmp_path / "receipt.png")

    # The effort stays with the seat after a reload.
    upstream.requests.clear()
    await page.reload()
    await conversation.field.click()
    await expect(page.get_by_role("button", name="Thinking: high (Thinker)")).to_be_visible()
    await conversation.ask("And now?")
    await expect(conversation.reply_text("Thinker").nth(1)).to_contain_text("And now?")
    assert sent_efforts(upstream)["thinker"] == "high"


async def test_a_persona_has_its_own_effort(
    windows: Windows, sam: Person, upstream: Upstream, tmp_path: Path
) -> None:
    page = await windows.open(sam, "/settings/personas")
    await page.get_by_role("button", name="New persona").click()
    editor = page.get_by_role("dialog", name="New persona")
    await editor.get_by_label("Name", exact=True).fill("The Grocer")
    await _choose_model(page, "Plain")
    await expect(editor.get_by_label("Thinking")).to_have_count(0)
    await _choose_model(page, "Thinker")
    await editor.get_by_label("Thinking").select_option("Low")
    await page.screenshot(path=tmp_path / "editor.png")
    await must_be_accessible(page)
    await editor.get_by_role("button", name="Save persona").click()
    await expect(editor).to_have_count(0)
    await page.goto("/new")
    conversation = ConversationPage(page)
    await conversation.seat("The Grocer")
    await expect(page.get_by_role("button", name="Thinking: low (The Grocer)")).to_be_visible()
    await conversation.ask("How many?")
    await expect(conversation.reply("The Grocer", "finished")).to_be_visible()
    assert sent_efforts(upstream) == {"thinker": "low"}


async def _choose_model(page: Page, name: str) -> None:
    editor = page.get_by_role("dialog", name="New persona")
    await editor.get_by_role("button", name=re.compile("^Model: ")).click()
    await page.get_by_role("dialog", name="Model", exact=True).get_by_role("combobox").fill(name)
    await page.keyboard.press("Enter")
    await expect(editor.get_by_role("button", name=f"Model: {name}")).to_be_focused()


async def test_a_phone_can_choose_the_effort(windows: Windows, sam: Person, tmp_path: Path) -> None:
    await sam.put("/api/me/defaults", {"voices": [{"model": "voices:thinker"}, {"model": "voices:plain"}]})
    page = await windows.open(sam, "/new", PHONE, is_mobile=True, has_touch=True, color_scheme="dark")
    sheet = page.get_by_role("dialog", name="Write a message")
    await page.get_by_role("button", name="Ask all").tap()
    await sheet.get_by_role("button", name="Thinking: automatic (Thinker)").tap()
    await page.screenshot(path=tmp_path / "phone.png")
    await page.get_by_role("menuitemradio", name="Medium").tap()
    await expect(sheet.get_by_role("button", name="Thinking: medium (Thinker)")).to_be_visible()
    await page.screenshot(path=tmp_path / "phone-chosen.png")
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
