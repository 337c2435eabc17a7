"""What happens in one window is seen in the others, and closing one loses nothing."""

from __future__ import annotations

import asyncio

from playwright.async_api import Page, expect

from tests.browser.room import Room, in_parts, stored
from tests.browser.windows import Windows
from tests.upstream.scripted import Upstream
from tests.world import Person


async def test_a_reload_in_the_middle_loses_nothing(page: Page, sam: Person, upstream: Upstream) -> None:
    room = Room(page)
    goes_on, ends = asyncio.Event(), asyncio.Event()
    upstream.plays(in_parts("The first part.\n\nThe sec", goes_on, "ond part.", ends, "\n\nThe last."))
    await room.seat("Alpha", "Beta")
    await room.ask("Take your time.")
    await expect(room.words("Beta")).to_contain_text("The sec")

    await page.reload()
    await expect(room.words("Alpha")).to_contain_text("The first part.")
    await expect(room.words("Beta")).to_contain_text("The sec")
    await expect(room.question("Take your time.")).to_be_visible()

    goes_on.set()
    await expect(room.words("Alpha")).to_contain_text("The second part.")
    ends.set()
    for name in ("Alpha", "Beta"):
        await expect(room.reply(name, "finished")).to_be_visible()
        kept = (await stored(sam, room.id))[name]
        assert kept["status"] == "complete"
        assert (
            await room.paragraphs(name)
            == kept["content"]
            == "The first part.\n\nThe second part.\n\nThe last."
        )


async def test_words_come_while_nobody_looks(page: Page, upstream: Upstream) -> None:
    room, ends = Room(page), asyncio.Event()
    upstream.plays(in_parts("Begun, ", ends, "and finished."))
    await room.seat("Alpha")
    await room.ask("I will be right back.")
    await expect(room.words("Alpha")).to_have_text("Begun,")
    address = page.url
    await page.goto("about:blank")
    ends.set()
    await upstream.last.over.wait()
    await page.goto(address)
    await expect(room.reply("Alpha", "finished")).to_contain_text("Begun, and finished.")


async def test_a_second_window_sees_the_question_and_every_word(
    page: Page, windows: Windows, sam: Person, upstream: Upstream
) -> None:
    here, goes_on, ends = Room(page), asyncio.Event(), asyncio.Event()
    upstream.plays(in_parts("One, ", goes_on, "two, ", ends, "three."))
    await here.seat("Alpha", "Beta")
    await here.ask("Count.")
    await expect(here.words("Beta")).to_have_text("One,")

    there = Room(await windows.open(sam, page.url))
    await expect(there.question("Count.")).to_be_visible()
    await expect(there.words("Alpha")).to_have_text("One,")
    goes_on.set()
    for room in (here, there):
        await expect(room.words("Beta")).to_have_text("One, two,")
    ends.set()
    for room in (here, there):
        await expect(room.reply("Alpha", "finished")).to_contain_text("One, two, three.")

    await there.ask("And backwards?")
    await expect(here.question("And backwards?")).to_be_visible()
    await expect(here.rounds).to_have_count(2)


async def test_names_pins_rest_and_ends_are_seen_elsewhere(
    page: Page, windows: Windows, sam: Person, upstream: Upstream
) -> None:
    windows.expect(r"status of 404 .*/api/conversations/")
    here = Room(page)
    [reply] = await sam.hear("What is a tertulia?", "alpha")
    there = Room(await windows.open(sam, f"/c/{reply['conversation_id']}"))
    await expect(there.reply("Alpha", "finished")).to_be_visible()

    await here.choose("What is a tertulia?", "Rename")
    await page.keyboard.type("Coffee and talk")
    await page.keyboard.press("Enter")
    await expect(there.row("Coffee and talk")).to_be_visible()
    await expect(there.page).to_have_title("Coffee and talk · Tertulia")

    await here.choose("Coffee and talk", "Pin")
    pinned = there.sidebar.get_by_role("region", name="Pinned")
    await expect(pinned.get_by_role("link", name="Coffee and talk")).to_be_visible()

    await here.choose("Coffee and talk", "Archive")
    await expect(there.row("Coffee and talk")).to_be_hidden()
    await expect(there.page.get_by_text("This conversation is archived.")).to_be_visible()
    await there.page.get_by_role("button", name="Restore").click()
    await expect(here.row("Coffee and talk")).to_be_visible()

    await here.choose("Coffee and talk", "Delete")
    await expect(page.get_by_role("alertdialog")).to_contain_text("Delete “Coffee and talk”?")
    await expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    await page.get_by_role("button", name="Delete conversation").click()
    await expect(here.row("Coffee and talk")).to_be_hidden()
    await expect(there.row("Coffee and talk")).to_be_hidden()
    await expect(there.page.get_by_text("Conversation not found").last).to_be_visible()


async def test_a_session_ended_elsewhere_closes_the_window(page: Page, windows: Windows, sam: Person) -> None:
    await expect(page.get_by_role("heading", name="What would you like to ask?")).to_be_visible()
    await sam.post("/api/logout", expect=204)
    await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
