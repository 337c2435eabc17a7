"""Branches in the interface: edit, navigate, map, compare, summarise, delete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from tertulia.app import new_id
from tests.browser.conversation_page import ConversationPage
from tests.browser.test_accessibility import must_be_accessible
from tests.browser.windows import PHONE, Windows
from tests.upstream.scripted import Upstream, says
from tests.world import Person


@pytest_asyncio.fixture(loop_scope="session")
async def conversation_id(sam: Person, upstream: Upstream) -> str:
    """The id of a conversation with two rounds and two voices."""
    upstream.plays(says("Fifty loaves."), says("Rye keeps longer."), model="alpha")
    upstream.plays(says("Sixty loaves."), says("Wheat sells better."), model="beta")
    replies = await sam.ask_and_wait("How many loaves a day?", "alpha", "beta")
    conversation_id: str = replies[0]["conversation_id"]
    await sam.ask_and_wait("Rye or wheat on Mondays?", "alpha", "beta", conversation_id=conversation_id)
    return conversation_id


async def create_branch(sam: Person, upstream: Upstream, conversation_id: str) -> str:
    """Creates a branch with an edited second question and returns its id."""
    upstream.says("Spelt, then.", model="alpha")
    upstream.says("Bake both.", model="beta")
    edit = {"id": new_id(), "text": "Rye or spelt on Mondays?", "voices": [{"model": "voices:alpha"}]}
    opened = await sam.post(f"/api/conversations/{conversation_id}/rounds/2/edit", edit, 202)
    await sam.wait_for_end(opened["turn"]["id"])
    branch_id: str = opened["conversation"]["id"]
    await sam.put(f"/api/conversations/{branch_id}/title", {"title": "Only spelt"})
    return branch_id


def round_(page: Page, number: int) -> Locator:
    """The element of a round."""
    return page.get_by_role("feed").locator(f"[aria-posinset='{number}']")


async def test_editing_a_question_opens_a_branch_with_arrows_between_the_versions(
    windows: Windows, sam: Person, conversation_id: str, upstream: Upstream
) -> None:
    page = await windows.open(sam, f"/c/{conversation_id}")
    conversation, second = ConversationPage(page), round_(page, 2)
    await expect(second).to_contain_text("Wheat sells better.")
    upstream.says("Spelt is dear.", model="alpha")
    upstream.says("Spelt is fine.", model="beta")
    await second.get_by_role("heading", level=2).hover()
    await second.get_by_role("button", name="Edit").click()
    field = second.get_by_role("textbox", name="The question")
    await expect(field).to_be_focused()
    await field.fill("Rye or spelt on Mondays?")
    await field.press("Enter")

    await page.wait_for_url(lambda url: conversation_id not in url)
    await expect(second).to_contain_text("Spelt is dear.")
    await expect(round_(page, 1)).to_contain_text("Sixty loaves.")
    await expect(round_(page, 1).get_by_role("group", name="Versions")).to_have_count(0)
    versions = second.get_by_role("group", name="Versions of this question")
    await expect(versions).to_contain_text("2 of 2")
    await expect(conversation.field).to_be_visible()

    await versions.get_by_role("button", name="Earlier version").press("Enter")
    await page.wait_for_url(lambda url: conversation_id in url)
    await expect(second).to_contain_text("Wheat sells better.")
    await expect(versions).to_contain_text("1 of 2")
    await expect(versions.get_by_role("button", name="Later version")).to_be_focused()


async def test_arrow_up_in_an_empty_field_edits_the_last_question(
    windows: Windows, sam: Person, conversation_id: str
) -> None:
    page = await windows.open(sam, f"/c/{conversation_id}")
    conversation = ConversationPage(page)
    await expect(round_(page, 2)).to_contain_text("Wheat sells better.")
    await conversation.field.press("ArrowUp")
    field = page.get_by_role("textbox", name="The question")
    await expect(field).to_have_value("Rye or wheat on Mondays?")
    await field.press("Escape")
    await expect(field).to_have_count(0)
    await expect(conversation.field).to_be_focused()
    await expect(conversation.question("Rye or wheat on Mondays?")).to_be_visible()


async def test_a_branch_from_a_reply_continues_without_the_other_replies(
    windows: Windows, sam: Person, conversation_id: str, upstream: Upstream
) -> None:
    page = await windows.open(sam, f"/c/{conversation_id}")
    conversation = ConversationPage(page)
    await round_(page, 2).get_by_role("article", name=re.compile("^Beta")).focus()
    await page.keyboard.press("b")
    await page.wait_for_url(lambda url: conversation_id not in url)
    await expect(round_(page, 2)).to_contain_text("Wheat sells better.")
    await expect(round_(page, 2)).not_to_contain_text("Rye keeps longer.")
    pill = page.get_by_role("button", name="Branch: Branch at round 2")
    await expect(pill).to_be_visible()

    upstream.says("Then bake wheat.", model="alpha")
    upstream.says("As I said.", model="beta")
    await conversation.ask("So?")
    await expect(round_(page, 3)).to_contain_text("Then bake wheat.")
    await expect(conversation.sidebar_link("So?")).to_be_visible()
    await page.get_by_role("button", name="Branch: So?").click()
    await page.get_by_role("menuitem", name=re.compile("^Main conversation")).click()
    await page.wait_for_url(lambda url: conversation_id in url)
    await expect(round_(page, 2)).to_contain_text("Rye keeps longer.")
    await expect(round_(page, 3)).to_have_count(0)


async def test_regenerating_a_reply_of_an_earlier_round_opens_a_branch(
    windows: Windows, sam: Person, conversation_id: str, upstream: Upstream
) -> None:
    page = await windows.open(sam, f"/c/{conversation_id}")
    card = round_(page, 1).get_by_role("article", name=re.compile("^Alpha"))
    upstream.says("Fifty.", model="alpha")
    await card.hover()
    await card.get_by_role("button", name="Regenerate").click()
    await card.get_by_role("menuitem", name="More concise").click()
    await page.wait_for_url(lambda url: conversation_id not in url)
    await expect(card.locator(".words")).to_have_text("Fifty.")
    await expect(card.get_by_role("group", name="Versions")).to_contain_text("2 of 2")
    await expect(round_(page, 2)).to_have_count(0)

    await page.goto(f"/c/{conversation_id}")
    versions = card.get_by_role("group", name="Versions")
    await expect(versions).to_contain_text("1 of 2")
    await versions.get_by_role("button", name="Later version").click()
    await page.wait_for_url(lambda url: conversation_id not in url)
    await expect(card.locator(".words")).to_have_text("Fifty.")


async def test_the_branch_map_shows_and_opens_every_round(
    windows: Windows, sam: Person, conversation_id: str, upstream: Upstream, tmp_path: Path
) -> None:
    branch = await create_branch(sam, upstream, conversation_id)
    page = await windows.open(sam, f"/c/{branch}")
    await page.get_by_role("button", name="Branch: Only spelt").click()
    await page.get_by_role("menuitem", name="Branch map").click()
    nodes = page.get_by_role("region", name="Branch map").get_by_role("button")
    await expect(nodes).to_have_count(3)
    current = page.get_by_role("button", name="Round 2 of Only spelt: Rye or spelt on Mondays?")
    await expect(current).to_have_attribute("aria-current", "location")
    await page.screenshot(path=tmp_path / "map.png")

    await current.focus()
    await page.keyboard.press("ArrowLeft")
    await expect(nodes.and_(page.get_by_label("Round 1 of Main conversation"))).to_be_focused()
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("Enter")
    card = page.get_by_role("dialog", name="Round 2 of Main conversation")
    await expect(card).to_contain_text("Wheat sells better.")
    await must_be_accessible(page)
    await page.screenshot(path=tmp_path / "map-evening.png")
    await page.emulate_media(color_scheme="light")
    await card.get_by_role("link", name="Open").click()
    await page.wait_for_url(lambda url: conversation_id in url)
    await expect(round_(page, 2)).to_contain_text("Wheat sells better.")


async def test_the_comparison_shows_two_branches_with_marked_differences(
    windows: Windows, sam: Person, conversation_id: str, upstream: Upstream, tmp_path: Path
) -> None:
    branch = await create_branch(sam, upstream, conversation_id)
    upstream.says("Yes.", model="alpha")
    await sam.ask_and_wait("Really?", "alpha", conversation_id=branch)
    page = await windows.open(sam, f"/c/{conversation_id}/compare/{branch}")
    second = page.get_by_role("region", name="Round 2")
    await expect(second.locator("ins")).to_have_text(["wheat", "spelt"])
    await expect(second).to_contain_text("Rye keeps longer.")
    await expect(second).to_contain_text("Spelt, then.")
    await expect(page.get_by_role("region", name="Round 3")).to_contain_text(
        "Main conversation: no further rounds"
    )
    await must_be_accessible(page)
    await page.screenshot(path=tmp_path / "compare-evening.png")
    await page.emulate_media(color_scheme="light")
    await page.screenshot(path=tmp_path / "compare.png")

    await page.get_by_role("button", name="Round 1 is the same in both").click()
    await expect(page.get_by_role("link", name="Round 1 How many loaves a day?")).to_be_visible()
    await page.get_by_role("button", name="Swap sides").click()
    await page.wait_for_url(f"**/c/{branch}/compare/{conversation_id}")
    await expect(second.locator("ins")).to_have_text(["spelt", "wheat"])
    await page.get_by_role("switch", name="Scroll together").click()
    await expect(page.get_by_role("region", name="Only spelt")).to_contain_text("Spelt, then.")
    await page.get_by_role("switch", name="Scroll together").click()
    await page.get_by_role("link", name="Continue Main conversation").click()
    await page.wait_for_url(f"**/c/{conversation_id}")


async def test_deleting_a_branch_first_lists_what_will_be_deleted(
    windows: Windows, sam: Person, conversation_id: str, upstream: Upstream
) -> None:
    branch = await create_branch(sam, upstream, conversation_id)
    page = await windows.open(sam, f"/c/{branch}")
    requested_urls: list[str] = []
    page.on("request", lambda request: requested_urls.append(request.url))
    conversation = ConversationPage(page)
    await expect(conversation.sidebar_link("Only spelt")).to_be_visible()
    await page.get_by_role("button", name="Branch: Only spelt").click()
    await page.get_by_role("menuitem", name="Delete branch").click()
    dialog = page.get_by_role("alertdialog", name="Delete “Only spelt”?")
    await expect(dialog).to_contain_text("1 question and 1 reply will be deleted for everyone.")
    assert len([url for url in requested_urls if url.endswith("/tree")]) <= 2, (
        "The tree is loaded only after it changed."
    )
    await expect(dialog).to_contain_text("The conversation it branched from stays.")
    await dialog.get_by_role("button", name="Delete branch").click()
    await page.wait_for_url(lambda url: conversation_id in url)
    await expect(conversation.sidebar_link("Only spelt")).to_have_count(0)
    await expect(round_(page, 2)).to_contain_text("Wheat sells better.")


async def test_a_reply_and_a_round_can_be_deleted(
    windows: Windows, sam: Person, conversation_id: str
) -> None:
    page = await windows.open(sam, f"/c/{conversation_id}")
    card = round_(page, 2).get_by_role("article", name=re.compile("^Beta"))
    await card.hover()
    await card.get_by_role("button", name="More for Beta").click()
    await card.get_by_role("menuitem", name="Delete this reply").click()
    await expect(page.get_by_role("alertdialog")).to_contain_text("This reply will be deleted for everyone")
    await page.get_by_role("button", name="Delete reply").click()
    await expect(card).to_have_count(0)
    await expect(round_(page, 2)).to_contain_text("Rye keeps longer.")

    await round_(page, 1).get_by_role("heading", level=2).hover()
    await round_(page, 1).get_by_role("button", name="More for question 1").click()
    await round_(page, 1).get_by_role("menuitem", name="Delete this round").click()
    await expect(page.get_by_role("alertdialog")).to_contain_text(
        "The question and 2 replies will be deleted for everyone."
    )
    await page.get_by_role("button", name="Delete round").click()
    await expect(round_(page, 1)).to_have_count(0)
    await expect(round_(page, 2)).to_contain_text("Rye keeps longer.")


async def test_a_branch_summary_is_added_with_a_link_to_the_branch(
    windows: Windows, sam: Person, conversation_id: str, upstream: Upstream
) -> None:
    branch = await create_branch(sam, upstream, conversation_id)
    page = await windows.open(sam, f"/c/{branch}")
    await expect(round_(page, 2)).to_contain_text("Spelt, then.")
    upstream.says("In short: spelt.", model="beta")
    await page.get_by_role("button", name="Branch: Only spelt").click()
    await page.get_by_role("menuitem", name="Add summary").click()
    dialog = page.get_by_role("dialog", name=re.compile("^Summary of branch"))
    await dialog.get_by_role("button", name=re.compile("^Another model: ")).click()
    await page.get_by_role("dialog", name="Another model").get_by_role("combobox").fill("beta")
    await page.keyboard.press("Enter")
    await dialog.get_by_role("button", name="Add summary").click()
    await page.wait_for_url(lambda url: conversation_id in url)
    await expect(round_(page, 3)).to_contain_text("Summary of branch")
    await expect(round_(page, 3)).to_contain_text("In short: spelt.")
    await round_(page, 3).get_by_role("link", name="Only spelt").click()
    await page.wait_for_url(lambda url: branch in url)


async def test_branches_can_be_collapsed_in_the_sidebar(
    windows: Windows, sam: Person, conversation_id: str, upstream: Upstream
) -> None:
    await create_branch(sam, upstream, conversation_id)
    page = await windows.open(sam, f"/c/{conversation_id}")
    conversation = ConversationPage(page)
    await expect(conversation.sidebar_link("Only spelt")).to_be_visible()
    fold = conversation.sidebar.get_by_role("button", name=re.compile("^Hide 1 branch"))
    await fold.click()
    await expect(conversation.sidebar_link("Only spelt")).to_have_count(0)
    await page.reload()
    await expect(conversation.sidebar_link("How many loaves a day?")).to_be_visible()
    await expect(conversation.sidebar_link("Only spelt")).to_have_count(0)
    await conversation.sidebar_link("How many loaves a day?").press("ArrowRight")
    await expect(conversation.sidebar_link("Only spelt")).to_be_visible()


async def test_a_phone_shows_the_branch_map_as_a_list(
    windows: Windows, sam: Person, conversation_id: str, upstream: Upstream, tmp_path: Path
) -> None:
    branch = await create_branch(sam, upstream, conversation_id)
    page = await windows.open(sam, f"/c/{branch}", PHONE, is_mobile=True, has_touch=True)
    await expect(round_(page, 2)).to_contain_text("Spelt, then.")
    await page.screenshot(path=tmp_path / "phone-branch.png")
    await page.get_by_role("button", name="Branch: Only spelt").tap()
    await page.get_by_role("menuitem", name="Branch map").tap()
    log = page.get_by_role("dialog", name="Branch map")
    await expect(log.get_by_role("listitem")).to_have_count(3)
    await page.screenshot(path=tmp_path / "phone-log.png")
    await must_be_accessible(page)
    await page.emulate_media(color_scheme="light")
    await log.get_by_role("link", name="Rye or wheat on Mondays?").tap()
    await page.wait_for_url(lambda url: conversation_id in url)
    await page.goto(f"/c/{conversation_id}/compare/{branch}")
    await expect(page.get_by_role("region", name="Round 2").locator("ins")).to_have_count(2)
    await page.screenshot(path=tmp_path / "phone-compare.png")
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


SELECT_TEXT = """
    (words) => {
        const walker = document.createTreeWalker(document.querySelector('[role=feed]'), NodeFilter.SHOW_TEXT);
        for (let node = walker.nextNode(); node; node = walker.nextNode()) {
            const at = node.data.indexOf(words);
            if (at < 0) continue;
            const range = document.createRange();
            range.setStart(node, at);
            range.setEnd(node, at + words.length);
            getSelection().removeAllRanges();
            node.parentElement.scrollIntoView({ block: "center" });
            getSelection().addRange(range);
            return;
        }
    }
