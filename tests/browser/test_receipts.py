"""The receipt of a reply shows its sources, and segments can be removed for a retry."""

from __future__ import annotations

import re

from playwright.async_api import Page, expect

from tests.browser.conversation_page import ConversationPage
from tests.upstream.scripted import Upstream
from tests.world import Person

NOTES = b"# Refresh\n\nA refresh token is used once.\nThe old token is marked revoked.\n"


async def test_the_receipt_shows_the_passage_of_an_uploaded_file(page: Page, upstream: Upstream) -> None:
    conversation = ConversationPage(page)
    upstream.says("It is marked revoked.")
    await page.get_by_role("link", name="Project", exact=True).click()
    async with page.expect_file_chooser() as choosing:
        await page.get_by_role("button", name="Upload", exact=True).click()
    chooser = await choosing.value
    await chooser.set_files([{"name": "auth.md", "mimeType": "text/markdown", "buffer": NOTES}])
    row = page.get_by_role("row").filter(has_text="auth.md")
    await expect(row).to_contain_text(re.compile(r"\d passages?"))

    await page.get_by_role("link", name="New conversation").click()
    await conversation.seat("Alpha")
    await conversation.ask("How is a refresh token revoked?")
    await expect(conversation.reply("Alpha", "finished")).to_be_visible()
    await conversation.reply("Alpha").focus()
    await page.keyboard.press("r")
    receipt = page.get_by_role("complementary", name="What was sent")
    passage = receipt.get_by_role("button", name=re.compile(r"^auth\.md:1-\d"))
    await passage.click()
    await expect(receipt.get_by_role("group", name=re.compile("^Text of auth"))).to_contain_text("used once")
    await page.keyboard.press("Escape")
    await expect(receipt).to_be_hidden()


async def test_a_segment_can_be_removed_and_the_reply_retried(page: Page, upstream: Upstream) -> None:
    conversation = ConversationPage(page)
    upstream.says("Twice.")
    await conversation.seat("Alpha")
    await conversation.ask("First?")
    await expect(conversation.reply("Alpha", "finished")).to_be_visible()
    await conversation.ask("Second?")
    await expect(conversation.reply("Alpha", "finished")).to_have_count(2)
    await conversation.reply("Alpha").last.focus()
    await page.keyboard.press("r")
    receipt = page.get_by_role("complementary", name="What was sent")
    segment_button = receipt.get_by_role("button", name="Round 1, Alpha")
    await segment_button.click()
    await receipt.get_by_role("button", name="Remove this and ask again").click()
    await expect(segment_button).to_be_hidden()
    await expect(conversation.reply("Alpha").last).to_contain_text("2 of 2")


async def test_removed_segments_stay_removed_in_later_retries(
    page: Page, sam: Person, upstream: Upstream
) -> None:
    """Removes a file marked always, an attachment and the reply of another voice."""
    conversation = ConversationPage(page)
    rules = await sam.upload("rules.md", b"Speak like a pirate.")
    url = f"/api/projects/{sam.home}/files/{rules['id']}/metadata"
    assert (await sam.client.patch(url, json={"always_in_context": True})).status_code == 200
    notes = await sam.attach("notes.md", b"The canary sings.")
    upstream.says("A bird.", model="alpha")
    upstream.says("A parrot.", model="beta")
    [first, _] = await sam.ask_and_wait("What sings?", "alpha", "beta", attachments=[notes["id"]])
    await sam.ask_and_wait("And now?", "alpha", conversation_id=first["conversation_id"])
    await page.goto(f"/c/{first['conversation_id']}")
    await conversation.reply("Alpha").last.focus()
    await page.keyboard.press("r")
    receipt = page.get_by_role("complementary", name="What was sent")
    left_out = receipt.get_by_role("list", name="Left out")
    for layer, piece, word in (
        ("Always sent", "rules.md", "pirate"),
        ("Earlier rounds", "Round 1, notes.md", "canary"),
        ("Earlier rounds", "Round 1, Beta", "parrot"),
    ):
        assert word in str(upstream.last.body)
        segment_button = receipt.get_by_role("button", name=piece)
        if await receipt.get_by_role("button", name=layer).get_attribute("aria-expanded") == "false":
            await receipt.get_by_role("button", name=layer).click()
        await segment_button.click()
        await receipt.get_by_role("button", name="Remove this and ask again").click()
        await expect(left_out).to_contain_text(piece.removeprefix("Round 1, "))
        await expect(segment_button).to_have_count(0)
    request_body = str(upstream.last.body)
    assert [
        removed_word for removed_word in ("pirate", "canary", "parrot") if removed_word in request_body
    ] == []


async def test_removing_a_segment_of_an_earlier_round_opens_a_branch(
    page: Page, sam: Person, upstream: Upstream
) -> None:
    conversation = ConversationPage(page)
    upstream.says("A bird.")
    notes = await sam.attach("notes.md", b"The canary sings.")
    [first] = await sam.ask_and_wait("What sings?", "alpha", attachments=[notes["id"]])
    await sam.ask_and_wait("And now?", "alpha", conversation_id=first["conversation_id"])
    await page.goto(f"/c/{first['conversation_id']}")
    await expect(conversation.reply("Alpha")).to_have_count(2)
    await conversation.reply("Alpha").first.focus()
    await page.keyboard.press("r")
    receipt = page.get_by_role("complementary", name="What was sent")
    await expect(receipt).to_contain_text("Round 1")
    await receipt.get_by_role("button", name="notes.md").click()
    await receipt.get_by_role("button", name="Remove this and ask again").click()
    await expect(page).not_to_have_url(re.compile(first["conversation_id"]))
    await expect(conversation.reply("Alpha", "finished")).to_have_count(1)
    assert "canary" not in str(upstream.last.body)
    await conversation.reply("Alpha").focus()
    await page.keyboard.press("r")
    await expect(receipt.get_by_role("list", name="Left out")).to_contain_text("notes.md")


async def test_the_composer_names_the_attachments_that_a_model_will_not_get(
    page: Page, sam: Person, upstream: Upstream
) -> None:
    conversation = ConversationPage(page)
    await conversation.seat("Alpha")
    async with page.expect_file_chooser() as choosing:
        await page.get_by_role("button", name="Attach files").click()
        await page.get_by_role("menuitem", name="Add to this message").click()
    long = {"name": "long.txt", "mimeType": "text/plain", "buffer": b"a long word " * 20_000}
    await (await choosing.value).set_files([long])
    await conversation.field.fill("What is it about?")
    await expect(page.get_by_text("Alpha is not shown long.txt: over the budget.")).to_be_visible()
