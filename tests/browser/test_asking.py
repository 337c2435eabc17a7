"""Two voices are asked, and their replies stream side by side."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, FloatRect, Page, expect

from tests.browser.conversation_page import ConversationPage, reply_in_parts, stored_replies
from tests.browser.windows import Windows
from tests.upstream.dialects import Usage
from tests.upstream.scripted import Finish, Hold, Say, Think, Upstream, refuses
from tests.world import World, running


async def test_two_replies_stream_side_by_side(page: Page, upstream: Upstream) -> None:
    conversation = ConversationPage(page)
    finish_alpha, finish_beta = asyncio.Event(), asyncio.Event()
    upstream.plays(reply_in_parts("The sky ", finish_alpha, "scatters blue."), model="alpha")
    upstream.plays(reply_in_parts("Short waves ", finish_beta, "bend the most."), model="beta")
    await conversation.seat("Alpha", "Beta")
    await conversation.ask("Why is the sky blue?")

    await expect(conversation.reply_text("Alpha")).to_have_text("The sky")
    await expect(conversation.reply_text("Beta")).to_have_text("Short waves")
    await expect(conversation.reply("Alpha", "writing")).to_have_attribute("aria-busy", "true")
    alpha_box, beta_box = (
        await conversation.reply("Alpha").bounding_box(),
        await conversation.reply("Beta").bounding_box(),
    )
    assert alpha_box
    assert beta_box
    assert alpha_box["x"] + alpha_box["width"] < beta_box["x"]
    assert alpha_box["y"] == beta_box["y"]

    finish_alpha.set()
    await expect(conversation.reply("Alpha", "finished")).to_contain_text("The sky scatters blue.")
    await expect(conversation.rounds).to_contain_text("1 of 2 finished")
    await expect(conversation.reply_text("Beta")).to_have_text("Short waves")

    finish_beta.set()
    await expect(conversation.reply("Beta", "finished")).to_contain_text("Short waves bend the most.")
    await expect(conversation.rounds).not_to_contain_text("of 2 finished")
    await expect(conversation.sidebar_link("Why is the sky blue?")).to_be_visible()
    await expect(page).to_have_title("Why is the sky blue? · Tertulia")


async def test_thinking_is_collapsed_under_its_duration(page: Page, upstream: Upstream) -> None:
    conversation, release = ConversationPage(page), asyncio.Event()
    upstream.plays((Think("Let me see. "), Hold(release), Say("Seven."), Finish()), model="alpha")
    await conversation.seat("Alpha")
    await conversation.ask("How many?")
    trace = conversation.reply("Alpha").get_by_role("button", name=re.compile("^Think"))
    await expect(trace).to_have_attribute("aria-expanded", "false")
    release.set()
    trace = conversation.reply("Alpha").get_by_role("button", name=re.compile(r"^Thought for \d+ s$"))
    await expect(conversation.reply("Alpha")).not_to_contain_text("Let me see.")
    await trace.click()
    await expect(conversation.reply("Alpha")).to_contain_text("Let me see.")


RECORD_ANNOUNCEMENTS = """
    () => {
        globalThis.announcements = [];
        const note = (changes) => changes.forEach(({ addedNodes }) =>
            announcements.push(...[...addedNodes].map(({ textContent }) => textContent).filter(Boolean)));
        for (const region of document.querySelectorAll('[aria-live=polite]'))
            new MutationObserver(note).observe(region, { childList: true });
    }
