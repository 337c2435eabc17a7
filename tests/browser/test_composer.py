"""The composer after sending: it keeps the focus, collapses to one line, and nothing covers it."""

from __future__ import annotations

import re

from playwright.async_api import Locator, Page, expect

from tests.browser.conversation_page import ConversationPage
from tests.browser.seeds import long_conversation
from tests.browser.windows import PHONE, Windows
from tests.upstream.scripted import Upstream
from tests.world import Person, World


async def test_the_composer_keeps_the_focus_and_collapses_until_the_person_types(
    page: Page,
) -> None:
    conversation = ConversationPage(page)
    await conversation.seat("Alpha")
    await conversation.ask("One\nTwo\nThree\nFour")
    await expect(conversation.reply("Alpha", "finished")).to_be_visible()
    await expect(conversation.field).to_be_focused()
    await expect(conversation.table).to_be_hidden()
    collapsed_height = await _height(conversation.field)
    await page.keyboard.insert_text("More\nthan\none\nline")
    await expect(conversation.table).to_be_visible()
    assert await _height(conversation.field) > collapsed_height
    await page.keyboard.press("Enter")
    await expect(conversation.rounds).to_have_count(2)
    await expect(conversation.field).to_be_focused()
    await expect(conversation.table).to_be_hidden()
    assert await _height(conversation.field) == collapsed_height


async def test_the_send_button_leaves_the_focus_in_the_composer(page: Page) -> None:
    conversation = ConversationPage(page)
    await conversation.seat("Alpha")
    await conversation.ask("First")
    await expect(conversation.reply("Alpha", "finished")).to_be_visible()
    await page.keyboard.insert_text("Second")
    await page.get_by_role("button", name="Send", exact=True).click()
    await expect(conversation.rounds).to_have_count(2)
    await expect(conversation.field).to_be_focused()


async def test_a_click_expands_a_collapsed_composer(page: Page) -> None:
    conversation = ConversationPage(page)
    await conversation.seat("Alpha")
    await conversation.ask("First")
    await expect(conversation.reply("Alpha", "finished")).to_be_visible()
    await expect(conversation.table).to_be_hidden()
    await conversation.field.click()
    await expect(conversation.table).to_be_visible()


async def test_a_new_branch_opens_with_the_focus_in_the_composer(
    windows: Windows, sam: Person, upstream: Upstream
) -> None:
    upstream.says("Yes.")
    replies = await sam.ask_and_wait("Shall we?", "alpha")
    page = await windows.open(sam, f"/c/{replies[0]['conversation_id']}")
    conversation = ConversationPage(page)
    await conversation.reply("Alpha", "finished").focus()
    url_before = page.url
    await page.keyboard.press("b")
    await expect(page).not_to_have_url(url_before)
    await expect(conversation.field).to_be_focused()


async def test_a_notification_appears_above_the_composer(
    windows: Windows, sam: Person, upstream: Upstream
) -> None:
    upstream.says("Yes.")
    replies = await sam.ask_and_wait("Shall we?", "alpha")
    for size in ({"width": 1024, "height": 700}, PHONE):
        page = await windows.open(sam, f"/c/{replies[0]['conversation_id']}", size)
        reply = ConversationPage(page).reply("Alpha", "finished")
        await reply.focus()
        await page.keyboard.press("c")
        toast = page.get_by_role("region", name="Messages").get_by_role("status")
        await expect(toast).to_be_visible()
        composer = page.locator("form").filter(has=page.get_by_role("button", name="Send", exact=True)).first
        assert await _bottom(toast) <= await _top(composer)


async def test_a_button_leads_to_the_start_of_a_long_conversation(
    windows: Windows, world: World, sam: Person
) -> None:
    page = await windows.open(sam, f"/c/{await long_conversation(world, sam, 120)}")
    conversation = ConversationPage(page)
    await expect(conversation.rounds.last).to_contain_text("Question 30")
    await page.get_by_role("button", name="Start of the conversation").press("Enter")
    await expect(conversation.rounds.first).to_contain_text("Question 1")
    await expect(conversation.rounds.first).to_be_in_viewport()


async def test_a_phone_attaches_files_without_opening_the_sheet(windows: Windows, sam: Person) -> None:
    page = await windows.open(sam, "/new", PHONE, is_mobile=True, has_touch=True)
    await page.get_by_role("button", name=re.compile("^Attach")).first.tap()
    async with page.expect_file_chooser() as choosing:
        await page.get_by_role("menuitem", name="Add to this message").tap()
    await (await choosing.value).set_files(
        {"name": "rota.md", "mimeType": "text/markdown", "buffer": b"Mateo"}
    )
    await expect(page.get_by_text("1 file attached")).to_be_attached()


async def _height(element: Locator) -> float:
    box = await element.bounding_box()
    assert box is not None
    return box["height"]


async def _top(element: Locator) -> float:
    box = await element.bounding_box()
    assert box is not None
    return box["y"]


async def _bottom(element: Locator) -> float:
    return await _top(element) + await _height(element)
