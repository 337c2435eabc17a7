"""A long reply keeps its name and actions visible and can be opened alone."""

from __future__ import annotations

import re

import pytest_asyncio
from playwright.async_api import Locator, Page, ViewportSize, expect

from tertulia.app import new_id
from tests.browser.conversation_page import ConversationPage
from tests.browser.windows import DESK, TABLET, Windows
from tests.patience import soon
from tests.upstream.scripted import Upstream
from tests.world import Person

LONG = "\n\n".join(f"Paragraph {number} of a reply that goes on and on." for number in range(60))
STRATEGIST = "0000000000000000STRATEG1ST"
NARROW: ViewportSize = {"width": 1366, "height": 768}


@pytest_asyncio.fixture(loop_scope="session")
async def conversation_path(sam: Person, upstream: Upstream) -> str:
    """The path of a conversation whose second round has four long replies."""
    upstream.says(LONG)
    replies = await sam.ask_and_wait("Say something long.", "alpha", "beta")
    conversation_id: str = replies[0]["conversation_id"]
    voices = ("alpha", "beta", "gamma", "alpha")
    await sam.ask_and_wait("Say something longer.", *voices, conversation_id=conversation_id)
    return f"/c/{conversation_id}"


def cards(page: Page) -> Locator:
    return page.get_by_role("feed").locator("[aria-posinset='2']").get_by_role("article")


async def scroll_to_the_middle(page: Page) -> None:
    """Scrolls to the middle of the replies, away from their headers and footers."""
    middle = cards(page).first.get_by_text("Paragraph 30 ")
    await middle.evaluate("(words) => words.scrollIntoView({ block: 'center' })")
    await expect(middle).to_be_in_viewport()


async def test_four_voices_fit_side_by_side_at_1440_pixels(
    windows: Windows, sam: Person, conversation_path: str
) -> None:
    page = await windows.open(sam, conversation_path, DESK)
    await expect(cards(page)).to_have_count(4)
    boxes = [await cards(page).nth(number).bounding_box() for number in range(4)]
    assert len({box["y"] for box in boxes if box}) == 1
    assert all(box and box["x"] + box["width"] <= DESK["width"] for box in boxes)


async def test_four_voices_use_two_rows_on_a_narrow_screen(
    windows: Windows, sam: Person, conversation_path: str
) -> None:
    page = await windows.open(sam, conversation_path, NARROW)
    await expect(cards(page)).to_have_count(4)
    async with soon():
        while await _columns_and_rows(page) != [2, 2]:
            await page.evaluate("() => new Promise(requestAnimationFrame)")
    boxes = [await cards(page).nth(number).bounding_box() for number in range(4)]
    assert all(box and box["x"] + box["width"] <= NARROW["width"] for box in boxes)


async def _columns_and_rows(page: Page) -> list[int]:
    boxes = [await cards(page).nth(number).bounding_box() for number in range(4)]
    return [len({round(box[side]) for box in boxes if box}) for side in ("x", "y")]


async def test_the_names_of_the_voices_stay_visible_while_scrolling(
    windows: Windows, sam: Person, conversation_path: str
) -> None:
    page = await windows.open(sam, conversation_path, DESK)
    await expect(cards(page)).to_have_count(4)
    await scroll_to_the_middle(page)
    edge = await page.get_by_role("feed").evaluate("(feed) => feed.parentElement.getBoundingClientRect().top")
    for number in range(4):
        name = cards(page).nth(number).get_by_role("heading", level=3)
        await expect(name).to_be_in_viewport()
        box = await name.bounding_box()
        assert box
        assert edge <= box["y"] < edge + 60


async def test_lanes_that_scroll_sideways_keep_their_names_visible(
    windows: Windows, sam: Person, conversation_path: str
) -> None:
    page = await windows.open(sam, conversation_path, TABLET)
    await expect(cards(page)).to_have_count(4)
    names = page.locator(".names .row").last
    await expect(names).to_be_hidden()
    await scroll_to_the_middle(page)
    await expect(names.get_by_text("Alpha", exact=True)).to_be_in_viewport()
    await cards(page).nth(2).evaluate("(card) => card.scrollIntoView({ block: 'nearest', inline: 'start' })")
    await expect(names.get_by_text("Gamma", exact=True)).to_be_in_viewport()


async def test_the_toolbar_never_covers_the_name(
    windows: Windows, sam: Person, conversation_path: str
) -> None:
    page = await windows.open(sam, conversation_path, DESK)
    await expect(cards(page)).to_have_count(4)
    await scroll_to_the_middle(page)
    for number in range(4):
        card = cards(page).nth(number)
        name = card.get_by_role("heading", level=3)
        await card.hover(position={"x": 40, "y": 700})
        toolbar = card.get_by_role("toolbar").first
        await expect(toolbar).to_be_in_viewport()
        await page.wait_for_function(
            "([name, bar]) => name.getBoundingClientRect().right <= bar.getBoundingClientRect().left",
            arg=[await name.element_handle(), await toolbar.element_handle()],
        )
        assert await name.evaluate("(name) => name.scrollWidth <= name.clientWidth"), (
            "its letters are all there"
        )


