"""What was found for a question stands under it, opens at its place, and is searched where a person chose."""

from __future__ import annotations

import re

import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from tests.browser.room import Room
from tests.browser.test_searching import talk_of_pottery
from tests.browser.windows import PHONE, Windows
from tests.server.test_search import settled
from tests.upstream.scripted import Say, Stall, Upstream
from tests.world import Person, World


@pytest_asyncio.fixture(loop_scope="session")
async def pottery(world: World, sam: Person, upstream: Upstream) -> str:
    return await talk_of_pottery(world, sam, upstream)


def found(page: Page) -> Locator:
    return page.get_by_role("list", name="Found for this question")


async def asks(page: Page, text: str) -> None:
    room = Room(page)
    await room.seat("Alpha")
    await room.ask(text)


async def test_what_was_found_stands_under_a_question_while_it_is_answered_and_after_a_reload(
    windows: Windows, sam: Person, upstream: Upstream, pottery: str
) -> None:
    upstream.plays((Say("Hot"), Stall()), model="alpha")
    page = await windows.open(sam, "/new")
    await asks(page, "How hot does the bisque firing get?")
    file = found(page).get_by_role("link", name=re.compile(r"kiln\.md lines? 30"))
    await expect(file.first).to_be_visible()
    await expect(
        found(page).get_by_role("link", name=re.compile("bisque firing end.*round 1"))
    ).to_be_visible()
    await page.reload()
    await expect(file.first).to_be_visible()
    await file.first.click()
    lines = page.get_by_role("complementary", name="File").locator("li.meant")
    await expect(lines.first).to_be_in_viewport()


async def test_a_round_that_was_found_opens_where_it_was_said(
    windows: Windows, sam: Person, upstream: Upstream, pottery: str
) -> None:
    upstream.says("Hot.", model="alpha")
    page = await windows.open(sam, "/new")
    await asks(page, "How hot does the bisque firing get?")
    await found(page).get_by_role("link", name=re.compile("round 1")).click()
    await expect(page).to_have_url(re.compile(f"/c/{pottery}"))
    await expect(page.get_by_role("heading", name=re.compile("bisque firing end")).first).to_be_attached()


async def test_nothing_stands_under_a_greeting(
    windows: Windows, sam: Person, upstream: Upstream, pottery: str
) -> None:
    upstream.says("Hello Sam.", model="alpha")
    page = await windows.open(sam, "/new")
    await asks(page, "Hello, how are you today?")
    await expect(Room(page).reply("Alpha", "finished")).to_be_visible()
    await expect(found(page)).to_have_count(0)


async def test_other_conversations_are_not_searched_once_they_are_switched_off(
    windows: Windows, sam: Person, upstream: Upstream, pottery: str
) -> None:
    upstream.says("Hot.", model="alpha")
    page = await windows.open(sam, "/new")
    await Room(page).seat("Alpha")
    await page.get_by_role("button", name="What is searched: Search: all").click()
    await page.get_by_role("switch", name="Search other conversations").click()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("button", name="What is searched: Search: files")).to_be_visible()
    await Room(page).ask("How hot does the bisque firing get?")
    await expect(found(page).get_by_role("link").first).to_be_visible()
    await expect(Room(page).reply("Alpha", "finished")).to_be_visible()
    await expect(found(page).get_by_role("link", name=re.compile("round"))).to_have_count(0)
    await page.reload()
    await Room(page).field.click()
    await expect(page.get_by_role("button", name="What is searched: Search: files")).to_be_visible()


async def test_a_project_is_set_up_without_other_conversations(
    windows: Windows, sam: Person, pottery: str
) -> None:
    page = await windows.open(sam, f"/p/{sam.home}")
    await page.get_by_role("tab", name=re.compile("^Instructions")).click()
    await page.get_by_role("switch", name="Search other conversations").click()
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_text("Saved", exact=True).first).to_be_visible()
    settings = (await sam.get(f"/api/projects/{sam.home}"))["project"]["settings"]
    assert settings["retrieval_config"]["scope"] == {"files": True, "conversations": False}


async def test_a_search_for_what_is_nowhere_has_no_match_and_ten_are_shown_at_first(
    world: World, windows: Windows, sam: Person
) -> None:
    for number in range(14):
        await sam.upload(f"glaze-{number}.md", f"Celadon glaze, batch {number}.".encode())
    await settled(world)
    page = await windows.open(sam, "/search?q=zxqwv+nothing+at+all")
    await expect(page.get_by_role("heading", name="No match for “zxqwv nothing at all”")).to_be_visible()
    await page.goto("/search?q=celadon")
    hits = page.get_by_role("main").locator("[data-hit]")
    await expect(hits).to_have_count(10)
    await expect(hits.first).to_contain_text(re.compile("(strong|weak)? ?match · the word itself"))
    await page.get_by_role("button", name="Show more").click()
    await expect(hits).to_have_count(14)
    await expect(page.get_by_role("button", name="Show more")).to_be_hidden()


async def test_on_a_phone_what_was_found_is_no_wider_than_the_page(
    windows: Windows, sam: Person, upstream: Upstream, pottery: str
) -> None:
    upstream.says("Hot.", model="alpha")
    [reply] = await sam.hear("How hot does the bisque firing get?", "alpha")
    page = await windows.open(sam, f"/c/{reply['conversation_id']}", PHONE)
    await expect(found(page).get_by_role("link").first).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
