"""Each voice says what it is doing: waiting, asked, thinking, writing, trying again, and how it ended."""

from __future__ import annotations

import asyncio
import re

from playwright.async_api import Page, expect

from tests.browser.room import Room, in_parts
from tests.browser.test_tables import choose_mode
from tests.browser.windows import Windows
from tests.upstream.scripted import Finish, Hold, Say, Stall, Think, Upstream, refuses, says
from tests.world import Person

SECONDS = re.compile(r"^\d+ s$")


async def test_a_voice_waits_until_it_is_asked_and_then_for_its_first_word(
    page: Page, windows: Windows, sam: Person, upstream: Upstream
) -> None:
    room = Room(page)
    thinks, speaks, ends = asyncio.Event(), asyncio.Event(), asyncio.Event()
    script = (Hold(thinks), Think("Let me see."), Hold(speaks), Say("Seven."), Hold(ends), Finish())
    upstream.plays(script, model="alpha")
    upstream.says("Eight.", model="beta")
    await room.seat("Alpha", "Beta")
    await choose_mode(page, "One after another")
    await room.ask("How many?")
    await expect(room.reply("Alpha", "waiting for the first word")).to_be_visible()
    await expect(room.meter("Alpha")).to_have_text(["waiting for the first word", SECONDS])
    await expect(room.reply("Beta", ", waiting")).to_be_visible()
    await expect(room.meter("Beta")).to_have_text(["waiting"])

    # Whoever comes later sees the same.
    other = Room(await windows.open(sam, page.url.removeprefix(sam.world.url)))
    await expect(other.reply("Alpha", "waiting for the first word")).to_be_visible()
    await expect(other.reply("Beta", ", waiting")).to_be_visible()
    both = (room, other)
    for event, state in ((thinks, "thinking"), (speaks, "writing"), (ends, "finished")):
        event.set()
        for seen in both:
            await expect(seen.reply("Alpha", state)).to_be_visible()
    for seen in both:
        await expect(seen.reply("Beta", "finished")).to_be_visible()
        await expect(seen.rounds).not_to_contain_text("of 2 finished")


async def test_who_failed_is_named_after_the_end_and_after_a_reload(page: Page, upstream: Upstream) -> None:
    room = Room(page)
    upstream.says("Here.", model="alpha")
    upstream.plays(refuses(500, {"error": {"message": "boom"}}), model="beta")
    await room.seat("Alpha", "Beta")
    await room.ask("Who is there?")
    for _ in range(2):
        await expect(room.rounds).to_contain_text("1 of 2 finished, Beta failed")
        beta = room.reply("Beta", "failed")
        await expect(beta).to_contain_text("boom" if await beta.locator("pre").count() else "trouble")
        await expect(beta).not_to_contain_text("reached")
        await page.reload()


async def test_a_retry_is_answered_while_the_neighbour_still_writes(page: Page, upstream: Upstream) -> None:
    room, ends = Room(page), asyncio.Event()
    upstream.plays(in_parts("Still ", ends, "here."), model="alpha")
    upstream.plays(refuses(401), says("After all."), model="beta")
    await room.seat("Alpha", "Beta")
    await room.ask("Well?")
    await expect(room.words("Alpha")).to_have_text("Still")
    await room.reply("Beta", "failed").get_by_role("button", name="Retry now").click()
    await expect(room.reply("Beta", "finished")).to_contain_text("After all.")
    await expect(room.reply("Alpha", "writing")).to_be_visible()
    await expect(room.rounds).to_contain_text("1 of 2 finished")
    ends.set()
    await expect(room.reply("Alpha", "finished")).to_contain_text("Still here.")
    await expect(room.rounds).not_to_contain_text("failed")


async def test_one_stop_ends_the_round_and_the_retry_beside_it(page: Page, upstream: Upstream) -> None:
    room = Room(page)
    upstream.plays((Say("Alpha begins."), Stall()), model="alpha")
    upstream.plays(refuses(401), (Say("Beta again."), Stall()), model="beta")
    await room.seat("Alpha", "Beta")
    await room.ask("Well?")
    await expect(room.words("Alpha")).to_have_text("Alpha begins.")
    await room.reply("Beta", "failed").get_by_role("button", name="Retry now").click()
    await expect(room.words("Beta")).to_have_text("Beta again.")
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Stop all").click()
    await expect(room.reply("Alpha", "stopped")).to_be_visible()
    await expect(room.reply("Beta", "stopped")).to_be_visible()
    await expect(room.rounds).to_contain_text("0 of 2 finished, Alpha and Beta stopped")


async def test_a_conversation_is_called_by_its_question_though_its_first_round_is_stopped(
    page: Page, upstream: Upstream
) -> None:
    room = Room(page)
    upstream.plays((Say("Because"), Stall()))
    await room.seat("Alpha")
    await room.ask("Why is the *sky* blue? I wonder.")
    await expect(page).to_have_title("Why is the sky blue? · Tertulia")
    await expect(page.get_by_role("heading", name="Why is the sky blue?", level=1)).to_be_visible()
    await expect(room.words("Alpha")).to_have_text("Because")
    await page.get_by_role("button", name="Stop all replies").click()
    await expect(room.reply("Alpha", "stopped")).to_be_visible()
    for _ in range(2):
        await expect(page).to_have_title("Why is the sky blue? · Tertulia")
        await expect(room.row("Why is the sky blue?")).to_be_visible()
        await page.reload()
