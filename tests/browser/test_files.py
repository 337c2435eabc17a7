"""A file is brought in, looked up for a question, and stands in the receipt of the reply."""

from __future__ import annotations

import re

from playwright.async_api import Page, expect

from tests.browser.room import Room
from tests.upstream.scripted import Upstream
from tests.world import Person

NOTES = b"# Refresh\n\nA refresh token is used once.\nThe old token is marked revoked.\n"


async def test_what_an_uploaded_file_says_stands_in_the_receipt(page: Page, upstream: Upstream) -> None:
    room = Room(page)
    upstream.says("It is marked revoked.")
    await page.get_by_role("link", name="Project", exact=True).click()
    async with page.expect_file_chooser() as choosing:
        await page.get_by_role("button", name="Upload", exact=True).click()
    chooser = await choosing.value
    await chooser.set_files([{"name": "auth.md", "mimeType": "text/markdown", "buffer": NOTES}])
    row = page.get_by_role("row").filter(has_text="auth.md")
    await expect(row).to_contain_text(re.compile(r"\d passages?"))

    await page.get_by_role("link", name="New conversation").click()
    await room.seat("Alpha")
    await room.ask("How is a refresh token revoked?")
    await expect(room.reply("Alpha", "finished")).to_be_visible()
    await room.reply("Alpha").focus()
    await page.keyboard.press("r")
    receipt = page.get_by_role("complementary", name="What was sent")
    passage = receipt.get_by_role("button", name=re.compile(r"^auth\.md:1-\d"))
    await passage.click()
    await expect(receipt.get_by_role("group", name=re.compile("^Text of auth"))).to_contain_text("used once")
    await page.keyboard.press("Escape")
    await expect(receipt).to_be_hidden()


async def test_a_reply_is_asked_again_without_a_passage(page: Page, upstream: Upstream) -> None:
    room = Room(page)
    upstream.says("Twice.")
    await room.seat("Alpha")
    await room.ask("First?")
    await expect(room.reply("Alpha", "finished")).to_be_visible()
    await room.ask("Second?")
    await expect(room.reply("Alpha", "finished")).to_have_count(2)
    await room.reply("Alpha").last.focus()
    await page.keyboard.press("r")
    receipt = page.get_by_role("complementary", name="What was sent")
    own = receipt.get_by_role("button", name="Round 1, Alpha")
    await own.click()
    await receipt.get_by_role("button", name="Remove this and ask again").click()
    await expect(own).to_be_hidden()
    await expect(room.reply("Alpha").last).to_contain_text("2 of 2")


async def test_what_was_taken_out_stays_out_when_more_is_taken_out(
    page: Page, sam: Person, upstream: Upstream
) -> None:
    """A file that is always included, what was brought along, and what another mind said."""
    room = Room(page)
    rules = await sam.upload("rules.md", b"Speak like a pirate.")
    where = f"/api/projects/{sam.home}/files/{rules['id']}/metadata"
    assert (await sam.client.patch(where, json={"always_in_context": True})).status_code == 200
    notes = await sam.attach("notes.md", b"The canary sings.")
    upstream.says("A bird.", model="alpha")
    upstream.says("A parrot.", model="beta")
    [first, _] = await sam.hear("What sings?", "alpha", "beta", attachments=[notes["id"]])
    await sam.hear("And now?", "alpha", conversation_id=first["conversation_id"])
    await page.goto(f"/c/{first['conversation_id']}")
    await room.reply("Alpha").last.focus()
    await page.keyboard.press("r")
    receipt = page.get_by_role("complementary", name="What was sent")
    left_out = receipt.get_by_role("list", name="Left out")
    for layer, piece, gone in (
        ("Always sent", "rules.md", "pirate"),
        ("Earlier rounds", "Round 1, notes.md", "canary"),
        ("Earlier rounds", "Round 1, Beta", "parrot"),
    ):
        assert gone in str(upstream.last.body)
        named = receipt.get_by_role("button", name=piece)
        if await receipt.get_by_role("button", name=layer).get_attribute("aria-expanded") == "false":
            await receipt.get_by_role("button", name=layer).click()
        await named.click()
        await receipt.get_by_role("button", name="Remove this and ask again").click()
        await expect(left_out).to_contain_text(piece.removeprefix("Round 1, "))
        await expect(named).to_have_count(0)
    sent = str(upstream.last.body)
    assert [word for word in ("pirate", "canary", "parrot") if word in sent] == []


async def test_a_reply_of_an_earlier_round_is_asked_again_in_a_branch_and_one_goes_there(
    page: Page, sam: Person, upstream: Upstream
) -> None:
    room = Room(page)
    upstream.says("A bird.")
    notes = await sam.attach("notes.md", b"The canary sings.")
    [first] = await sam.hear("What sings?", "alpha", attachments=[notes["id"]])
    await sam.hear("And now?", "alpha", conversation_id=first["conversation_id"])
    await page.goto(f"/c/{first['conversation_id']}")
    await expect(room.reply("Alpha")).to_have_count(2)
    await room.reply("Alpha").first.focus()
    await page.keyboard.press("r")
    receipt = page.get_by_role("complementary", name="What was sent")
    await expect(receipt).to_contain_text("Round 1")
    await receipt.get_by_role("button", name="notes.md").click()
    await receipt.get_by_role("button", name="Remove this and ask again").click()
    await expect(page).not_to_have_url(re.compile(first["conversation_id"]))
    await expect(room.reply("Alpha", "finished")).to_have_count(1)
    assert "canary" not in str(upstream.last.body)
    await room.reply("Alpha").focus()
    await page.keyboard.press("r")
    await expect(receipt.get_by_role("list", name="Left out")).to_contain_text("notes.md")


async def test_what_a_mind_will_not_be_shown_is_said_where_one_writes(
    page: Page, sam: Person, upstream: Upstream
) -> None:
    room = Room(page)
    await room.seat("Alpha")
    async with page.expect_file_chooser() as choosing:
        await page.get_by_role("button", name="Attach files").click()
        await page.get_by_role("menuitem", name="Add to this message").click()
    long = {"name": "long.txt", "mimeType": "text/plain", "buffer": b"a long word " * 20_000}
    await (await choosing.value).set_files([long])
    await room.field.fill("What is it about?")
    await expect(page.get_by_text("Alpha is not shown long.txt: over the budget.")).to_be_visible()
