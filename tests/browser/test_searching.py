"""What was brought in and said is found again, and opens at its place."""

from __future__ import annotations

import asyncio
import re

import pytest_asyncio
from playwright.async_api import FilePayload, Locator, Page, expect

from tests.browser.room import Room, in_parts
from tests.browser.seeds import long_conversation
from tests.browser.windows import PHONE, Windows
from tests.patience import soon
from tests.server.test_search import settled
from tests.upstream.scripted import Upstream
from tests.world import Person, World

ROUNDS = 40
FILLER = "".join(f"Line {number} is about nothing much.\n" for number in range(1, 301))
MANUAL = f"{FILLER}\n# Kilns\n\nThe bisque firing ends at 980 degrees.\nOpen the kiln below ninety.\n"
"""What it says about kilns begins at line 302."""
CITING = (
    "It ends at 980 degrees [docs/kiln.md:304-305], see [round 1] and [docs/gone.md:1-2]. `[docs/kiln.md:1]`"
)


@pytest_asyncio.fixture(loop_scope="session")
async def pottery(world: World, sam: Person, upstream: Upstream) -> str:
    return await talk_of_pottery(world, sam, upstream)


async def talk_of_pottery(world: World, sam: Person, upstream: Upstream) -> str:
    """A manual that was brought in and a talk about it; the id of the conversation."""
    await sam.upload("docs/kiln.md", MANUAL.encode())
    await settled(world)
    upstream.says(CITING)
    [reply] = await sam.hear("When does the bisque firing end?", "alpha")
    await settled(world)
    return str(reply["conversation_id"])


def hit(page: Page, title: str) -> Locator:
    return page.get_by_role("main").get_by_role("link").filter(has=page.get_by_text(title, exact=True))


def lines(page: Page) -> Locator:
    """The lines meant, in the file beside the page."""
    return page.get_by_role("complementary", name="File").locator("li.meant")


async def test_a_word_is_found_in_a_file_and_opens_at_its_lines(
    windows: Windows, sam: Person, pottery: str
) -> None:
    page = await windows.open(sam, "/search")
    field = page.get_by_role("searchbox", name="Search everything")
    await expect(field).to_be_focused()
    await page.keyboard.type("bisque firing")
    await expect(page).to_have_url(re.compile(r"/search\?q=bisque\+firing$"))
    file = hit(page, "docs/kiln.md").first
    await expect(file.locator("mark").first).to_have_text("bisque firing")
    await expect(file).to_contain_text("304The bisque firing ends")
    await expect(file).to_contain_text(re.compile(r"match · 2 of 2 words"))
    await file.click()
    await expect(lines(page).filter(has_text="bisque firing")).to_be_in_viewport()
    await expect(file).to_have_attribute("aria-current", "true")
    await expect(field).to_have_value("bisque firing")


async def test_a_word_is_found_where_it_was_said_by_the_arrow_keys(
    windows: Windows, sam: Person, pottery: str
) -> None:
    page = await windows.open(sam, "/search?q=bisque+firing&kind=talk")
    question = hit(page, "When does the bisque firing end?")
    await expect(question).to_have_count(2)
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "Enter"):
        await page.keyboard.press(key)
    await expect(page).to_have_url(re.compile(rf"/c/{pottery}#round-1/\w+$"))
    await expect(Room(page).reply("Alpha", "finished")).to_be_in_viewport()
    await page.go_back()
    await expect(question).to_have_count(2)


