"""axe finds no serious accessibility violation on any screen, in light or dark theme."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.browser.conversation_page import ConversationPage, reply_in_parts
from tests.browser.test_markdown import TEXT
from tests.browser.test_searching import create_pottery_conversation
from tests.browser.windows import PHONE, Windows
from tests.upstream.scripted import Cut, Say, Upstream, refuses
from tests.world import Person, World, endpoints, running

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"

RUN_AXE = """
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
def axe_script() -> str:
    return AXE.read_text()


async def must_be_accessible(page: Page) -> None:
    """Checks all rules in the light theme, and the colour contrast in the dark one."""
    await page.emulate_media(color_scheme="light", reduced_motion="reduce")
    await page.evaluate(axe_script())
    violations = await page.evaluate(RUN_AXE, None)
    await page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    violations += [f"dark: {violation}" for violation in await page.evaluate(RUN_AXE, ["color-contrast"])]
    assert not violations, "\n".join(violations)


async def test_the_first_visit_is_accessible(
    browser: Browser, windows: Windows, upstream: Upstream, tmp_path: Path
) -> None:
    async with running(tmp_path, {"TERTULIA_ENDPOINTS": endpoints(upstream)}) as empty_server:
        visitor = Windows(browser, empty_server.url)
        page = await visitor.open()
        await expect(page.get_by_role("heading", name="Create your account")).to_be_visible()
        await must_be_accessible(page)
        await page.get_by_label("Your name").fill("Sam")
        await page.get_by_label("Email").fill("sam@example.org")
        await page.get_by_label("Password", exact=True).fill("a long enough password")
        for heading in ("Connect your models", "Which models should answer?"):
            await page.get_by_role("button", name="Continue").click()
            await expect(page.get_by_role("heading", name=heading)).to_be_visible()
            await must_be_accessible(page)
        await visitor.close()


async def test_the_sign_in_page_is_accessible(windows: Windows, administrator: Person) -> None:
    page = await windows.open(None, "/sign-in")
    await page.get_by_label("Email").fill("nobody@example.org")
    await page.get_by_label("Password", exact=True).fill("not a password")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_label("Password", exact=True)).to_be_focused()
    await expect(page.get_by_text("do not match")).to_be_visible()
    await must_be_accessible(page)


async def test_a_new_conversation_is_accessible(page: Page) -> None:
    conversation = ConversationPage(page)
    await conversation.seat("Alpha", "Beta", "Gamma")
    await must_be_accessible(page)
    await page.get_by_role("button", name="Add a voice").click()
    await expect(page.get_by_role("listbox", name="Models and personas")).to_be_visible()
    await must_be_accessible(page)


async def test_a_finished_conversation_and_its_receipt_are_accessible(
    windows: Windows, sam: Person, upstream: Upstream
) -> None:
    upstream.says(TEXT, model="alpha", thinking="Let me see.")
    [reply, _] = await sam.ask_and_wait("Show me everything.", "alpha", "beta")
    page = await windows.open(sam, f"/c/{reply['conversation_id']}")
    conversation = ConversationPage(page)
    await conversation.reply("Alpha").get_by_role("button", name="Thought for").click()
    await expect(conversation.reply_text("Alpha").locator(".katex")).to_have_count(2)
    await expect(conversation.reply_text("Alpha").locator(".hljs-keyword").first).to_be_attached()
    await conversation.reply("Beta").hover()
    await must_be_accessible(page)
    await conversation.reply("Beta").get_by_role("button", name="What was sent").click()
    await expect(page.get_by_role("table", name="What the model received")).to_be_visible()
    await must_be_accessible(page)


async def test_running_and_stopped_replies_are_accessible(page: Page, upstream: Upstream) -> None:
    conversation = ConversationPage(page)
    upstream.plays(reply_in_parts("Some **words** and", asyncio.Event()), model="alpha")
    upstream.plays(reply_in_parts(asyncio.Event()), model="beta")
    upstream.plays(refuses(429, "slow down", retry_after="30"), model="gamma")
    await conversation.seat("Alpha", "Beta", "Gamma")
    await conversation.ask("Take your time.")
    await expect(conversation.reply_text("Alpha")).to_contain_text("words")
    await expect(conversation.reply("Gamma", "waiting for the provider")).to_be_visible()
    await must_be_accessible(page)
    await page.keyboard.press("Control+.")
    await expect(conversation.reply("Alpha", "stopped")).to_be_visible()
    await must_be_accessible(page)


