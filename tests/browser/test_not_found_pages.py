"""Unknown addresses show a not-found page with a link to continue."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import expect

from tests.browser.windows import Windows
from tests.world import Person

NOT_FOUND = (r"status of 404", r"Not found: /")


@pytest.mark.parametrize("path", ["/nowhere", "/settings/nowhere", "/search/nowhere", "/c"])
async def test_an_unknown_page_shows_not_found_with_a_link_to_the_start(
    windows: Windows, sam: Person, path: str
) -> None:
    windows.allow(*NOT_FOUND)
    page = await windows.open(sam, path)
    await expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    await page.get_by_role("main").get_by_role("link").first.click()
    await expect(page).to_have_url(re.compile("/new$"))


@pytest.mark.parametrize("rest", ["", "/map"])
async def test_an_unknown_conversation_shows_not_found_on_each_of_its_pages(
    windows: Windows, sam: Person, rest: str
) -> None:
    windows.allow(*NOT_FOUND)
    page = await windows.open(sam, f"/c/nowhere{rest}")
    await expect(page.get_by_role("main")).to_contain_text("Conversation not found")


async def test_an_unknown_project_shows_not_found_once_with_a_link(windows: Windows, sam: Person) -> None:
    page = await windows.open(sam, "/p/nowhere")
    await expect(page.get_by_role("heading", name="Project not found")).to_be_attached()
    await page.wait_for_load_state("networkidle")
    await expect(page.get_by_role("region", name="Messages").get_by_role("alert")).to_have_count(0)
    await page.get_by_role("main").get_by_role("link", name="New conversation").click()
    await expect(page).to_have_url(re.compile("/new$"))


async def test_settings_without_a_panel_open_appearance(windows: Windows, sam: Person) -> None:
    page = await windows.open(sam, "/settings")
    await expect(page).to_have_url(re.compile("/settings/appearance$"))
