"""Each voice shows its state: waiting, thinking, writing, retrying, and how it ended."""

from __future__ import annotations

import asyncio
import re

from playwright.async_api import Page, expect

from tests.browser.conversation_page import ConversationPage, reply_in_parts
from tests.browser.test_tables import choose_mode
from tests.browser.windows import Windows
from tests.upstream.scripted import Finish, Hold, Say, Stall, Think, Upstream, refuses, says
from tests.world import Person

SECONDS = re.compile(r"^\d+ s$")


async def test_a_voice_shows_waiting_thinking_writing_and_finished(
    page: Page, windows: Windows, sam: Person, upstream: Upstream
) -> None:
    conversation = ConversationPage(page)
    think, speak, finish = asyncio.Event(), asyncio.Event(), asyncio.Event()
    script = (Hold(think), Think("Let me see."), Hold(speak), Say("Seven."), Hold(finish), Finish())
    upstream.plays(script, model="alpha")
    upstream.says("Eight.", model="beta")
    await conversation.seat("Alpha", "Beta")
    await choose_mode(page, "One after another")
    await conversation.ask("How many?")
    await expect(conversation.reply("Alpha", "waiting for the first word")).to_be_visible()
    await expect(conversation.meter("Alpha")).to_have_text(["waiting for the first word", SECONDS])
    await expect(conversation.reply("Beta", ", waiting")).to_be_visible()
    await expect(conversation.meter("Beta")).to_have_text(["waiting"])

    # A window opened later shows the same.
    second_view = ConversationPage(await windows.open(sam, page.url.removeprefix(sam.world.url)))
    await expect(second_view.reply("Alpha", "waiting for the first word")).to_be_visible()
    await expect(second_view.reply("Beta", ", waiting")).to_be_visible()
    views = (conversation, second_view)
    for event, state in ((think, "thinking"), (speak, "writing"), (finish, "finished")):
        event.set()
        for view in views:
            await expect(view.reply("Alpha", state)).to_be_visible()
    for view in views:
        await expect(view.reply("Beta", "finished")).to_be_visible()
        await expect(view.rounds).not_to_contain_text("of 2 finished")


async def test_a_failed_voice_is_named_after_the_end_and_after_a_reload(
    page: Page, upstream: Upstream
) -> None:
    conversation = ConversationPage(page)
    upstream.says("Here.", model="alpha")
    upstream.plays(refuses(500, {"error": {"message": "boom"}}), model="beta")
    await conversation.seat("Alpha", "Beta")
    await conversation.ask("Who is there?")
    for _ in range(2):
        await expect(conversation.rounds).to_contain_text("1 of 2 finished, Beta failed")
        beta = conversation.reply("Beta", "failed")
        await expect(beta).to_contain_text("boom" if await beta.locator("pre").count() else "trouble")
        await expect(beta).not_to_contain_text("reached")
        await page.reload()


async def test_a_retry_is_answered_while_another_voice_still_writes(page: Page, upstream: Upstream) -> None:
    conversation, finish = ConversationPage(page), asyncio.Event()
    upstream.plays(reply_in_parts("Still ", finish, "here."), model="alpha")
    upstream.plays(refuses(401), says("After all."), model="beta")
    await conversation.seat("Alpha", "Beta")
    await conversation.ask("Well?")
    await expect(conversation.reply_text("Alpha")).to_have_text("Still")
    await conversation.reply("Beta", "failed").get_by_role("button", name="Retry now").click()
    await expect(conversation.reply("Beta", "finished")).to_contain_text("After all.")
    await expect(conversation.reply("Alpha", "writing")).to_be_visible()
    await expect(conversation.rounds).to_contain_text("1 of 2 finished")
    finish.set()
    await expect(conversation.reply("Alpha", "finished")).to_contain_text("Still here.")
    await expect(conversation.rounds).not_to_contain_text("failed")


async def test_stop_all_stops_the_round_and_a_parallel_retry(page: Page, upstream: Upstream) -> None:
    conversation = ConversationPage(page)
    upstream.plays((Say("Alpha begins."), Stall()), model="alpha")
    upstream.plays(refuses(401), (Say("Beta again."), Stall()), model="beta")
    await conversation.seat("Alpha", "Beta")
    await conversation.ask("Well?")
    await expect(conversation.reply_text("Alpha")).to_have_text("Alpha begins.")
    await conversation.reply("Beta", "failed").get_by_role("button", name="Retry now").click()
    await expect(conversation.reply_text("Beta")).to_have_text("Beta again.")
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Stop all").click()
    await expect(conversation.reply("Alpha", "stopped")).to_be_visible()
    await expect(conversation.reply("Beta", "stopped")).to_be_visible()
    await expect(conversation.rounds).to_contain_text("0 of 2 finished, Alpha and Beta stopped")


async def test_a_stopped_first_round_leaves_the_question_as_title(page: Page, upstream: Upstream) -> None:
    conversation = ConversationPage(page)
    upstream.plays((Say("Because"), Stall()))
    await conversation.seat("Alpha")
    await conversation.ask("Why is the *sky* blue? I wonder.")
    await expect(page).to_have_title("Why is the sky blue? · Tertulia")
    await expect(page.get_by_role("heading", name="Why is the sky blue?", level=1)).to_be_visible()
    await expect(conversation.reply_text("Alpha")).to_have_text("Because")
    await page.get_by_role("button", name="Stop all replies").click()
    await expect(conversation.reply("Alpha", "stopped")).to_be_visible()
    for _ in range(2):
        await expect(page).to_have_title("Why is the sky blue? · Tertulia")
        await expect(conversation.sidebar_link("Why is the sky blue?")).to_be_visible()
        await page.reload()
