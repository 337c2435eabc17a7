"""Two minds are asked, and their words stand side by side while they speak."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.browser.room import Room, in_parts, stored
from tests.browser.windows import Windows
from tests.upstream.dialects import Usage
from tests.upstream.scripted import Finish, Hold, Say, Think, Upstream, refuses
from tests.world import World, running


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


HEAR = """
    () => {
        globalThis.heard = [];
        const note = (changes) => changes.forEach(({ addedNodes }) =>
            heard.push(...[...addedNodes].map(({ textContent }) => textContent).filter(Boolean)));
        for (const region of document.querySelectorAll('[aria-live=polite]'))
            new MutationObserver(note).observe(region, { childList: true });
    }
"""


async def test_a_screen_reader_hears_milestones_once_and_no_words(page: Page, upstream: Upstream) -> None:
    room, ends = Room(page), asyncio.Event()
    upstream.plays(in_parts("One two ", ends, "three four."), model="alpha")
    begun = asyncio.Event()
    upstream.plays((Hold(begun), *refuses(401, {"error": {"message": "no"}})), model="beta")
    await room.seat("Alpha", "Beta")
    await page.evaluate(HEAR)
    await room.ask("Count.")
    await page.wait_for_function("() => heard.length >= 1")
    begun.set()
    await expect(room.words("Alpha")).to_have_text("One two")
    await expect(room.reply("Beta", "failed")).to_be_visible()
    ends.set()
    await expect(room.reply("Alpha", "finished")).to_be_visible()
    await page.wait_for_function("() => heard.length >= 3")
    assert await page.evaluate("heard") == [
        "Two voices are answering",
        "Beta failed: no access",
        "Alpha finished, 4 words",
    ]


@pytest_asyncio.fixture(loop_scope="session")
async def priced(tmp_path: Path, upstream: Upstream) -> AsyncIterator[World]:
    """A house with a rented model whose price is known and one that runs at home."""
    rented = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{upstream.url}/v1"}
    at_home = [{"name": "Kitchen", "base_url": f"{upstream.url}/v1", "is_local": True, "models": ["kettle"]}]
    async with running(tmp_path, rented | {"TERTULIA_ENDPOINTS": json.dumps(at_home)}) as made:
        yield made


async def test_each_reply_says_what_it_took(priced: World, browser: Browser, upstream: Upstream) -> None:
    windows = Windows(browser, priced.url)
    upstream.says("Tea.", usage=Usage(sent=1200, said=340))
    sam = await priced.first("Sam")
    page = await windows.open(sam, "/new")
    room = Room(page)
    await room.seat("GPT-4o", "kettle")
    await room.ask("Tea or coffee?")
    await expect(room.reply("GPT-4o", "finished")).to_contain_text("Tea.")
    await expect(room.reply("kettle", "finished")).to_contain_text("Tea.")
    paid = (await stored(sam, room.id))["GPT-4o"]["usage"]["cost_micros"] / 1_000_000
    assert paid > 0
    seconds = re.compile(r"^\d+\.\d s$")
    await expect(room.meter("GPT-4o")).to_have_text(["1,200 tokens in", "340 out", f"${paid:.4f}", seconds])
    await expect(room.meter("kettle")).to_have_text(["1,200 tokens in", "340 out", "free", seconds])
    await expect(room.rounds).to_contain_text(f"${paid:.4f}")
    await windows.close()
    windows.must_be_untroubled()
