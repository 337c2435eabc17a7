"""A conversation of ten thousand messages opens, scrolls and accepts typing like a short one."""

from __future__ import annotations

import re

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.conversation_page import ConversationPage
from tests.browser.seeds import long_conversation
from tests.browser.windows import Windows
from tests.upstream.scripted import Upstream, says
from tests.world import Person, World

MESSAGES = 10_000
ROUNDS = MESSAGES // 4


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def reader(shared_world: World, administrator: Person) -> Person:
    return await shared_world.create_account(administrator, "Longreader")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def path(shared_world: World, reader: Person) -> str:
    return f"/c/{await long_conversation(shared_world, reader, MESSAGES)}"


@pytest_asyncio.fixture(loop_scope="session")
async def page(windows: Windows, reader: Person, path: str, upstream: Upstream) -> Page:
    page = await windows.open(reader, path)
    await expect(ConversationPage(page).rounds).to_have_count(3)
    return page


async def test_a_long_conversation_opens_at_its_end_with_three_rounds(
    windows: Windows, reader: Person, path: str, upstream: Upstream
) -> None:
    page = await windows.open(reader, "/new")
    await expect(page.get_by_role("heading", name="What would you like to ask?")).to_be_visible()
    sizes: list[int] = []
    page.on("response", lambda response: sizes.append(int(response.headers.get("content-length", 0))))
    await page.goto(path)
    conversation = ConversationPage(page)
    await expect(conversation.question(f"Question {ROUNDS}")).to_be_in_viewport()
    await expect(conversation.rounds).to_have_count(3)
    await expect(page.get_by_role("button", name=f"{ROUNDS - 3:,} earlier rounds")).to_be_attached()
    assert await page.evaluate("document.querySelectorAll('*').length") < 2_000
    assert sum(sizes) < 1 << 20


SCROLL_TO = """
    (feed, top) => {
        feed.parentElement.scrollTop = top;
        const { bottom: edge } = document.querySelector('.topbar').getBoundingClientRect();
        const round = [...feed.children].find((each) => each.getBoundingClientRect().bottom > edge);
        return [round.dataset.roundName, round.getBoundingClientRect().top];
    }
"""


@pytest.mark.parametrize(
    ("top", "is_button"), [(400, True), (120, False)], ids=["by the button", "near the top"]
)
async def test_loading_earlier_rounds_keeps_the_scroll_position(
    page: Page, top: int, is_button: bool
) -> None:
    conversation = ConversationPage(page)
    for _ in range(3):
        count_before = await conversation.rounds.count()
        name, top_before = await conversation.feed.evaluate(SCROLL_TO, top)
        if is_button:
            await page.get_by_role("button", name=re.compile("earlier rounds$")).dispatch_event("click")
        await expect(conversation.rounds.nth(count_before)).to_be_attached()
        await expect(conversation.feed).to_have_attribute("aria-busy", "false")
        box_after = await page.locator(f'[data-round-name="{name}"]').bounding_box()
        assert box_after
        assert abs(box_after["y"] - top_before) <= 2


async def test_typing_loses_no_letter_while_replies_stream(page: Page, upstream: Upstream) -> None:
    conversation = ConversationPage(page)
    upstream.plays(says("A word or two. " * 200, pace=0.002))
    await conversation.ask("Speak while I write.")
    await expect(conversation.reply("Alpha", "writing")).to_be_visible()
    await conversation.field.press_sequentially("This is typed while three minds are writing.")
    await expect(conversation.field).to_have_value("This is typed while three minds are writing.")
    await page.keyboard.press("Control+.")
    await expect(
        conversation.rounds.last.get_by_role("article", name=re.compile("stopped|finished"))
    ).to_have_count(3)
