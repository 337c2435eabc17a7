"""Two minds are asked, and their words stand side by side while they speak."""

from __future__ import annotations

import asyncio
import re

from playwright.async_api import Page, expect

from tests.browser.room import Room, in_parts
from tests.upstream.scripted import Finish, Hold, Say, Think, Upstream


async def test_two_minds_speak_side_by_side_word_by_word(page: Page, upstream: Upstream) -> None:
    room = Room(page)
    first, last = asyncio.Event(), asyncio.Event()
    upstream.plays(in_parts("The sky ", first, "scatters blue."), model="alpha")
    upstream.plays(in_parts("Short waves ", last, "bend the most."), model="beta")
    await room.seat("Alpha", "Beta")
    await room.ask("Why is the sky blue?")

    await expect(room.words("Alpha")).to_have_text("The sky")
    await expect(room.words("Beta")).to_have_text("Short waves")
    await expect(room.reply("Alpha", "writing")).to_have_attribute("aria-busy", "true")
    left, right = await room.reply("Alpha").bounding_box(), await room.reply("Beta").bounding_box()
    assert left
    assert right
    assert left["x"] + left["width"] < right["x"]
    assert left["y"] == right["y"]

    first.set()
    await expect(room.reply("Alpha", "finished")).to_contain_text("The sky scatters blue.")
    await expect(room.rounds).to_contain_text("1 of 2 finished")
    await expect(room.words("Beta")).to_have_text("Short waves")

    last.set()
    await expect(room.reply("Beta", "finished")).to_contain_text("Short waves bend the most.")
    await expect(room.rounds).not_to_contain_text("of 2 finished")
    await expect(room.row("Why is the sky blue?")).to_be_visible()
    await expect(page).to_have_title("Why is the sky blue? · Tertulia")


async def test_thoughts_are_folded_under_the_time_they_took(page: Page, upstream: Upstream) -> None:
    room, speaks = Room(page), asyncio.Event()
    upstream.plays((Think("Let me see. "), Hold(speaks), Say("Seven."), Finish()), model="alpha")
    await room.seat("Alpha")
    await room.ask("How many?")
    trace = room.reply("Alpha").get_by_role("button", name=re.compile("^Think"))
    await expect(trace).to_have_attribute("aria-expanded", "false")
    speaks.set()
    trace = room.reply("Alpha").get_by_role("button", name=re.compile(r"^Thought for \d+ s$"))
    await expect(room.reply("Alpha")).not_to_contain_text("Let me see.")
    await trace.click()
    await expect(room.reply("Alpha")).to_contain_text("Let me see.")