async def test_a_narrow_card_with_versions_shows_the_full_name(
    windows: Windows, sam: Person, upstream: Upstream
) -> None:
    upstream.says("Short.")
    voices = [
        {"persona_id": STRATEGIST},
        *({"model": f"voices:{name}"} for name in ("alpha", "beta", "gamma")),
    ]
    replies = await sam.ask_and_wait("Say something.", voices=voices)
    [mine] = [reply for reply in replies if reply["voice"]["persona_id"]]
    opened = await sam.post(f"/api/messages/{mine['id']}/retry", {"id": new_id()}, expect=202)
    await sam.wait_for_end(opened["turn"]["id"])
    page = await windows.open(sam, f"/c/{replies[0]['conversation_id']}", DESK)
    card = ConversationPage(page).reply("The Strategist")
    await expect(card).to_contain_text("2 of 2")
    await card.hover()
    name = card.get_by_role("heading", level=3)
    assert await name.evaluate("(name) => name.scrollWidth <= name.clientWidth")
    await expect(card.locator("footer").get_by_role("button", name="More")).to_be_visible()


async def test_the_actions_are_also_below_the_reply(
    windows: Windows, sam: Person, conversation_path: str
) -> None:
    page = await windows.open(sam, conversation_path, DESK)
    await expect(cards(page)).to_have_count(4)
    foot = cards(page).nth(1).locator("footer")
    await foot.scroll_into_view_if_needed()
    await foot.get_by_role("button", name="Mark as best").click()
    await expect(cards(page).nth(1).get_by_text(re.compile("^Best, Marked as best by "))).to_be_attached()
    await foot.get_by_role("button", name="More").click()
    menu = page.get_by_role("menu", name="More for Beta")
    for action in ("Reply", "Branch from here", "Copy", "Regenerate", "What was sent", "Open alone"):
        await expect(menu.get_by_role("menuitem", name=re.compile(f"^{action}"))).to_be_visible()


async def test_a_reply_can_be_opened_alone_and_closing_restores_the_position(
    windows: Windows, sam: Person, conversation_path: str
) -> None:
    page = await windows.open(sam, conversation_path, DESK)
    await expect(cards(page)).to_have_count(4)
    await scroll_to_the_middle(page)
    top_before = await _scroll_top(page)
    await cards(page).nth(2).focus()
    await _scroll_to(page, top_before)
    await page.keyboard.press("o")
    single_reply = page.get_by_role("region", name="Gamma alone")
    await expect(single_reply.get_by_role("article", name=re.compile("^Gamma"))).to_be_focused()
    await expect(page).to_have_url(re.compile(r"\?alone=2/"))
    box = await single_reply.get_by_role("article").bounding_box()
    assert box
    assert box["width"] > 1000
    await page.keyboard.press("Escape")
    await expect(single_reply).to_have_count(0)
    await expect(cards(page).nth(2)).to_be_focused()
    await expect(page).to_have_url(re.compile(f"{conversation_path}$"))
    assert await _scroll_top(page) == top_before


async def test_a_reply_opened_alone_has_its_own_address(
    windows: Windows, sam: Person, conversation_path: str
) -> None:
    page = await windows.open(sam, conversation_path, DESK)
    await page.get_by_role("article", name=re.compile("^Beta")).last.hover()
    await page.get_by_role("button", name="More for Beta").last.click()
    await page.get_by_role("menuitem", name="Open alone").click()
    await expect(page).to_have_url(re.compile(r"\?alone=2/"))
    address = page.url
    await page.go_back()
    await expect(page.get_by_role("region", name="Beta alone")).to_have_count(0)
    second_page = await windows.open(sam, address.removeprefix(windows.url), DESK)
    single_reply = second_page.get_by_role("region", name="Beta alone")
    await expect(single_reply).to_contain_text("Paragraph 59")
    await single_reply.get_by_role("button", name="Back to round 2").click()
    await expect(single_reply).to_have_count(0)
    await expect(ConversationPage(second_page).rounds.last).to_be_in_viewport()
    await expect(second_page).to_have_url(re.compile(f"{conversation_path}$"))


SCROLL_TOP = "(feed) => feed.parentElement.scrollTop"


async def _scroll_top(page: Page) -> int:
    top: float = await page.get_by_role("feed").evaluate(SCROLL_TOP)
    return round(top)


async def _scroll_to(page: Page, top: int) -> None:
    await page.get_by_role("feed").evaluate("(feed, top) => (feed.parentElement.scrollTop = top)", top)
