"""Everything works by keyboard, with a visible focus ring."""

from __future__ import annotations

import re

import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.conversation_page import ConversationPage
from tests.browser.windows import Windows
from tests.upstream.scripted import Upstream, says
from tests.world import Person


@pytest_asyncio.fixture(loop_scope="session")
async def conversation_path(sam: Person, upstream: Upstream) -> str:
    """The path of a conversation with three rounds and two voices."""
    upstream.plays(says("One."), says("Two."), says("Three."), model="alpha")
    upstream.plays(says("Uno."), says("Dos."), says("Tres."), model="beta")
    conversation_id = ""
    for number in ("first", "second", "third"):
        more = {"conversation_id": conversation_id} if conversation_id else {}
        [reply, _] = await sam.ask_and_wait(f"The {number} question", "alpha", "beta", **more)
        conversation_id = reply["conversation_id"]
    return f"/c/{conversation_id}"


@pytest_asyncio.fixture(loop_scope="session")
async def page(windows: Windows, sam: Person, conversation_path: str) -> Page:
    page = await windows.open(sam, conversation_path, permissions=["clipboard-read", "clipboard-write"])
    await expect(ConversationPage(page).rounds).to_have_count(3)
    await page.locator("body").focus()
    return page


async def test_v_changes_the_layout_which_survives_a_reload(page: Page) -> None:
    conversation = ConversationPage(page)
    last = conversation.rounds.last
    layout = page.get_by_role("radiogroup", name="Layout")
    await expect(layout.get_by_role("radio", name="Columns")).to_be_checked()
    await expect(last.get_by_role("article")).to_have_count(2)

    await page.keyboard.press("v")
    await expect(layout.get_by_role("radio", name="Focus")).to_be_checked()
    await expect(last.get_by_role("article", name="Alpha, alpha, finished")).to_be_visible()
    await last.get_by_role("button", name="Open Beta, beta, finished").click()
    await expect(last.get_by_role("article", name="Beta, beta, finished")).to_contain_text("Tres.")
    await expect(last.get_by_role("article")).to_have_count(1)

    await page.keyboard.press("v")
    await expect(layout.get_by_role("radio", name="Stack")).to_be_checked()
    upper = await last.get_by_role("article", name=re.compile("^Alpha")).bounding_box()
    lower = await last.get_by_role("article", name=re.compile("^Beta")).bounding_box()
    assert upper
    assert lower
    assert upper["y"] + upper["height"] < lower["y"]

    await page.reload()
    await expect(layout.get_by_role("radio", name="Stack")).to_be_checked()
    await page.keyboard.press("v")
    await expect(layout.get_by_role("radio", name="Columns")).to_be_checked()


async def test_an_open_receipt_switches_to_the_focus_layout(page: Page) -> None:
    last = ConversationPage(page).rounds.last
    layout = page.get_by_role("radiogroup", name="Layout")
    await last.get_by_role("article", name=re.compile("^Beta")).focus()
    await page.keyboard.press("r")
    await expect(layout.get_by_role("radio", name="Focus")).to_be_checked()
    await expect(last.get_by_role("article")).to_have_accessible_name(re.compile("^Beta"))
    await expect(last.get_by_role("article")).to_be_focused()
    await layout.get_by_role("radio", name="Columns").click()
    await expect(last.get_by_role("article")).to_have_count(2)
    await layout.get_by_role("radio", name="Stack").click()
    await expect(layout.get_by_role("radio", name="Stack")).to_be_checked()