"""


async def test_a_question_can_quote_several_replies(
    windows: Windows, sam: Person, conversation_id: str, upstream: Upstream
) -> None:
    page = await windows.open(sam, f"/c/{conversation_id}")
    conversation = ConversationPage(page)
    await expect(round_(page, 2)).to_contain_text("Wheat sells better.")
    await page.evaluate(SELECT_TEXT, "keeps longer")
    await page.get_by_role("button", name="Quote").click()
    await expect(conversation.field).to_be_focused()
    await page.evaluate(SELECT_TEXT, "Sixty loaves")
    await page.evaluate("document.activeElement.blur()")
    await page.keyboard.press("q")
    quotes = page.get_by_role("list", name="Quotes").get_by_role("listitem")
    await expect(quotes).to_have_text([re.compile("Alpha.*keeps longer"), re.compile("Beta.*Sixty loaves")])

    upstream.says("Both hold.", model="alpha")
    upstream.says("Mine does.", model="beta")
    await conversation.ask("Do both hold?")
    await expect(round_(page, 3)).to_contain_text("Both hold.")
    await expect(round_(page, 3).get_by_role("blockquote")).to_have_count(2)
    await expect(round_(page, 3).get_by_role("blockquote").first).to_contain_text("Alpha, round 2")
    await expect(quotes).to_have_count(0)
    request_body = upstream.last.body
    assert "keeps longer" in str(request_body)


async def test_asking_another_voice_about_a_reply_keeps_the_table(
    windows: Windows, sam: Person, conversation_id: str, upstream: Upstream
) -> None:
    page = await windows.open(sam, f"/c/{conversation_id}")
    conversation = ConversationPage(page)
    card = round_(page, 1).get_by_role("article", name=re.compile("^Beta"))
    await card.hover()
    await card.get_by_role("button", name="More for Beta").click()
    await card.get_by_role("menuitem", name="Ask another voice about this").click()
    picker = page.get_by_role("dialog", name="Ask another voice about this")
    await picker.get_by_role("combobox").fill("gamma")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("asks Gamma alone")).to_be_visible()
    upstream.says("Sixty is too many.", model="gamma")
    await conversation.ask("Is that right?")
    third = round_(page, 3)
    await expect(third).to_contain_text("Sixty is too many.")
    await expect(third.get_by_role("button", name=re.compile("Sixty loaves"))).to_be_visible()
    await expect(third.get_by_role("article")).to_have_count(1)
    await conversation.field.click()
    await expect(conversation.table).to_contain_text("Alpha")
    await expect(conversation.table).not_to_contain_text("Gamma")


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_a_branch_and_its_menus_are_accessible(
    windows: Windows, sam: Person, conversation_id: str, upstream: Upstream, tmp_path: Path, theme: str
) -> None:
    branch = await create_branch(sam, upstream, conversation_id)
    page = await windows.open(sam, f"/c/{branch}", color_scheme=theme)
    await expect(round_(page, 2)).to_contain_text("Spelt, then.")
    await round_(page, 2).get_by_role("article").hover()
    await page.screenshot(path=tmp_path / f"branch-{theme}.png")
    await page.get_by_role("button", name="Branch: Only spelt").click()
    await expect(page.get_by_role("menuitem", name="Branch map")).to_be_visible()
    await page.screenshot(path=tmp_path / f"pill-{theme}.png")
    await page.keyboard.press("Escape")
    await ConversationPage(page).field.press("ArrowUp")
    await expect(page.get_by_role("textbox", name="The question")).to_be_visible()
    await page.screenshot(path=tmp_path / f"edit-{theme}.png")
    await must_be_accessible(page)


async def test_the_menus_open_the_map_the_comparison_and_a_replay(
    windows: Windows, sam: Person, conversation_id: str, upstream: Upstream, tmp_path: Path
) -> None:
    page = await windows.open(sam, f"/c/{conversation_id}")
    await expect(round_(page, 2)).to_contain_text("Wheat sells better.")
    await page.get_by_role("button", name="More for this conversation").click()
    await expect(page.get_by_role("menuitem", name="Compare branches")).to_be_disabled()
    await page.screenshot(path=tmp_path / "more.png")
    await page.get_by_role("menuitem", name="Branch map").click()
    await page.wait_for_url(f"**/c/{conversation_id}/map")
    await page.go_back()

    await round_(page, 1).get_by_role("button", name="More for round 1").click()
    await expect(page.get_by_role("menuitem")).to_have_text(
        ["Ask for a summary", "Ask everything again with other models", "Branch map"]
    )
    await must_be_accessible(page)
    await page.screenshot(path=tmp_path / "round.png")
    await page.get_by_role("menuitem", name="Ask everything again with other models").click()
    dialog = page.get_by_role("dialog", name="Ask everything again with other models")
    await expect(dialog).to_be_visible()
    await dialog.get_by_role("button", name="Cancel").click()

    branch = await create_branch(sam, upstream, conversation_id)
    await round_(page, 1).get_by_role("button", name="More for round 1").click()
    await page.get_by_role("menuitem", name="Compare with another branch").click()
    await page.wait_for_url(f"**/c/{conversation_id}/compare/{branch}")
    await page.goto(f"/c/{branch}")
    await page.get_by_role("button", name="More for this conversation").click()
    await page.get_by_role("menuitem", name="Compare branches").click()
    await page.wait_for_url(f"**/c/{conversation_id}/compare/{branch}")


async def test_a_phone_shows_the_round_menu_at_the_question(
    windows: Windows, sam: Person, conversation_id: str, tmp_path: Path
) -> None:
    page = await windows.open(sam, f"/c/{conversation_id}", PHONE, is_mobile=True, has_touch=True)
    await expect(round_(page, 2)).to_contain_text("Rye keeps longer.")
    await page.get_by_role("button", name="More for question 2").tap()
    for label in ("Ask for a summary", "Ask everything again with other models", "Branch map"):
        await expect(page.get_by_role("menuitem", name=label)).to_be_visible()
    await page.screenshot(path=tmp_path / "question.png")
    await page.get_by_role("menuitem", name="Ask everything again with other models").tap()
    await expect(page.get_by_role("dialog", name="Ask everything again with other models")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="More for this conversation").tap()
    await page.screenshot(path=tmp_path / "more-phone.png")
    await page.get_by_role("menuitem", name="Branch map").tap()
    await expect(page.get_by_role("heading", name="Branch map").first).to_be_visible()
