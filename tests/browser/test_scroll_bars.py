"""Where scroll bars take room, a page has those it needs and no second one beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, ViewportSize, expect

from tests.browser.test_branches import branched
from tests.browser.windows import DESK, PHONE, Windows, chromium
from tests.upstream.scripted import Upstream
from tests.world import Person, World, running

LOW: ViewportSize = {"width": 844, "height": 390}
"""A phone held sideways: nothing fits and everything has to scroll by itself."""
SIZES = pytest.mark.parametrize("viewport", [DESK, PHONE, LOW], ids=["desk", "phone", "sideways"])
PARAGRAPHS = "\n\n".join(f"Paragraph {number} goes on for quite a while." for number in range(40))
NO_SUCH_PAGE = r"Not found: /no/such/page"
PANELS = ("models", "personas", "appearance", "keyboard", "sessions")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(browser_at_hand: None) -> AsyncIterator[Browser]:
    """Playwright hides scroll bars unless it is told not to."""
    async with chromium(without=["--hide-scrollbars"]) as launched:
        yield launched


@pytest_asyncio.fixture(loop_scope="session")
async def talk(sam: Person, upstream: Upstream) -> str:
    """The id of a conversation of two long rounds."""
    upstream.says(PARAGRAPHS)
    replies = await sam.hear(PARAGRAPHS, "alpha", "beta", "gamma")
    conversation_id: str = replies[0]["conversation_id"]
    await sam.hear("And then?", "alpha", "beta", "gamma", conversation_id=conversation_id)
    return conversation_id


async def test_scroll_bars_take_room_in_these_windows(windows: Windows, sam: Person, talk: str) -> None:
    page = await windows.open(sam, f"/c/{talk}")
    await expect(page.get_by_role("feed")).to_contain_text("Paragraph 39")
    await page.wait_for_function("(feed) => feed.offsetWidth > feed.clientWidth", arg=await _feed(page))


async def test_the_composer_leaves_the_scroll_bar_free(windows: Windows, sam: Person, talk: str) -> None:
    page = await windows.open(sam, f"/c/{talk}")
    await expect(page.get_by_role("feed")).to_contain_text("Paragraph 39")
    await page.wait_for_function(
        """(view) => {
            const bar = view.getBoundingClientRect().left + view.clientWidth;
            const dock = view.parentElement.querySelector('.dock').getBoundingClientRect();
            return view.offsetWidth > view.clientWidth && Math.round(dock.right) === Math.round(bar);
        }""",
        arg=await _feed(page),
    )


@SIZES
async def test_no_page_of_the_house_scrolls_as_a_whole(
    windows: Windows, sam: Person, upstream: Upstream, talk: str, viewport: ViewportSize
) -> None:
    windows.expect(NO_SUCH_PAGE)
    other = await branched(sam, upstream, talk)
    page = await windows.open(sam, f"/c/{talk}", viewport)
    await expect(page.get_by_role("feed")).to_contain_text("Paragraph 39")
    await _must_fit(page)
    paths = (
        "/new",
        f"/c/{other}",
        f"/c/{talk}/map",
        f"/c/{talk}/compare/{other}",
        f"/p/{sam.home}",
        "/search?q=paragraph",
        "/no/such/page",
        *(f"/settings/{panel}" for panel in PANELS),
    )
    for path in paths:
        await page.goto(path)
        await expect(page.get_by_role("heading", level=1)).to_be_attached()
        await page.wait_for_load_state("networkidle")
        await _must_fit(page)


@SIZES
async def test_no_part_of_a_project_scrolls_the_whole_page(
    windows: Windows, sam: Person, viewport: ViewportSize
) -> None:
    page = await windows.open(sam, f"/p/{sam.home}", viewport)
    tabs = page.get_by_role("tab")
    await expect(tabs).not_to_have_count(0)
    for number in range(await tabs.count()):
        await tabs.nth(number).click()
        await page.wait_for_load_state("networkidle")
        await _must_fit(page)


@SIZES
async def test_the_door_does_not_scroll_the_whole_page(
    windows: Windows, administrator: Person, viewport: ViewportSize
) -> None:
    page = await windows.open(None, "/sign-in", viewport)
    await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    await _must_fit(page)


@SIZES
async def test_the_first_visit_does_not_scroll_the_whole_page(
    browser: Browser, tmp_path: Path, viewport: ViewportSize
) -> None:
    async with running(tmp_path, {}) as empty:
        await _must_fit_on_the_first_visit(Windows(browser, empty.url), empty, viewport)


async def _must_fit_on_the_first_visit(windows: Windows, empty: World, viewport: ViewportSize) -> None:
    page = await windows.open(None, "/", viewport)
    await expect(page.get_by_label("Your name")).to_be_visible()
    await _must_fit(page)
    await windows.close()


async def _feed(page: Page) -> object:
    return await page.get_by_role("feed").locator("xpath=..").element_handle()


async def _must_fit(page: Page) -> None:
    """Neither taller nor wider than the window, and no bar takes room from it."""
    size = await page.evaluate("""() => {
        const { scrollHeight, scrollWidth } = document.scrollingElement;
        return [scrollHeight, scrollWidth, document.documentElement.clientWidth];
    }""")
    window = page.viewport_size
    assert window
    assert size == [window["height"], window["width"], window["width"]], page.url
