"""A conversation of ten thousand messages opens, scrolls and takes words like a short one."""

from __future__ import annotations

import re

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.room import Room
from tests.browser.seeds import long_conversation
from tests.browser.windows import Windows
from tests.upstream.scripted import Stall, Upstream, says
from tests.world import Person, World

MESSAGES = 10_000
ROUNDS = MESSAGES // 4


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def reader(shared_world: World, administrator: Person) -> Person:
    return await shared_world.another(administrator, "Longreader")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def path(shared_world: World, reader: Person) -> str:
    return f"/c/{await long_conversation(shared_world, reader, MESSAGES)}"


@pytest_asyncio.fixture(loop_scope="session")
async def page(windows: Windows, reader: Person, path: str, upstream: Upstream) -> Page:
    page = await windows.open(reader, path)
    await expect(Room(page).rounds).to_have_count(3)
    return page


async def test_it_opens_at_its_end_with_a_few_rounds(
    windows: Windows, reader: Person, path: str, upstream: Upstream
) -> None:
    page = await windows.open(reader, "/new")
    await expect(page.get_by_role("heading", name="What would you like to ask?")).to_be_visible()
    sizes: list[int] = []
    page.on("response", lambda response: sizes.append(int(response.headers.get("content-length", 0))))
    await page.goto(path)
    room = Room(page)
    await expect(room.question(f"Question {ROUNDS}")).to_be_in_viewport()
    await expect(room.rounds).to_have_count(3)
    await expect(page.get_by_role("button", name=f"{ROUNDS - 3:,} earlier rounds")).to_be_attached()
    assert await page.evaluate("document.querySelectorAll('*').length") < 2_000
    assert sum(sizes) < 1 << 20


STAND_AT = """
    (feed, top) => {
        feed.parentElement.scrollTop = top;
        const { bottom: edge } = document.querySelector('.topbar').getBoundingClientRect();
        const round = [...feed.children].find((each) => each.getBoundingClientRect().bottom > edge);
        return [round.dataset.roundName, round.getBoundingClientRect().top];
    }
"""


@pytest.mark.parametrize(
    ("top", "is_asked"), [(400, True), (120, False)], ids=["by the button", "near the top"]
)
async def test_earlier_rounds_come_without_a_jump(page: Page, top: int, is_asked: bool) -> None:
    room = Room(page)
    for _ in range(3):
        known = await room.rounds.count()
        name, before = await room.feed.evaluate(STAND_AT, top)
        if is_asked:
            await page.get_by_role("button", name=re.compile("earlier rounds$")).dispatch_event("click")
        await expect(room.rounds.nth(known)).to_be_attached()
        await expect(room.feed).to_have_attribute("aria-busy", "false")
        after = await page.locator(f'[data-round-name="{name}"]').bounding_box()
        assert after
        assert abs(after["y"] - before) <= 2


async def test_no_letter_is_lost_while_replies_come_in(page: Page, upstream: Upstream) -> None:
    room = Room(page)
    upstream.plays((*says("A word or two. " * 200, pace=0.002)[:-1], Stall()))
    await room.ask("Speak while I write.")
    await expect(room.reply("Alpha", "writing")).to_be_visible()
    await room.field.press_sequentially("This is typed while three minds are writing.")
    await expect(room.field).to_have_value("This is typed while three minds are writing.")
    await page.keyboard.press("Control+.")
    await expect(room.rounds.last.get_by_role("article", name=re.compile("stopped|finished"))).to_have_count(
        3
    )
