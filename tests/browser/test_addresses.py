"""Addresses that lead nowhere say so and offer a way on."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import expect

from tests.browser.windows import Windows
from tests.world import Person

NOT_FOUND = (r"status of 404", r"Not found: /")


@pytest.mark.parametrize("path", ["/nowhere", "/settings/nowhere", "/search/nowhere", "/c"])
async def test_an_unknown_page_says_so_and_leads_home(windows: Windows, sam: Person, path: str) -> None:
    windows.expect(*NOT_FOUND)
    page = await windows.open(sam, path)
    await expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    await page.get_by_role("main").get_by_role("link").first.click()
    await expect(page).to_have_url(re.compile("/new$"))


@pytest.mark.parametrize("rest", ["", "/map"])
async def test_an_unknown_conversation_says_so_on_each_of_its_pages(
    windows: Windows, sam: Person, rest: str
) -> None:
    windows.expect(*NOT_FOUND)
    page = await windows.open(sam, f"/c/nowhere{rest}")
    await expect(page.get_by_role("main")).to_contain_text("Conversation not found")


async def test_an_unknown_project_says_so_once_and_leads_on(windows: Windows, sam: Person) -> None:
    page = await windows.open(sam, "/p/nowhere")
    await expect(page.get_by_role("heading", name="Project not found")).to_be_attached()
    await page.wait_for_load_state("networkidle")
    await expect(page.get_by_role("region", name="Messages").get_by_role("alert")).to_have_count(0)
    await page.get_by_role("main").get_by_role("link", name="New conversation").click()
    await expect(page).to_have_url(re.compile("/new$"))


async def test_settings_without_a_panel_open_the_first_of_ones_own(windows: Windows, sam: Person) -> None:
    page = await windows.open(sam, "/settings")
    await expect(page).to_have_url(re.compile("/settings/appearance$"))
