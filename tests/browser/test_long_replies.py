"""A long reply keeps its speaker and what can be done with it in view, and can be read alone."""

from __future__ import annotations

import re

import pytest_asyncio
from playwright.async_api import Locator, Page, ViewportSize, expect

from tertulia.app import new_id
from tests.browser.room import Room
from tests.browser.windows import DESK, TABLET, Windows
from tests.patience import soon
from tests.upstream.scripted import Upstream
from tests.world import Person

LONG = "\n\n".join(f"Paragraph {number} of a reply that goes on and on." for number in range(60))
STRATEGIST = "0000000000000000STRATEG1ST"
NARROW: ViewportSize = {"width": 1366, "height": 768}


@pytest_asyncio.fixture(loop_scope="session")
async def talk(sam: Person, upstream: Upstream) -> str:
    """The path of a conversation whose second round has four long replies."""
    upstream.says(LONG)
    replies = await sam.hear("Say something long.", "alpha", "beta")
    conversation_id: str = replies[0]["conversation_id"]
    voices = ("alpha", "beta", "gamma", "alpha")
    await sam.hear("Say something longer.", *voices, conversation_id=conversation_id)
    return f"/c/{conversation_id}"


def cards(page: Page) -> Locator:
    return page.get_by_role("feed").locator("[aria-posinset='2']").get_by_role("article")


async def into_the_middle(page: Page) -> None:
    """Scrolls to where neither the heads nor the feet of the replies would be."""
    middle = cards(page).first.get_by_text("Paragraph 30 ")
    await middle.evaluate("(words) => words.scrollIntoView({ block: 'center' })")
    await expect(middle).to_be_in_viewport()


async def test_four_voices_stand_side_by_side_at_1440(windows: Windows, sam: Person, talk: str) -> None:
    page = await windows.open(sam, talk, DESK)
    await expect(cards(page)).to_have_count(4)
    boxes = [await cards(page).nth(number).bounding_box() for number in range(4)]
    assert len({box["y"] for box in boxes if box}) == 1
    assert all(box and box["x"] + box["width"] <= DESK["width"] for box in boxes)


async def test_what_does_not_fit_side_by_side_stands_two_by_two(
    windows: Windows, sam: Person, talk: str
) -> None:
    page = await windows.open(sam, talk, NARROW)
    await expect(cards(page)).to_have_count(4)
    async with soon():
        while await _columns_and_rows(page) != [2, 2]:
            await page.evaluate("() => new Promise(requestAnimationFrame)")
    boxes = [await cards(page).nth(number).bounding_box() for number in range(4)]
    assert all(box and box["x"] + box["width"] <= NARROW["width"] for box in boxes)


async def _columns_and_rows(page: Page) -> list[int]:
    boxes = [await cards(page).nth(number).bounding_box() for number in range(4)]
    return [len({round(box[side]) for box in boxes if box}) for side in ("x", "y")]


async def test_the_speakers_stay_below_the_bar_while_their_replies_are_read(
    windows: Windows, sam: Person, talk: str
) -> None:
    page = await windows.open(sam, talk, DESK)
    await expect(cards(page)).to_have_count(4)
    await into_the_middle(page)
    edge = await page.get_by_role("feed").evaluate("(feed) => feed.parentElement.getBoundingClientRect().top")
    for number in range(4):
        name = cards(page).nth(number).get_by_role("heading", level=3)
        await expect(name).to_be_in_viewport()
        box = await name.bounding_box()
        assert box
        assert edge <= box["y"] < edge + 60


async def test_lanes_that_go_sideways_keep_their_names_in_view(
    windows: Windows, sam: Person, talk: str
) -> None:
    page = await windows.open(sam, talk, TABLET)
    await expect(cards(page)).to_have_count(4)
    names = page.locator(".names .row").last
    await expect(names).to_be_hidden()
    await into_the_middle(page)
    await expect(names.get_by_text("Alpha", exact=True)).to_be_in_viewport()
    await cards(page).nth(2).evaluate("(card) => card.scrollIntoView({ block: 'nearest', inline: 'start' })")
    await expect(names.get_by_text("Gamma", exact=True)).to_be_in_viewport()


async def test_actions_never_cover_the_name(windows: Windows, sam: Person, talk: str) -> None:
    page = await windows.open(sam, talk, DESK)
    await expect(cards(page)).to_have_count(4)
    await into_the_middle(page)
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


