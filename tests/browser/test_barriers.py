"""axe finds no serious barrier on any screen, by day or by evening."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.browser.room import Room, in_parts
from tests.browser.test_searching import talk_of_pottery
from tests.browser.test_words import TEXT
from tests.browser.windows import PHONE, Windows
from tests.upstream.scripted import Cut, Say, Upstream, refuses
from tests.world import Person, World, endpoints, running

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"

RUN = """
    async (rules) => {
        const { violations } = await axe.run(document, rules ? { runOnly: rules } : {});
        return violations
            .filter(({ impact }) => impact === 'serious' || impact === 'critical')
            .flatMap(({ id, nodes }) => nodes.map(({ html, any, all, none }) => {
                const why = [...any, ...all, ...none].map(({ message }) => message).join(' ');
                return `${id}: ${html.slice(0, 200)} ${why}`;
            }));
    }
"""


@cache
def axe() -> str:
    return AXE.read_text()


async def must_have_no_barriers(page: Page) -> None:
    """Everything by day; in the evening only the colours are others."""
    await page.emulate_media(color_scheme="light", reduced_motion="reduce")
    await page.evaluate(axe())
    found = await page.evaluate(RUN, None)
    await page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    found += [f"evening: {each}" for each in await page.evaluate(RUN, ["color-contrast"])]
    assert not found, "\n".join(found)


async def test_the_way_in(browser: Browser, windows: Windows, upstream: Upstream, tmp_path: Path) -> None:
    async with running(tmp_path, {"TERTULIA_ENDPOINTS": endpoints(upstream)}) as empty:
        fresh = Windows(browser, empty.url)
        page = await fresh.open()
        await expect(page.get_by_role("heading", name="Create your account")).to_be_visible()
        await must_have_no_barriers(page)
        await page.get_by_label("Your name").fill("Sam")
        await page.get_by_label("Email").fill("sam@example.org")
        await page.get_by_label("Password", exact=True).fill("a long enough password")
        for heading in ("Connect your models", "Which models should answer?"):
            await page.get_by_role("button", name="Continue").click()
            await expect(page.get_by_role("heading", name=heading)).to_be_visible()
            await must_have_no_barriers(page)
        await fresh.close()


async def test_the_door(windows: Windows, administrator: Person) -> None:
    page = await windows.open(None, "/sign-in")
    await page.get_by_label("Email").fill("nobody@example.org")
    await page.get_by_label("Password", exact=True).fill("not a password")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_label("Password", exact=True)).to_be_focused()
    await expect(page.get_by_text("do not match")).to_be_visible()
    await must_have_no_barriers(page)


async def test_a_set_table(page: Page) -> None:
    room = Room(page)
    await room.seat("Alpha", "Beta", "Gamma")
    await must_have_no_barriers(page)
    await page.get_by_role("button", name="Add a voice").click()
    await expect(page.get_by_role("listbox", name="Models and personas")).to_be_visible()
    await must_have_no_barriers(page)


async def test_a_conversation_that_is_over(windows: Windows, sam: Person, upstream: Upstream) -> None:
    upstream.says(TEXT, model="alpha", thinking="Let me see.")
    [reply, _] = await sam.hear("Show me everything.", "alpha", "beta")
    page = await windows.open(sam, f"/c/{reply['conversation_id']}")
    room = Room(page)
    await room.reply("Alpha").get_by_role("button", name="Thought for").click()
    await expect(room.words("Alpha").locator(".katex")).to_have_count(2)
    await expect(room.words("Alpha").locator(".hljs-keyword").first).to_be_attached()
    await room.reply("Beta").hover()
    await must_have_no_barriers(page)
    await room.reply("Beta").get_by_role("button", name="What was sent").click()
    await expect(page.get_by_role("table", name="What the model received")).to_be_visible()
    await must_have_no_barriers(page)


async def test_replies_on_their_way(page: Page, upstream: Upstream) -> None:
    room = Room(page)
    upstream.plays(in_parts("Some **words** and", asyncio.Event()), model="alpha")
    upstream.plays(in_parts(asyncio.Event()), model="beta")
    upstream.plays(refuses(429, "slow down", retry_after="30"), model="gamma")
    await room.seat("Alpha", "Beta", "Gamma")
    await room.ask("Take your time.")
    await expect(room.words("Alpha")).to_contain_text("words")
    await expect(room.reply("Gamma", "waiting for the provider")).to_be_visible()
    await must_have_no_barriers(page)
    await page.keyboard.press("Control+.")
    await expect(room.reply("Alpha", "stopped")).to_be_visible()
    await must_have_no_barriers(page)


async def test_replies_that_failed(page: Page, upstream: Upstream) -> None:
    room = Room(page)
    upstream.plays(refuses(401, {"error": {"message": "no"}}), model="alpha")
    upstream.plays((Say("Half a thou"), Cut()), model="beta")
    await room.seat("Alpha", "Beta")
    await room.ask("Are you well?")
    await room.reply("Alpha", "failed").get_by_role("button", name="Error message from voices").click()
    await expect(room.reply("Beta", "interrupted")).to_be_visible()
    await must_have_no_barriers(page)


async def test_what_opens_over_the_page(page: Page, sam: Person) -> None:
    await sam.hear("What is a tertulia?", "alpha")
    room = Room(page)
    await expect(room.row("What is a tertulia?")).to_be_visible()
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("option").first).to_be_visible()
    await must_have_no_barriers(page)
    await page.keyboard.press("Escape")
    await room.choose("What is a tertulia?", "Delete")
    await expect(page.get_by_role("alertdialog")).to_be_visible()
    await must_have_no_barriers(page)
    await page.keyboard.press("Escape")
    await room.sidebar.get_by_role("button", name="your account").click()
    await expect(page.get_by_role("menu")).to_be_visible()
    await must_have_no_barriers(page)


async def test_a_search(windows: Windows, world: World, sam: Person, upstream: Upstream) -> None:
    talk = await talk_of_pottery(world, sam, upstream)
    page = await windows.open(sam, "/search?q=bisque+firing")
    await expect(page.get_by_role("heading", name="Files")).to_be_visible()
    await page.keyboard.press("ArrowDown")
    await must_have_no_barriers(page)
    await page.get_by_role("button", name="When: Any time").click()
    await expect(page.get_by_role("dialog", name="When")).to_be_visible()
    await must_have_no_barriers(page)
    await page.keyboard.press("Escape")
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox").fill("bisque firing")
    await expect(page.get_by_role("group", name="In conversations")).to_be_visible()
    await must_have_no_barriers(page)
    await page.goto("/search?q=zanzibar")
    await expect(page.get_by_role("heading", name="No match for “zanzibar”")).to_be_visible()
    await must_have_no_barriers(page)
    await page.goto(f"/c/{talk}")
    await Room(page).words("Alpha").get_by_role("button", name="docs/kiln.md").click()
    await expect(page.locator("li.meant").first).to_be_in_viewport()
    await must_have_no_barriers(page)


@pytest.mark.parametrize("tab", ["Files", "Instructions and models"])
async def test_a_project(windows: Windows, sam: Person, tab: str) -> None:
    page = await windows.open(sam, f"/p/{sam.home}")
    await page.get_by_role("tab", name=tab).click()
    await page.wait_for_load_state("networkidle")
    await must_have_no_barriers(page)


@pytest.mark.parametrize("panel", ["models", "appearance", "keyboard", "sessions"])
async def test_settings(windows: Windows, sam: Person, panel: str) -> None:
    page = await windows.open(sam, f"/settings/{panel}")
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    await page.wait_for_load_state("networkidle")
    await must_have_no_barriers(page)


@pytest_asyncio.fixture(loop_scope="session")
async def phone(windows: Windows, sam: Person, upstream: Upstream) -> AsyncIterator[Page]:
    upstream.says(TEXT, model="alpha", thinking="Let me see.")
    [reply, _] = await sam.hear("Show me everything.", "alpha", "beta")
    page = await windows.open(sam, f"/c/{reply['conversation_id']}", PHONE, is_mobile=True, has_touch=True)
    await expect(page.get_by_role("tablist", name="Replies")).to_be_visible()
    yield page


async def test_a_phone(phone: Page) -> None:
    await expect(Room(phone).words("Alpha").locator(".katex")).to_have_count(2)
    await must_have_no_barriers(phone)
    await phone.get_by_role("button", name="Ask all").tap()
    await expect(phone.get_by_role("dialog", name="Write a message")).to_be_visible()
    await must_have_no_barriers(phone)


async def test_a_phones_drawer(phone: Page) -> None:
    await phone.get_by_role("button", name="Conversations").tap()
    await expect(phone.get_by_role("dialog", name="Conversations")).to_be_visible()
    await must_have_no_barriers(phone)