async def test_what_is_asked_stands_in_the_address(windows: Windows, sam: Person, pottery: str) -> None:
    page = await windows.open(sam, "/search?q=bisque")
    await expect(page.get_by_role("heading", name="Conversations")).to_be_visible()
    await page.get_by_role("radio", name=re.compile("^Files")).click()
    await expect(page.get_by_role("heading", name="Conversations")).to_be_hidden()
    await page.get_by_role("button", name="Files: Any file").click()
    await page.get_by_label("Types").fill(".ts, pdf")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="No match for “bisque”")).to_be_visible()
    await expect(page).to_have_url(re.compile("kind=files&type=ts%2Cpdf$"))
    await page.reload()
    await expect(page.get_by_role("button", name="Files: .ts .pdf")).to_be_visible()
    await page.get_by_role("button", name="Search without filters").click()
    await expect(hit(page, "docs/kiln.md").first).to_be_visible()
    await page.get_by_role("button", name="Who: Anyone").click()
    await page.get_by_role("menuitemradio", name="People").click()
    await expect(page.get_by_role("main").locator("[data-hit]")).to_have_count(1)
    await page.get_by_role("button", name="Who: People").click()
    name = sam.me["user"]["name"]
    await page.get_by_role("menuitemradio", name=name, exact=True).click()
    await expect(page).to_have_url(re.compile(f"who={name}$"))
    await expect(page.get_by_role("main").locator("[data-hit]")).to_have_count(1)
    await page.go_back()
    await page.go_back()
    await expect(page.get_by_role("button", name="Who: Anyone")).to_be_visible()
    await expect(hit(page, "docs/kiln.md").first).to_be_visible()


async def test_the_page_says_when_it_can_look_for_words_alone(
    windows: Windows, sam: Person, pottery: str
) -> None:
    page = await windows.open(sam, "/search?q=bisque")
    await expect(page.get_by_text("Searched by words only, not by meaning.")).to_be_visible()
    await page.get_by_role("button", name="How: Words and meaning").click()
    await page.get_by_role("menuitemradio", name="Words only").click()
    await expect(page.get_by_text("Searched by words only, not by meaning.")).to_be_hidden()


async def test_a_search_that_fails_can_be_tried_again(windows: Windows, sam: Person, pottery: str) -> None:
    windows.expect("Failed to load resource: net::ERR_FAILED")
    page = await windows.open(sam, "/search")
    await page.route("**/api/search/global", lambda route: route.abort())
    await page.get_by_role("searchbox").fill("bisque")
    await expect(page.get_by_role("alert")).to_contain_text("The server cannot be reached")
    await page.unroute("**/api/search/global")
    await page.get_by_role("button", name="Try again").click()
    await expect(hit(page, "docs/kiln.md").first).to_be_visible()


async def test_the_palette_finds_what_files_and_people_say(
    windows: Windows, sam: Person, pottery: str
) -> None:
    page = await windows.open(sam, "/new")
    await expect(page.get_by_role("heading", name="What would you like to ask?")).to_be_visible()
    await page.keyboard.press("Control+k")
    typed = page.get_by_role("combobox", name="Type a command or search")
    await typed.fill("bisque firing")
    files = page.get_by_role("group", name="Files").get_by_role("option")
    await expect(files.first).to_contain_text("docs/kiln.md")
    await expect(page.get_by_role("group", name="In conversations").get_by_role("option")).to_have_count(2)
    await files.first.hover()
    await typed.press("Control+Enter")
    await expect(lines(page).filter(has_text="bisque firing")).to_be_in_viewport()
    await expect(page).to_have_url(re.compile("/new$"))
    await page.keyboard.press("Control+k")
    await typed.fill("bisque")
    await expect(files.first).to_be_visible()
    await typed.press("ArrowUp")
    await typed.press("Enter")
    await expect(page).to_have_url(re.compile(r"/search\?q=bisque$"))
    await expect(hit(page, "docs/kiln.md").first).to_be_visible()


@pytest_asyncio.fixture(loop_scope="session")
async def long(world: World, sam: Person) -> str:
    """The path of a conversation of forty rounds."""
    return f"/c/{await long_conversation(world, sam, ROUNDS * 4)}"


async def test_a_round_far_back_opens_at_once_and_reading_goes_on_from_there(
    windows: Windows, sam: Person, long: str
) -> None:
    page = await windows.open(sam, f"{long}#round-9")
    room = Room(page)
    await expect(room.question("Question 9")).to_be_in_viewport()
    await expect(room.question(f"Question {ROUNDS}")).not_to_be_attached()
    await page.get_by_role("button", name="later rounds").dispatch_event("click")
    await expect(room.question("Question 12")).to_be_attached()
    await expect(room.question("Question 9")).to_be_in_viewport()
    await page.get_by_role("button", name="earlier rounds").dispatch_event("click")
    await expect(room.question("Question 2")).to_be_attached()
    await expect(room.question("Question 9")).to_be_in_viewport()
    await page.keyboard.press("l")
    await expect(room.question(f"Question {ROUNDS}")).to_be_attached()
    await expect(room.question("Question 9")).not_to_be_attached()