"""


async def test_a_screen_reader_gets_each_milestone_once_and_no_reply_text(
    page: Page, upstream: Upstream
) -> None:
    conversation, finish_alpha = ConversationPage(page), asyncio.Event()
    upstream.plays(reply_in_parts("One two ", finish_alpha, "three four."), model="alpha")
    fail_beta = asyncio.Event()
    upstream.plays((Hold(fail_beta), *refuses(401, {"error": {"message": "no"}})), model="beta")
    await conversation.seat("Alpha", "Beta")
    await page.evaluate(RECORD_ANNOUNCEMENTS)
    await conversation.ask("Count.")
    await page.wait_for_function("() => announcements.length >= 1")
    fail_beta.set()
    await expect(conversation.reply_text("Alpha")).to_have_text("One two")
    await expect(conversation.reply("Beta", "failed")).to_be_visible()
    finish_alpha.set()
    await expect(conversation.reply("Alpha", "finished")).to_be_visible()
    await page.wait_for_function("() => announcements.length >= 3")
    assert await page.evaluate("announcements") == [
        "Two voices are answering",
        "Beta failed: no access",
        "Alpha finished, 4 words",
    ]


@pytest_asyncio.fixture(loop_scope="session")
async def priced(tmp_path: Path, upstream: Upstream) -> AsyncIterator[World]:
    """A server with a hosted model whose price is known and a local model."""
    hosted = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{upstream.url}/v1"}
    local = [{"name": "Kitchen", "base_url": f"{upstream.url}/v1", "is_local": True, "models": ["kettle"]}]
    async with running(tmp_path, hosted | {"TERTULIA_ENDPOINTS": json.dumps(local)}) as world:
        yield world


async def test_each_reply_shows_its_tokens_cost_and_time(
    priced: World, browser: Browser, upstream: Upstream
) -> None:
    windows = Windows(browser, priced.url)
    upstream.says("Tea.", usage=Usage(sent=1200, said=340))
    sam = await priced.set_up("Sam")
    page = await windows.open(sam, "/new")
    conversation = ConversationPage(page)
    await conversation.seat("GPT-4o", "kettle")
    await conversation.ask("Tea or coffee?")
    await expect(conversation.reply("GPT-4o", "finished")).to_contain_text("Tea.")
    await expect(conversation.reply("kettle", "finished")).to_contain_text("Tea.")
    paid = (await stored_replies(sam, conversation.id))["GPT-4o"]["usage"]["cost_micros"] / 1_000_000
    assert paid > 0
    seconds = re.compile(r"^\d+\.\d s$")
    await expect(conversation.meter("GPT-4o")).to_have_text(
        ["1,200 tokens in", "340 out", f"${paid:.4f}", seconds]
    )
    await expect(conversation.meter("kettle")).to_have_text(["1,200 tokens in", "340 out", "free", seconds])
    await expect(conversation.rounds).to_contain_text(f"${paid:.4f}")
    await windows.close()
    windows.must_have_no_problems()


TEXTS_BY_LINE = """meter => {
    const lines = new Map();
    for (const span of meter.querySelectorAll('span')) {
        const range = document.createRange();
        range.selectNodeContents(span);
        const { left, right, top, bottom } = range.getBoundingClientRect();
        lines.set(top, [...(lines.get(top) ?? []), { left, right, top, bottom }]);
    }
    return [...lines.values()];
}"""


async def test_no_separator_hangs_at_either_end_of_a_wrapped_line_of_figures(
    page: Page, upstream: Upstream
) -> None:
    upstream.says("Done.", usage=Usage(12_345, 0, 678, 0))
    conversation = ConversationPage(page)
    await conversation.seat("Alpha")
    await conversation.ask("How much was that?")
    await expect(conversation.reply("Alpha", "finished")).to_be_visible()
    meter = conversation.reply("Alpha").locator("footer .meter")
    await meter.evaluate("meter => (meter.style.flex = '0 0 150px')")
    lines = await meter.evaluate(TEXTS_BY_LINE)
    assert [len(line) for line in lines][0] == 2
    assert len(lines) > 1
    first, second = lines[0]
    gap = strip(first, first["right"], second["left"])
    ends = [strip(line[0], line[0]["left"] - 14, line[0]["left"]) for line in lines]
    ends += [strip(line[-1], line[-1]["right"], line[-1]["right"] + 14) for line in lines]
    shown = [await page.screenshot(clip=area) for area in (gap, *ends)]
    await meter.evaluate("meter => (meter.style.visibility = 'hidden')")
    blank = [await page.screenshot(clip=area) for area in (gap, *ends)]
    assert shown[0] != blank[0], "no separator between two figures of one line"
    assert shown[1:] == blank[1:]


def strip(text: dict[str, float], left: float, right: float) -> FloatRect:
    """The area beside a text, from one edge to another, without the pixels of the text itself."""
    top, bottom = text["top"], text["bottom"]
    return {"x": left + 1, "y": top, "width": right - left - 2, "height": bottom - top}
