"""Personas are created, changed, copied and deleted; the version that wrote a reply stays readable."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.browser.conversation_page import ConversationPage
from tests.browser.test_accessibility import must_be_accessible
from tests.browser.test_tables import BEEKEEPER, create_beekeeper, requests_text
from tests.browser.windows import PHONE, Windows
from tests.upstream.scripted import Upstream
from tests.world import Person


async def test_a_persona_is_created_seated_and_shown_in_its_colour(
    windows: Windows, sam: Person, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.says("Forty-two jars.", model="gamma")
    page = await windows.open(sam, "/settings/personas")
    await expect(page.get_by_role("button", name=re.compile("^The Sage"))).to_be_visible()
    await page.screenshot(path=tmp_path / "personas.png")
    await must_be_accessible(page)
    await page.get_by_role("button", name="New persona").click()
    editor = page.get_by_role("dialog", name="New persona")
    await editor.get_by_role("button", name="Save persona").click()
    await expect(editor.get_by_text("Give it a name.")).to_be_visible()
    await editor.get_by_label("Name", exact=True).fill("The Grocer")
    await editor.get_by_role("radio", name="Colour 6, arch").click()
    await editor.get_by_label("Instructions").fill("You answer in jars.")
    await editor.get_by_role("button", name=re.compile("^Model: ")).click()
    await page.get_by_role("dialog", name="Model").get_by_role("combobox").fill("gamma")
    await page.keyboard.press("Enter")
    await expect(editor.get_by_role("button", name="Model: Gamma")).to_be_focused()
    await page.screenshot(path=tmp_path / "editor.png")
    await must_be_accessible(page)
    await editor.get_by_role("button", name="Save persona").click()
    await expect(page.get_by_role("button", name=re.compile("^The Grocer"))).to_be_visible()

    await page.goto("/new")
    conversation = ConversationPage(page)
    await conversation.seat("Alpha", "The Grocer")
    await conversation.ask("How many?")
    await expect(conversation.reply("The Grocer", "finished")).to_contain_text("Forty-two jars.")
    await expect(conversation.reply("The Grocer")).to_have_attribute("data-seat", "6")
    assert "You answer in jars." in requests_text(upstream, "gamma")


async def test_the_receipt_shows_the_persona_version_that_wrote_the_reply(
    windows: Windows, sam: Person, tmp_path: Path
) -> None:
    persona_id = await create_beekeeper(sam)
    voices = [{"persona_id": persona_id}]
    replies = await sam.ask_and_wait("Who should lead?", voices=voices, mode="quick")
    character = (await sam.get("/api/personas"))["items"][-1]["character"]
    changed = character | {"instructions": "You keep wasps now."}
    await sam.put(f"/api/personas/{persona_id}", {"character": changed})
    page = await windows.open(sam, f"/c/{replies[0]['conversation_id']}")
    await ConversationPage(page).reply("The Beekeeper").focus()
    await page.keyboard.press("r")
    await page.get_by_role("button", name="Persona at the time").click()
    first_version = page.get_by_role("dialog", name="Persona, version 1")
    await expect(first_version).to_contain_text("You keep bees and speak of nothing else.")
    await expect(first_version).to_contain_text("There is a newer version.")
    await page.screenshot(path=tmp_path / "as-it-was.png")
    await must_be_accessible(page)


async def test_a_persona_is_copied_changed_and_deleted(windows: Windows, sam: Person) -> None:
    await create_beekeeper(sam)
    page = await windows.open(sam, "/settings/personas")
    await page.get_by_role("button", name="More for The Beekeeper").click()
    await page.get_by_role("menuitem", name="Duplicate for the project").click()
    await page.get_by_role("button", name=re.compile("^The Beekeeper copy")).click()
    editor = page.get_by_role("dialog", name="Edit The Beekeeper copy")
    await editor.get_by_label("Name", exact=True).fill("The Wasp")
    await editor.get_by_role("button", name="Save persona").click()
    await expect(page.get_by_role("button", name=re.compile("^The Wasp"))).to_be_visible()
    await page.get_by_role("button", name="More for The Wasp").click()
    await page.get_by_role("menuitem", name="Delete").click()
    await page.get_by_role("button", name="Delete persona").click()
    await expect(page.get_by_role("button", name=re.compile("^The Wasp"))).to_have_count(0)
    await expect(page.get_by_role("button", name=re.compile("^The Beekeeper "))).to_be_visible()
    await page.get_by_role("button", name=re.compile("^The Sage")).click()
    await expect(page.get_by_role("dialog", name="Persona, version 1")).to_contain_text("hard to undo")


async def test_a_project_sets_its_default_table(windows: Windows, sam: Person, tmp_path: Path) -> None:
    project_persona = {"scope": "project", "project_id": sam.home, "character": BEEKEEPER}
    await sam.post("/api/personas", project_persona, expect=201)
    page = await windows.open(sam, f"/p/{sam.home}")
    await page.get_by_role("tab", name="Instructions and models").click()
    table = page.get_by_role("group", name="Answering")
    await expect(table.get_by_role("button", name="Remove The Sage")).to_be_visible()
    await table.get_by_role("button", name="Remove The Sage").click()
    await table.get_by_role("button", name="Add a voice").click()
    await page.get_by_role("option").filter(has=page.locator("b", has_text="The Beekeeper")).click()
    await page.keyboard.press("Escape")
    await page.screenshot(path=tmp_path / "setup.png", full_page=True)
    await page.get_by_role("button", name="Save as default").click()
    await expect(page.get_by_text("Saved as “Home”")).to_be_visible()
    await page.goto("/new")
    await expect(
        ConversationPage(page).table.get_by_role("button", name="Remove The Beekeeper")
    ).to_be_visible()
    await expect(ConversationPage(page).table.get_by_role("button", name="Remove The Sage")).to_have_count(0)


@pytest.mark.parametrize("path", ["/settings/personas", "/p/{home}"])
async def test_the_persona_editor_fits_on_a_phone(
    windows: Windows, sam: Person, path: str, tmp_path: Path
) -> None:
    await create_beekeeper(sam, name="The Beekeeper of the whole long valley beyond the river")
    page = await windows.open(
        sam, path.format(home=sam.home), PHONE, is_mobile=True, has_touch=True, color_scheme="dark"
    )
    if path != "/settings/personas":
        await page.get_by_role("tab", name="Instructions and models").tap()
    await page.get_by_role("button", name="New persona").tap()
    await expect(page.get_by_role("dialog", name="New persona")).to_be_visible()
    await page.screenshot(path=tmp_path / "editor.png")
    await _must_fit(page)
    await page.get_by_role("button", name="Cancel").tap()
    await page.get_by_role("button", name=re.compile("^The Beekeeper")).first.scroll_into_view_if_needed()
    await page.screenshot(path=tmp_path / "phone.png")
    await _must_fit(page)


async def _must_fit(page: Page) -> None:
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