GO_TO = """
    (hash) => new Promise((found) => {
        const watcher = new MutationObserver(([change]) => found(change.target.ariaPosInSet));
        watcher.observe(document.body, { subtree: true, attributeFilter: ['data-found'] });
        location.hash = hash;
    })
"""
"""The number of the round that is marked when the address names it."""


async def test_another_round_of_the_same_conversation_is_one_address_away(
    windows: Windows, sam: Person, long: str, upstream: Upstream
) -> None:
    page = await windows.open(sam, long)
    room = Room(page)
    await expect(room.question(f"Question {ROUNDS}")).to_be_in_viewport()
    async with soon():
        assert await page.evaluate(GO_TO, "#round-3") == "3"
    await expect(room.question("Question 3")).to_be_in_viewport()
    upstream.says("And so we went on.")
    await room.ask("Where were we?")
    await expect(room.question("Where were we?")).to_be_in_viewport()
    await expect(room.question("Question 3")).not_to_be_attached()


async def test_a_branch_opens_at_a_round_it_shares_and_what_it_left_is_whole(
    windows: Windows, sam: Person, long: str
) -> None:
    left = long.removeprefix("/c/")
    [reply, *_] = await sam.replies(left, 9)
    at = {"at_round": 9, "message_id": reply["id"], "title": "Another road"}
    branch = await sam.post(f"/api/conversations/{left}/branches", at, expect=201)
    page = await windows.open(sam, f"/c/{branch['id']}#round-9")
    room = Room(page)
    ninth = room.feed.locator('[aria-posinset="9"]').get_by_role("article")
    await expect(room.question("Question 9")).to_be_in_viewport()
    await expect(ninth).to_have_count(1)
    await page.evaluate("location.hash = '#round-2'")
    await expect(room.question("Question 2")).to_be_in_viewport()
    await page.goto(f"/c/{branch['id']}#round-9")
    await expect(ninth).to_have_count(1)
    await room.sidebar.get_by_role("link", name="New conversation").last.click()
    await expect(room.question(f"Question {ROUNDS}")).to_be_in_viewport()
    await page.evaluate("location.hash = '#round-9'")
    await expect(room.question("Question 9")).to_be_in_viewport()
    await expect(ninth).to_have_count(3)


async def test_a_round_that_was_deleted_leaves_no_wall(windows: Windows, sam: Person, long: str) -> None:
    conversation = f"/api/conversations/{long.removeprefix('/c/')}"
    for number in (8, 3):
        rounds = (await sam.get(f"{conversation}/messages", before=number + 1, limit=1))["rounds"]
        await sam.delete(f"/api/messages/{rounds[0]['messages'][0]['id']}")
    page = await windows.open(sam, f"{long}#round-8")
    room = Room(page)
    await expect(room.question("Question 9")).to_be_in_viewport()
    await page.get_by_role("button", name="5 earlier rounds").dispatch_event("click")
    await expect(room.question("Question 1")).to_be_attached()
    await expect(page.get_by_role("button", name=re.compile("earlier round"))).to_be_hidden()


async def test_a_phone_opens_the_reply_that_was_meant(windows: Windows, sam: Person, long: str) -> None:
    page = await _phone_at_reply(windows, sam, long)
    meant = Room(page).feed.locator('[aria-posinset="5"]')
    await expect(meant.get_by_role("tab", name="Gamma")).to_have_attribute("aria-selected", "true")
    await expect(meant.get_by_role("tabpanel", name="Gamma").get_by_role("article")).to_be_in_viewport()


async def _phone_at_reply(windows: Windows, sam: Person, path: str) -> Page:
    replies = await sam.replies(path.rpartition("/")[2], 5)
    return await windows.open(
        sam, f"{path}#round-5/{replies[-1]['id']}", PHONE, is_mobile=True, has_touch=True
    )