async def test_beside_versions_in_a_narrow_card_the_name_is_whole(
    windows: Windows, sam: Person, upstream: Upstream
) -> None:
    upstream.says("Short.")
    voices = [
        {"persona_id": STRATEGIST},
        *({"model": f"voices:{name}"} for name in ("alpha", "beta", "gamma")),
    ]
    replies = await sam.hear("Say something.", voices=voices)
    [mine] = [reply for reply in replies if reply["voice"]["persona_id"]]
    opened = await sam.post(f"/api/messages/{mine['id']}/retry", {"id": new_id()}, expect=202)
    await sam.ended(opened["turn"]["id"])
    page = await windows.open(sam, f"/c/{replies[0]['conversation_id']}", DESK)
    card = Room(page).reply("The Strategist")
    await expect(card).to_contain_text("2 of 2")
    await card.hover()
    name = card.get_by_role("heading", level=3)
    assert await name.evaluate("(name) => name.scrollWidth <= name.clientWidth")
    await expect(card.locator("footer").get_by_role("button", name="More")).to_be_visible()


async def test_actions_stand_at_the_foot_too(windows: Windows, sam: Person, talk: str) -> None:
    page = await windows.open(sam, talk, DESK)
    await expect(cards(page)).to_have_count(4)
    foot = cards(page).nth(1).locator("footer")
    await foot.scroll_into_view_if_needed()
    await foot.get_by_role("button", name="Mark as best").click()
    await expect(cards(page).nth(1).get_by_text(re.compile("^Best, Marked as best by "))).to_be_attached()
    await foot.get_by_role("button", name="More").click()
    menu = page.get_by_role("menu", name="More for Beta")
    for deed in ("Reply", "Branch from here", "Copy", "Regenerate", "What was sent", "Open alone"):
        await expect(menu.get_by_role("menuitem", name=re.compile(f"^{deed}"))).to_be_visible()


async def test_a_reply_is_read_alone_and_one_comes_back_to_where_one_was(
    windows: Windows, sam: Person, talk: str
) -> None:
    page = await windows.open(sam, talk, DESK)
    await expect(cards(page)).to_have_count(4)
    await into_the_middle(page)
    before = await _scrolled(page)
    await cards(page).nth(2).focus()
    await _scroll_to(page, before)
    await page.keyboard.press("o")
    alone = page.get_by_role("region", name="Gamma alone")
    await expect(alone.get_by_role("article", name=re.compile("^Gamma"))).to_be_focused()
    await expect(page).to_have_url(re.compile(r"\?alone=2/"))
    box = await alone.get_by_role("article").bounding_box()
    assert box
    assert box["width"] > 1000
    await page.keyboard.press("Escape")
    await expect(alone).to_have_count(0)
    await expect(cards(page).nth(2)).to_be_focused()
    await expect(page).to_have_url(re.compile(f"{talk}$"))
    assert await _scrolled(page) == before


async def test_a_reply_has_an_address_where_it_is_alone(windows: Windows, sam: Person, talk: str) -> None:
    page = await windows.open(sam, talk, DESK)
    await page.get_by_role("article", name=re.compile("^Beta")).last.hover()
    await page.get_by_role("button", name="More for Beta").last.click()
    await page.get_by_role("menuitem", name="Open alone").click()
    await expect(page).to_have_url(re.compile(r"\?alone=2/"))
    address = page.url
    await page.go_back()
    await expect(page.get_by_role("region", name="Beta alone")).to_have_count(0)
    other = await windows.open(sam, address.removeprefix(windows.url), DESK)
    alone = other.get_by_role("region", name="Beta alone")
    await expect(alone).to_contain_text("Paragraph 59")
    await alone.get_by_role("button", name="Back to round 2").click()
    await expect(alone).to_have_count(0)
    await expect(Room(other).rounds.last).to_be_in_viewport()
    await expect(other).to_have_url(re.compile(f"{talk}$"))


SCROLLED = "(feed) => feed.parentElement.scrollTop"


async def _scrolled(page: Page) -> int:
    scrolled: float = await page.get_by_role("feed").evaluate(SCROLLED)
    return round(scrolled)


async def _scroll_to(page: Page, place: int) -> None:
    await page.get_by_role("feed").evaluate("(feed, place) => (feed.parentElement.scrollTop = place)", place)
