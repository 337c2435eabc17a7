"""Changes in one window appear in the others, and closing a window loses nothing."""

from __future__ import annotations

import asyncio

from playwright.async_api import Page, expect

from tests.browser.conversation_page import ConversationPage, reply_in_parts, stored_replies
from tests.browser.windows import Windows
from tests.upstream.scripted import Upstream
from tests.world import Person


async def test_a_reload_during_a_reply_loses_no_text(page: Page, sam: Person, upstream: Upstream) -> None:
    conversation = ConversationPage(page)
    continue_reply, finish = asyncio.Event(), asyncio.Event()
    upstream.plays(
        reply_in_parts("The first part.\n\nThe sec", continue_reply, "ond part.", finish, "\n\nThe last.")
    )
    await conversation.seat("Alpha", "Beta")
    await conversation.ask("Take your time.")
    await expect(conversation.reply_text("Beta")).to_contain_text("The sec")

    await page.reload()
    await expect(conversation.reply_text("Alpha")).to_contain_text("The first part.")
    await expect(conversation.reply_text("Beta")).to_contain_text("The sec")
    await expect(conversation.question("Take your time.")).to_be_visible()

    continue_reply.set()
    await expect(conversation.reply_text("Alpha")).to_contain_text("The second part.")
    finish.set()
    for name in ("Alpha", "Beta"):
        await expect(conversation.reply(name, "finished")).to_be_visible()
        stored = (await stored_replies(sam, conversation.id))[name]
        assert stored["status"] == "complete"
        assert (
            await conversation.paragraphs(name)
            == stored["content"]
            == "The first part.\n\nThe second part.\n\nThe last."
        )


async def test_a_reply_finishes_while_the_window_is_closed(page: Page, upstream: Upstream) -> None:
    conversation, finish = ConversationPage(page), asyncio.Event()
    upstream.plays(reply_in_parts("Begun, ", finish, "and finished."))
    await conversation.seat("Alpha")
    await conversation.ask("I will be right back.")
    await expect(conversation.reply_text("Alpha")).to_have_text("Begun,")
    address = page.url
    await page.goto("about:blank")
    finish.set()
    await upstream.last.over.wait()
    await page.goto(address)
    await expect(conversation.reply("Alpha", "finished")).to_contain_text("Begun, and finished.")


async def test_a_second_window_shows_the_question_and_the_streaming_replies(
    page: Page, windows: Windows, sam: Person, upstream: Upstream
) -> None:
    first_window, continue_reply, finish = ConversationPage(page), asyncio.Event(), asyncio.Event()
    upstream.plays(reply_in_parts("One, ", continue_reply, "two, ", finish, "three."))
    await first_window.seat("Alpha", "Beta")
    await first_window.ask("Count.")
    await expect(first_window.reply_text("Beta")).to_have_text("One,")

    second_window = ConversationPage(await windows.open(sam, page.url))
    await expect(second_window.question("Count.")).to_be_visible()
    await expect(second_window.reply_text("Alpha")).to_have_text("One,")
    continue_reply.set()
    for conversation in (first_window, second_window):
        await expect(conversation.reply_text("Beta")).to_have_text("One, two,")
    finish.set()
    for conversation in (first_window, second_window):
        await expect(conversation.reply("Alpha", "finished")).to_contain_text("One, two, three.")

    await second_window.ask("And backwards?")
    await expect(first_window.question("And backwards?")).to_be_visible()
    await expect(first_window.rounds).to_have_count(2)


async def test_renaming_pinning_archiving_and_deleting_appear_in_other_windows(
    page: Page, windows: Windows, sam: Person, upstream: Upstream
) -> None:
    windows.allow(r"status of 404 .*/api/conversations/")
    first_window = ConversationPage(page)
    [reply] = await sam.ask_and_wait("What is a tertulia?", "alpha")
    second_window = ConversationPage(await windows.open(sam, f"/c/{reply['conversation_id']}"))
    await expect(second_window.reply("Alpha", "finished")).to_be_visible()

    await first_window.choose("What is a tertulia?", "Rename")
    await page.keyboard.type("Coffee and talk")
    await page.keyboard.press("Enter")
    await expect(second_window.sidebar_link("Coffee and talk")).to_be_visible()
    await expect(second_window.page).to_have_title("Coffee and talk · Tertulia")

    await first_window.choose("Coffee and talk", "Pin")
    pinned = second_window.sidebar.get_by_role("region", name="Pinned")
    await expect(pinned.get_by_role("link", name="Coffee and talk")).to_be_visible()

    await first_window.choose("Coffee and talk", "Archive")
    await expect(second_window.sidebar_link("Coffee and talk")).to_be_hidden()
    await expect(second_window.page.get_by_text("This conversation is archived.")).to_be_visible()
    await second_window.page.get_by_role("button", name="Restore").click()
    await expect(first_window.sidebar_link("Coffee and talk")).to_be_visible()

    await first_window.choose("Coffee and talk", "Delete")
    await expect(page.get_by_role("alertdialog")).to_contain_text("Delete “Coffee and talk”?")
    await expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    await page.get_by_role("button", name="Delete conversation").click()
    await expect(first_window.sidebar_link("Coffee and talk")).to_be_hidden()
    await expect(second_window.sidebar_link("Coffee and talk")).to_be_hidden()
    await expect(second_window.page.get_by_text("Conversation not found").last).to_be_visible()


async def test_a_session_ended_elsewhere_signs_the_window_out(
    page: Page, windows: Windows, sam: Person
) -> None:
    await expect(page.get_by_role("heading", name="What would you like to ask?")).to_be_visible()
    await sam.post("/api/logout", expect=204)
    await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