async def test_a_file_is_brought_in_looked_up_cited_and_opened_at_the_lines(
    page: Page, upstream: Upstream
) -> None:
    room = Room(page)
    upstream.says(CITING)
    await page.get_by_role("link", name="Project", exact=True).click()
    async with page.expect_file_chooser() as choosing:
        await page.get_by_role("button", name="Upload", exact=True).click()
    chooser = await choosing.value
    await chooser.set_files(FilePayload(name="kiln.md", mimeType="text/markdown", buffer=MANUAL.encode()))
    await expect(page.get_by_role("row").filter(has_text="kiln.md")).to_contain_text(
        re.compile(r"\d passage")
    )

    await page.get_by_role("link", name="New conversation").click()
    await room.seat("Alpha")
    await room.ask("When does the bisque firing end?")
    await expect(room.reply("Alpha", "finished")).to_be_visible()
    await room.reply("Alpha").focus()
    await page.keyboard.press("r")
    receipt = page.get_by_role("complementary", name="What was sent")
    await receipt.get_by_role("button", name=re.compile(r"^kiln\.md:\d+-305")).click()
    await receipt.get_by_role("button", name="Open at its lines").click()
    await expect(lines(page).filter(has_text="bisque firing")).to_be_attached()
    await page.get_by_role("button", name="Back to what was sent").click()
    await receipt.get_by_role("tab", name="Files").click()
    read = page.get_by_role("complementary", name="Files it read")
    await expect(read.get_by_role("list", name="Cited")).to_contain_text("docs/kiln.md:304-305not sent")
    await read.get_by_role("list", name="Also read").get_by_role("button").first.click()
    await expect(lines(page).first).to_be_attached()
    await page.get_by_role("button", name="Back to the files it read").click()
    await read.get_by_role("tab", name="Details").click()
    made = page.get_by_role("complementary", name="Details of the reply")
    await expect(made).to_contain_text("End complete")


async def test_a_citation_opens_what_it_names_and_nothing_else_becomes_one(
    windows: Windows, sam: Person, pottery: str
) -> None:
    page = await windows.open(sam, f"/c/{pottery}")
    words = Room(page).words("Alpha")
    cited = words.get_by_role("button")
    await expect(cited).to_have_text(["docs/kiln.md:304-305", "round 1"])
    await expect(words.locator("p")).to_contain_text("and [docs/gone.md:1-2]. [docs/kiln.md:1]")
    await cited.first.click()
    await expect(lines(page)).to_have_text([re.compile("^304The bisque"), re.compile("^305Open the kiln")])
    await expect(lines(page).first).to_be_in_viewport()
    await expect(cited.first).to_have_class("on")


async def test_lines_that_are_gone_since_they_were_cited_are_said_to_be(
    windows: Windows, sam: Person, pottery: str
) -> None:
    await sam.upload("docs/kiln.md", b"Only this is left.\n")
    page = await windows.open(sam, f"/c/{pottery}")
    await Room(page).words("Alpha").get_by_role("button", name="docs/kiln.md").click()
    file = page.get_by_role("complementary", name="File")
    await expect(file).to_contain_text("It no longer has lines 304 to 305, only 1 line")
    await expect(file).to_contain_text("Only this is left.")


async def test_a_citation_is_at_hand_while_the_reply_is_still_written(
    page: Page, sam: Person, upstream: Upstream, pottery: str
) -> None:
    room = Room(page)
    rest, never = asyncio.Event(), asyncio.Event()
    upstream.plays(in_parts("As [docs/kiln.md:304", never), model="alpha")
    upstream.plays(in_parts("As [docs/kiln.md:304", rest, "-305] says, and", never), model="beta")
    await room.seat("Alpha", "Beta")
    await room.ask("What does the manual say?")
    await expect(room.words("Alpha")).to_have_text("As [docs/kiln.md:304")
    await expect(room.words("Beta")).to_have_text("As [docs/kiln.md:304")
    rest.set()
    await room.words("Beta").get_by_role("button", name="docs/kiln.md:304-305").click()
    await expect(lines(page).first).to_be_in_viewport()
    await expect(room.words("Alpha").get_by_role("button")).to_have_count(0)


async def test_a_cited_round_far_back_is_shown(
    windows: Windows, sam: Person, long: str, upstream: Upstream
) -> None:
    page = await windows.open(sam, long)
    room = Room(page)
    upstream.says("As was said in [round 4].")
    await room.ask("What was it again?")
    await room.words("Alpha").last.get_by_role("button", name="round 4").click()
    await expect(room.question("Question 4")).to_be_in_viewport()
