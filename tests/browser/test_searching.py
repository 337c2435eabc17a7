"""What was brought in and said is found again, and opens at its place."""

from __future__ import annotations

import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.room import Room
from tests.browser.seeds import long_conversation
from tests.browser.windows import PHONE, Windows
from tests.upstream.scripted import Upstream
from tests.world import Person, World

ROUNDS = 40


@pytest_asyncio.fixture(loop_scope="session")
async def long(world: World, sam: Person) -> str:
    """The path of a conversation of forty rounds."""
    return f"/c/{await long_conversation(world, sam, ROUNDS * 4)}"


async def test_a_round_far_back_opens_at_once_and_reading_goes_on_from_there(
    windows: Windows, sam: Person, long: str
) -> None:
    page = await windows.open(sam, f"{long}#round-9")
    room = Room(page)
    await expect(room.question("Question 9")).to_be_in_viewport()
    await expect(room.question(f"Question {ROUNDS}")).not_to_be_attached()
    await page.get_by_role("button", name="later rounds").dispatch_event("click")
    await expect(room.question("Question 12")).to_be_attached()
    await expect(room.question("Question 9")).to_be_in_viewport()
    await page.get_by_role("button", name="earlier rounds").dispatch_event("click")
    await expect(room.question("Question 2")).to_be_attached()
    await expect(room.question("Question 9")).to_be_in_viewport()
    await page.keyboard.press("l")
    await expect(room.question(f"Question {ROUNDS}")).to_be_attached()
    await expect(room.question("Question 9")).not_to_be_attached()


GO_TO = """
    (hash) => new Promise((found) => {
        const watcher = new MutationObserver(([change]) => found(change.target.ariaPosInSet));
        watcher.observe(document.body, { subtree: true, attributeFilter: ['data-found'] });
        location.hash = hash;
    })
"""
"""The number of the round that is marked when the address names it."""


async def test_another_round_of_the_same_conversation_is_one_address_away(
    windows: Windows, sam: Person, long: str, upstream: Upstream
) -> None:
    page = await windows.open(sam, long)
    room = Room(page)
    await expect(room.question(f"Question {ROUNDS}")).to_be_in_viewport()
    assert await page.evaluate(GO_TO, "#round-3") == "3"
    await expect(room.question("Question 3")).to_be_in_viewport()
    upstream.says("And so we went on.")
    await room.ask("Where were we?")
    await expect(room.question("Where were we?")).to_be_in_viewport()
    await expect(room.question("Question 3")).not_to_be_attached()


async def test_a_phone_opens_the_reply_that_was_meant(windows: Windows, sam: Person, long: str) -> None:
    page = await _phone_at_reply(windows, sam, long)
    meant = Room(page).feed.locator('[aria-posinset="5"]')
    await expect(meant.get_by_role("tab", name="Gamma")).to_have_attribute("aria-selected", "true")
    await expect(meant.get_by_role("tabpanel", name="Gamma").get_by_role("article")).to_be_in_viewport()


async def _phone_at_reply(windows: Windows, sam: Person, path: str) -> Page:
    replies = await sam.replies(path.rpartition("/")[2], 5)
    return await windows.open(
        sam, f"{path}#round-5/{replies[-1]['id']}", PHONE, is_mobile=True, has_touch=True
    )
