"""Where scroll bars take space, a page has only those that it needs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, ViewportSize, expect

from tests.browser.test_branches import create_branch
from tests.browser.windows import DESK, PHONE, Windows, chromium
from tests.upstream.scripted import Upstream
from tests.world import Person, World, running

LOW: ViewportSize = {"width": 844, "height": 390}
"""A phone in landscape: little fits, so every part has to scroll by itself."""
SIZES = pytest.mark.parametrize("viewport", [DESK, PHONE, LOW], ids=["desk", "phone", "sideways"])
PARAGRAPHS = "\n\n".join(f"Paragraph {number} goes on for quite a while." for number in range(40))
NO_SUCH_PAGE = r"Not found: /no/such/page"
PANELS = ("models", "personas", "appearance", "keyboard", "sessions")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(chromium_available: None) -> AsyncIterator[Browser]:
    """A browser that shows scroll bars, which Playwright hides by default."""
    async with chromium(without=["--hide-scrollbars"]) as launched:
        yield launched


@pytest_asyncio.fixture(loop_scope="session")
async def conversation_id(sam: Person, upstream: Upstream) -> str:
    """The id of a conversation of two long rounds."""
    upstream.says(PARAGRAPHS)
    replies = await sam.ask_and_wait(PARAGRAPHS, "alpha", "beta", "gamma")
    conversation_id: str = replies[0]["conversation_id"]
    await sam.ask_and_wait("And then?", "alpha", "beta", "gamma", conversation_id=conversation_id)
    return conversation_id


async def test_scroll_bars_take_space_in_these_windows(
    windows: Windows, sam: Person, conversation_id: str
) -> None:
    page = await windows.open(sam, f"/c/{conversation_id}")
    await expect(page.get_by_role("feed")).to_contain_text("Paragraph 39")
    await page.wait_for_function("(feed) => feed.offsetWidth > feed.clientWidth", arg=await _feed(page))


async def test_the_composer_does_not_cover_the_scroll_bar(
    windows: Windows, sam: Person, conversation_id: str
) -> None:
    page = await windows.open(sam, f"/c/{conversation_id}")
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
async def test_no_page_scrolls_as_a_whole(
    windows: Windows, sam: Person, upstream: Upstream, conversation_id: str, viewport: ViewportSize
) -> None:
    windows.allow(NO_SUCH_PAGE)
    branch_id = await create_branch(sam, upstream, conversation_id)
    page = await windows.open(sam, f"/c/{conversation_id}", viewport)
    await expect(page.get_by_role("feed")).to_contain_text("Paragraph 39")
    await _must_fit(page)
    paths = (
        "/new",
        f"/c/{branch_id}",
        f"/c/{conversation_id}/map",
        f"/c/{conversation_id}/compare/{branch_id}",
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
async def test_no_tab_of_a_project_scrolls_the_whole_page(
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
async def test_the_sign_in_page_does_not_scroll(
    windows: Windows, administrator: Person, viewport: ViewportSize
) -> None:
    page = await windows.open(None, "/sign-in", viewport)
    await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    await _must_fit(page)


@SIZES
async def test_the_first_visit_does_not_scroll(
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
    """Checks that the page is neither taller nor wider than the window and has no scroll bar."""
    size = await page.evaluate("""() => {
        const { scrollHeight, scrollWidth } = document.scrollingElement;
        return [scrollHeight, scrollWidth, document.documentElement.clientWidth];
    }""")
    window = page.viewport_size
    assert window
    assert size == [window["height"], window["width"], window["width"]], page.url
