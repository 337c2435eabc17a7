"""The passages found for a question are listed under it, with links, and follow the search scope."""

from __future__ import annotations

import re

import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from tests.browser.conversation_page import ConversationPage
from tests.browser.test_searching import create_pottery_conversation
from tests.browser.windows import PHONE, Windows
from tests.server.test_search import settled
from tests.upstream.scripted import Say, Stall, Upstream
from tests.world import Person, World


@pytest_asyncio.fixture(loop_scope="session")
async def pottery(world: World, sam: Person, upstream: Upstream) -> str:
    return await create_pottery_conversation(world, sam, upstream)


def found_passages(page: Page) -> Locator:
    return page.get_by_role("list", name="Found for this question")


async def ask(page: Page, text: str) -> None:
    conversation = ConversationPage(page)
    await conversation.seat("Alpha")
    await conversation.ask(text)


async def test_found_passages_are_listed_under_the_question_and_survive_a_reload(
    windows: Windows, sam: Person, upstream: Upstream, pottery: str
) -> None:
    upstream.plays((Say("Hot"), Stall()), model="alpha")
    page = await windows.open(sam, "/new")
    await ask(page, "How hot does the bisque firing get?")
    file = found_passages(page).get_by_role("link", name=re.compile(r"kiln\.md lines? 30"))
    await expect(file.first).to_be_visible()
    await expect(
        found_passages(page).get_by_role("link", name=re.compile("bisque firing end.*round 1"))
    ).to_be_visible()
    await page.reload()
    await expect(file.first).to_be_visible()
    await file.first.click()
    lines = page.get_by_role("complementary", name="File").locator("li.meant")
    await expect(lines.first).to_be_in_viewport()


async def test_a_found_round_opens_in_its_conversation(
    windows: Windows, sam: Person, upstream: Upstream, pottery: str
) -> None:
    upstream.says("Hot.", model="alpha")
    page = await windows.open(sam, "/new")
    await ask(page, "How hot does the bisque firing get?")
    await found_passages(page).get_by_role("link", name=re.compile("round 1")).click()
    await expect(page).to_have_url(re.compile(f"/c/{pottery}"))
    await expect(page.get_by_role("heading", name=re.compile("bisque firing end")).first).to_be_attached()


async def test_a_greeting_lists_no_passages(
    windows: Windows, sam: Person, upstream: Upstream, pottery: str
) -> None:
    upstream.says("Hello Sam.", model="alpha")
    page = await windows.open(sam, "/new")
    await ask(page, "Hello, how are you today?")
    await expect(ConversationPage(page).reply("Alpha", "finished")).to_be_visible()
    await expect(found_passages(page)).to_have_count(0)


async def test_switching_off_other_conversations_searches_only_files(
    windows: Windows, sam: Person, upstream: Upstream, pottery: str
) -> None:
    upstream.says("Hot.", model="alpha")
    page = await windows.open(sam, "/new")
    await ConversationPage(page).seat("Alpha")
    await page.get_by_role("button", name="What is searched: Search: all").click()
    await page.get_by_role("switch", name="Search other conversations").click()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("button", name="What is searched: Search: files")).to_be_visible()
    await ConversationPage(page).ask("How hot does the bisque firing get?")
    await expect(found_passages(page).get_by_role("link").first).to_be_visible()
    await expect(ConversationPage(page).reply("Alpha", "finished")).to_be_visible()
    await expect(found_passages(page).get_by_role("link", name=re.compile("round"))).to_have_count(0)
    await page.reload()
    await ConversationPage(page).field.click()
    await expect(page.get_by_role("button", name="What is searched: Search: files")).to_be_visible()


async def test_a_project_can_exclude_other_conversations_from_search(
    windows: Windows, sam: Person, pottery: str
) -> None:
    page = await windows.open(sam, f"/p/{sam.home}")
    await page.get_by_role("tab", name=re.compile("^Instructions")).click()
    await page.get_by_role("switch", name="Search other conversations").click()
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_text("Saved", exact=True).first).to_be_visible()
    settings = (await sam.get(f"/api/projects/{sam.home}"))["project"]["settings"]
    assert settings["retrieval_config"]["scope"] == {"files": True, "conversations": False}


async def test_search_shows_ten_hits_first_and_says_when_nothing_matches(
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


async def test_found_passages_fit_on_a_phone(
    windows: Windows, sam: Person, upstream: Upstream, pottery: str
) -> None:
    upstream.says("Hot.", model="alpha")
    [reply] = await sam.ask_and_wait("How hot does the bisque firing get?", "alpha")
    page = await windows.open(sam, f"/c/{reply['conversation_id']}", PHONE)
    await expect(found_passages(page).get_by_role("link").first).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
