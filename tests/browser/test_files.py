"""A file is brought in, looked up for a question, and stands in the receipt of the reply."""

from __future__ import annotations

import re

from playwright.async_api import Page, expect

from tests.browser.room import Room
from tests.upstream.scripted import Upstream

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
    receipt = page.get_by_role("complementary", name="Context receipt")
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
    receipt = page.get_by_role("complementary", name="Context receipt")
    own = receipt.get_by_role("button", name="Round 1, its own reply")
    await own.click()
    await receipt.get_by_role("button", name="Remove this and ask again").click()
    await expect(own).to_be_hidden()
    await expect(room.reply("Alpha").last).to_contain_text("2 of 2")