async def test_keys_move_between_rounds_and_voices(page: Page) -> None:
    conversation = ConversationPage(page)
    await page.keyboard.press("2")
    await expect(
        conversation.rounds.nth(2).get_by_role("article", name="Beta, beta, finished")
    ).to_be_focused()
    await page.keyboard.press("k")
    await expect(
        conversation.rounds.nth(1).get_by_role("article", name="Alpha, alpha, finished")
    ).to_be_focused()
    await page.keyboard.press("ArrowRight")
    await expect(
        conversation.rounds.nth(1).get_by_role("article", name="Beta, beta, finished")
    ).to_be_focused()
    await page.keyboard.press("c")
    await expect(page.get_by_role("status").filter(has_text="Copied")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == "Dos."
    await page.keyboard.press("j")
    await expect(
        conversation.rounds.nth(2).get_by_role("article", name="Beta, beta, finished")
    ).to_be_focused()


async def test_enter_replies_to_a_message_and_escape_leaves_the_field(page: Page) -> None:
    conversation = ConversationPage(page)
    await page.keyboard.press("1")
    await expect(conversation.rounds.last.get_by_role("article", name=re.compile("^Alpha"))).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(conversation.field).to_be_focused()
    form = page.get_by_role("form", name="Write a message")
    await expect(form).to_contain_text("Three.")
    await page.keyboard.press("Escape")
    await expect(form).not_to_contain_text("Three.")
    await page.keyboard.press("Escape")
    await expect(conversation.field).not_to_be_focused()
    await page.keyboard.press("w")
    await expect(conversation.field).to_be_focused()
    await page.keyboard.type("nvt[?")
    await expect(conversation.field).to_have_value("nvt[?")


async def test_r_opens_the_receipt(page: Page) -> None:
    await page.keyboard.press("2")
    await page.keyboard.press("r")
    receipt = page.get_by_role("complementary", name="What was sent")
    await expect(receipt.get_by_role("table", name="What the model received")).to_be_visible()
    await page.keyboard.press("]")
    await expect(receipt).to_be_hidden()


async def test_keys_open_the_sidebar_the_shortcuts_and_a_new_conversation(page: Page) -> None:
    conversation = ConversationPage(page)
    await page.keyboard.press("[")
    await expect(page.get_by_role("button", name="Show sidebar")).to_be_visible()
    await expect(conversation.sidebar_link("The first question")).to_be_hidden()
    await page.keyboard.press("[")
    await expect(conversation.sidebar_link("The first question")).to_be_visible()

    await page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="All shortcuts")
    await expect(sheet).to_contain_text("New conversation")
    await page.keyboard.press("Escape")
    await expect(sheet).to_be_hidden()

    await page.keyboard.press("n")
    await expect(page).to_have_url(re.compile("/new$"))
    await expect(conversation.field).to_be_focused()


async def test_the_command_palette_finds_conversations_and_commands(
    page: Page, conversation_path: str
) -> None:
    await page.goto("/new")
    await expect(ConversationPage(page).field).to_be_focused()
    await page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Search and commands")
    await expect(palette.get_by_role("combobox")).to_be_focused()
    await page.keyboard.type("first que")
    await expect(palette.get_by_role("option", selected=True)).to_contain_text("The first question")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(f"{conversation_path}$"))
    await expect(palette).to_be_hidden()

    await page.keyboard.press("Control+k")
    await page.keyboard.type(">layout")
    await expect(palette.get_by_role("option")).to_have_text([re.compile("Change layout")])
    await page.keyboard.press("ControlOrMeta+a")
    await page.keyboard.type(">brain")
    await expect(palette.get_by_role("option")).to_have_text([re.compile("Switch to Brain trust")])
    await page.keyboard.press("Enter")
    await expect(palette).to_be_hidden()
    await expect(page.get_by_role("button", name=re.compile("^Mode"))).to_contain_text("Brain trust")


FOCUS_RING = """
    () => {
        const seen = (element) => {
            const { outlineStyle, outlineWidth, boxShadow, borderColor } = getComputedStyle(element);
            return outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2 || boxShadow !== 'none';
        };
        const here = document.activeElement;
        const name = here.ariaLabel ?? here.textContent.trim().slice(0, 40);
        // A field wears its ring on the frame around it.
        const frame = here.matches('input, textarea') ? here.closest('form, .field') : null;
        return [name || here.tagName, seen(here) || frame !== null && seen(frame)];
    }
"""


async def test_tab_moves_from_the_skip_link_to_the_composer_with_a_visible_focus_ring(page: Page) -> None:
    conversation = ConversationPage(page)
    stops: list[tuple[str, bool]] = []
    for _ in range(160):
        await page.keyboard.press("Tab")
        stops.append(tuple(await page.evaluate(FOCUS_RING)))
        if await conversation.field.evaluate("element => element === document.activeElement"):
            break
    names = [name for name, _ in stops]
    assert names[0] == "Skip to content"
    order = [
        "Hide sidebar",
        "The first question",
        "Columns",
        "Alpha, alpha, finished",
        "Beta, beta, finished",
    ]
    assert [names.index(name) for name in order] == sorted(names.index(name) for name in order), names
    assert names[-1] == "Message"
    assert [name for name, has_ring in stops if not has_ring] == []


async def test_the_skip_link_moves_the_focus_to_the_main_content(page: Page) -> None:
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("main")).to_be_focused()