async def test_failed_and_interrupted_replies_are_accessible(page: Page, upstream: Upstream) -> None:
    conversation = ConversationPage(page)
    upstream.plays(refuses(401, {"error": {"message": "no"}}), model="alpha")
    upstream.plays((Say("Half a thou"), Cut()), model="beta")
    await conversation.seat("Alpha", "Beta")
    await conversation.ask("Are you well?")
    await (
        conversation.reply("Alpha", "failed").get_by_role("button", name="Error message from voices").click()
    )
    await expect(conversation.reply("Beta", "interrupted")).to_be_visible()
    await must_be_accessible(page)


async def test_dialogs_and_menus_are_accessible(page: Page, sam: Person) -> None:
    await sam.ask_and_wait("What is a tertulia?", "alpha")
    conversation = ConversationPage(page)
    await expect(conversation.sidebar_link("What is a tertulia?")).to_be_visible()
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("option").first).to_be_visible()
    await must_be_accessible(page)
    await page.keyboard.press("Escape")
    await conversation.choose("What is a tertulia?", "Delete")
    await expect(page.get_by_role("alertdialog")).to_be_visible()
    await must_be_accessible(page)
    await page.keyboard.press("Escape")
    await conversation.sidebar.get_by_role("button", name="your account").click()
    await expect(page.get_by_role("menu")).to_be_visible()
    await must_be_accessible(page)


async def test_the_search_pages_are_accessible(
    windows: Windows, world: World, sam: Person, upstream: Upstream
) -> None:
    conversation_id = await create_pottery_conversation(world, sam, upstream)
    page = await windows.open(sam, "/search?q=bisque+firing")
    await expect(page.get_by_role("heading", name="Files")).to_be_visible()
    await page.keyboard.press("ArrowDown")
    await must_be_accessible(page)
    await page.get_by_role("button", name="When: Any time").click()
    await expect(page.get_by_role("dialog", name="When")).to_be_visible()
    await must_be_accessible(page)
    await page.keyboard.press("Escape")
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox").fill("bisque firing")
    await expect(page.get_by_role("group", name="In conversations")).to_be_visible()
    await must_be_accessible(page)
    await page.goto("/search?q=zanzibar")
    await expect(page.get_by_role("heading", name="No match for “zanzibar”")).to_be_visible()
    await must_be_accessible(page)
    await page.goto(f"/c/{conversation_id}")
    await ConversationPage(page).reply_text("Alpha").get_by_role("button", name="docs/kiln.md").click()
    await expect(page.locator("li.meant").first).to_be_in_viewport()
    await must_be_accessible(page)


@pytest.mark.parametrize("tab", ["Files", "Instructions and models"])
async def test_the_project_page_is_accessible(windows: Windows, sam: Person, tab: str) -> None:
    page = await windows.open(sam, f"/p/{sam.home}")
    await page.get_by_role("tab", name=tab).click()
    await page.wait_for_load_state("networkidle")
    await must_be_accessible(page)


@pytest.mark.parametrize("panel", ["models", "appearance", "keyboard", "sessions"])
async def test_the_settings_pages_are_accessible(windows: Windows, sam: Person, panel: str) -> None:
    page = await windows.open(sam, f"/settings/{panel}")
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    await page.wait_for_load_state("networkidle")
    await must_be_accessible(page)


@pytest_asyncio.fixture(loop_scope="session")
async def phone(windows: Windows, sam: Person, upstream: Upstream) -> AsyncIterator[Page]:
    upstream.says(TEXT, model="alpha", thinking="Let me see.")
    [reply, _] = await sam.ask_and_wait("Show me everything.", "alpha", "beta")
    page = await windows.open(sam, f"/c/{reply['conversation_id']}", PHONE, is_mobile=True, has_touch=True)
    await expect(page.get_by_role("tablist", name="Replies")).to_be_visible()
    yield page


async def test_a_conversation_on_a_phone_is_accessible(phone: Page) -> None:
    await expect(ConversationPage(phone).reply_text("Alpha").locator(".katex")).to_have_count(2)
    await must_be_accessible(phone)
    await phone.get_by_role("button", name="Ask all").tap()
    await expect(phone.get_by_role("dialog", name="Write a message")).to_be_visible()
    await must_be_accessible(phone)


async def test_the_drawer_of_a_phone_is_accessible(phone: Page) -> None:
    await phone.get_by_role("button", name="Conversations").tap()
    await expect(phone.get_by_role("dialog", name="Conversations")).to_be_visible()
    await must_be_accessible(phone)
