"""Light and dark theme on a desktop, a tablet and a phone, with screenshots in the test's folder."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Literal

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, ViewportSize, expect

from tests.browser.conversation_page import ConversationPage, reply_in_parts
from tests.browser.test_markdown import TEXT
from tests.browser.test_searching import create_pottery_conversation
from tests.browser.windows import PHONE, TABLET, Windows
from tests.upstream.scripted import Upstream
from tests.world import Person, World

SMALLEST: ViewportSize = {"width": 320, "height": 640}
WIDE = (
    "Wide" * 60
    + "\n\n`"
    + "x" * 200
    + "`\n\n"
    + "| a " * 30
    + "|\n"
    + "|---" * 30
    + "|\n\n$$"
    + "x+" * 80
    + "x$$"
)
Theme = Literal["light", "dark"]
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


@pytest_asyncio.fixture(loop_scope="session")
async def conversation_path(sam: Person, upstream: Upstream) -> str:
    """The path of a conversation with every kind of content, some of it wider than the page."""
    upstream.says(TEXT, model="alpha", thinking="Let me see.")
    upstream.says(WIDE, model="beta")
    replies = await sam.ask_and_wait("Show me everything, " + "wide" * 30, "alpha", "beta", "gamma")
    return f"/c/{replies[0]['conversation_id']}"


async def test_t_switches_to_the_dark_theme_which_survives_a_reload(
    windows: Windows, sam: Person, conversation_path: str, tmp_path: Path
) -> None:
    page = await windows.open(sam, conversation_path)
    await expect(ConversationPage(page).reply("Alpha", "finished")).to_be_visible()
    light = await page.evaluate(BACKGROUND)
    await page.screenshot(path=tmp_path / "light.png")
    await page.keyboard.press("t")
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    dark = await page.evaluate(BACKGROUND)
    assert dark != light
    await page.reload(wait_until="commit")
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await expect(ConversationPage(page).reply("Alpha", "finished")).to_be_visible()
    assert await page.evaluate(BACKGROUND) == dark
    await page.screenshot(path=tmp_path / "dark.png")


async def test_the_font_size_and_the_layout_can_be_chosen(
    windows: Windows, sam: Person, conversation_path: str
) -> None:
    page = await windows.open(sam, conversation_path)
    words = ConversationPage(page).reply_text("Alpha").locator("p").first
    await expect(words).to_have_css("font-size", "16.5px")
    await page.goto("/settings/appearance")
    await page.get_by_role("radio", name="Large").click()
    await page.get_by_role("radio", name="Stack").click()
    await page.goto(conversation_path)
    await expect(words).to_have_css("font-size", "19px")
    await expect(page.get_by_role("radio", name="Stack")).to_be_checked()


async def test_the_theme_follows_the_system(windows: Windows, sam: Person) -> None:
    page = await windows.open(sam, "/new", color_scheme="dark")
    await expect(page.get_by_role("heading", name="What would you like to ask?")).to_be_visible()
    dark = await page.evaluate(BACKGROUND)
    await page.emulate_media(color_scheme="light")
    assert await page.evaluate(BACKGROUND) != dark


async def test_a_phone_shows_one_reply_at_a_time(
    windows: Windows, sam: Person, conversation_path: str, tmp_path: Path
) -> None:
    page = await windows.open(sam, conversation_path, PHONE, is_mobile=True, has_touch=True)
    tabs = page.get_by_role("tablist", name="Replies")
    await expect(tabs.get_by_role("tab", name="Alpha")).to_have_attribute("aria-selected", "true")
    await expect(page.get_by_role("tabpanel", name="Alpha")).to_be_in_viewport()
    await page.screenshot(path=tmp_path / "phone.png")
    await tabs.get_by_role("tab", name="Gamma").tap()
    await expect(tabs.get_by_role("tab", name="Gamma")).to_have_attribute("aria-selected", "true")
    await expect(page.get_by_role("tabpanel", name="Gamma").get_by_role("article")).to_be_in_viewport()
    await expect(page.get_by_role("article", name=re.compile("^Alpha"))).not_to_be_in_viewport()


async def test_a_phone_keeps_conversations_in_a_drawer(
    windows: Windows, sam: Person, conversation_path: str, tmp_path: Path
) -> None:
    page = await windows.open(sam, "/new", PHONE, is_mobile=True, has_touch=True)
    conversation = ConversationPage(page)
    await expect(conversation.sidebar).to_be_hidden()
    await page.get_by_role("button", name="Conversations").tap()
    drawer = page.get_by_role("dialog", name="Conversations")
    await expect(drawer).to_be_visible()
    await page.screenshot(path=tmp_path / "drawer.png")
    await drawer.get_by_role("link", name=re.compile("^Show me everything")).tap()
    await expect(page).to_have_url(re.compile(f"{conversation_path}$"))
    await expect(drawer).to_be_hidden()


async def test_a_phone_asks_in_a_sheet_and_stops_with_a_tap(
    windows: Windows, sam: Person, upstream: Upstream, tmp_path: Path
) -> None:
    page = await windows.open(sam, "/new", PHONE, is_mobile=True, has_touch=True)
    upstream.plays(reply_in_parts("Writing, ", asyncio.Event()))
    sheet = page.get_by_role("dialog", name="Write a message")
    if not await sheet.is_visible():
        await page.get_by_role("button", name="Ask all").tap()
    await sheet.get_by_role("textbox", name="Message").fill("Does this fit?")
    await expect(sheet.get_by_role("button", name="Remove The Sage")).to_be_visible()
    await page.screenshot(path=tmp_path / "sheet.png")
    await sheet.get_by_role("button", name="Send").tap()
    await expect(sheet).to_be_hidden()
    await expect(page.get_by_role("tabpanel", name="The Sage")).to_contain_text("Writing,")
    await page.get_by_role("button", name="Stop all replies").tap()
    await expect(ConversationPage(page).reply("The Sage", "stopped")).to_be_visible()


async def test_the_lanes_of_a_tablet_scroll_inside_the_page(
    windows: Windows, sam: Person, conversation_path: str, tmp_path: Path
) -> None:
    page = await windows.open(sam, conversation_path, TABLET)
    conversation = ConversationPage(page)
    await expect(conversation.reply("Alpha", "finished")).to_be_in_viewport()
    await expect(conversation.sidebar).to_be_hidden()
    await page.screenshot(path=tmp_path / "tablet.png")
    await page.keyboard.press("3")
    await expect(conversation.reply("Gamma", "finished")).to_be_in_viewport()
    await _must_not_scroll_sideways(page)


@pytest.mark.parametrize("viewport", [PHONE, SMALLEST], ids=["390", "320"])
async def test_no_page_scrolls_sideways_on_a_phone(
    windows: Windows, sam: Person, conversation_path: str, viewport: ViewportSize
) -> None:
    stranger = await windows.open(None, "/sign-in", viewport)
    await expect(stranger.get_by_role("button", name="Sign in")).to_be_visible()
    await _must_not_scroll_sideways(stranger)
    page = await windows.open(sam, conversation_path, viewport)
    conversation = ConversationPage(page)
    for name in ("Alpha", "Beta"):
        await page.get_by_role("tab", name=name).click()
        await expect(conversation.reply(name, "finished")).to_be_in_viewport()
        await _must_not_scroll_sideways(page)
    for path in (
        "new",
        "search?q=wide",
        *(f"settings/{panel}" for panel in ("models", "personas", "appearance", "keyboard", "sessions")),
    ):
        await page.goto(f"/{path}")
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        await page.wait_for_load_state("networkidle")
        await _must_not_scroll_sideways(page)


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_the_search_page_shows_both_kinds_of_hits_in_both_themes(
    windows: Windows, world: World, sam: Person, upstream: Upstream, tmp_path: Path, theme: Theme
) -> None:
    await create_pottery_conversation(world, sam, upstream)
    page = await windows.open(sam, "/search?q=bisque+firing", color_scheme=theme)
    conversations, files = (page.get_by_role("heading", name=name) for name in ("Conversations", "Files"))
    await expect(files).to_be_in_viewport()
    await page.screenshot(path=tmp_path / f"search-{theme}.png")
    assert await _top(conversations) == await _top(files)
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox").fill("bisque firing")
    await expect(page.get_by_role("group", name="In conversations")).to_be_in_viewport()
    await page.screenshot(path=tmp_path / f"palette-{theme}.png")


async def test_a_phone_searches_from_its_drawer(
    windows: Windows, world: World, sam: Person, upstream: Upstream, tmp_path: Path
) -> None:
    await create_pottery_conversation(world, sam, upstream)
    page = await windows.open(sam, "/new", PHONE, is_mobile=True, has_touch=True)
    await page.get_by_role("button", name="Conversations").tap()
    await page.get_by_role("button", name="Search", exact=True).tap()
    await page.get_by_role("combobox").fill("bisque firing")
    await expect(page.get_by_role("group", name="In conversations")).to_be_visible()
    await page.screenshot(path=tmp_path / "palette.png")
    await _must_not_scroll_sideways(page)
    await page.get_by_role("option", name="Search everywhere").tap()
    conversations, files = (page.get_by_role("heading", name=name) for name in ("Conversations", "Files"))
    await expect(conversations).to_be_in_viewport()
    await page.screenshot(path=tmp_path / "search.png")
    await _must_not_scroll_sideways(page)
    assert await _top(conversations) < await _top(files)
    await page.get_by_role("link").filter(has_text="docs/kiln.md").last.tap()
    await expect(page.get_by_role("dialog", name="File").locator("li.meant").first).to_be_in_viewport()


async def _top(element: Locator) -> float:
    box = await element.bounding_box()
    assert box
    return box["y"]


FIND_OVERFLOW = """
    () => {
        const edge = document.documentElement.clientWidth + 1;
        // Programs, tables and formulas scroll inside themselves, lanes are swiped, long lines are cut.
        const mayReachOut = (element) => {
            for (let at = element; at; at = at.parentElement) {
                const { overflowX, textOverflow } = getComputedStyle(at);
                if (at.matches('pre, table, .math, .strip, .columns, [inert], .sr')) return true;
                if (overflowX === 'hidden' && textOverflow === 'ellipsis') return true;
            }
            return false;
        };
        return [...document.querySelectorAll('body *')]
            .filter((element) => element.checkVisibility() && element.getBoundingClientRect().right > edge)
            .filter((element) => !mayReachOut(element))
            .map(({ localName, className }) => `${localName}.${className.baseVal ?? className}`);
    }
"""


async def _must_not_scroll_sideways(page: Page) -> None:
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await page.evaluate(FIND_OVERFLOW) == []


@pytest.mark.parametrize("path", ["/new", "/settings/appearance", "/search", "talk"])
async def test_the_plain_font_leaves_no_serif_letters(
    windows: Windows, sam: Person, conversation_path: str, path: str
) -> None:
    page = await windows.open(sam, "/settings/appearance")
    await page.get_by_role("radio", name="Plain").or_(page.get_by_role("radio", name="Sans")).click()
    await page.goto(conversation_path if path == "talk" else path)
    await expect(page.get_by_role("main")).to_be_visible()
    fonts = await page.evaluate(
        "[...document.querySelectorAll('body *')].map((e) => getComputedStyle(e).fontFamily)"
    )
    assert fonts
    assert not [font for font in fonts if font.startswith('"Alegreya')]
