"""Files and messages are found by search and open at the right place."""

from __future__ import annotations

import asyncio
import re

import pytest_asyncio
from playwright.async_api import FilePayload, Locator, Page, expect

from tests.browser.conversation_page import ConversationPage, reply_in_parts
from tests.browser.seeds import long_conversation
from tests.browser.windows import PHONE, Windows
from tests.patience import soon
from tests.server.test_search import settled
from tests.upstream.scripted import Upstream
from tests.world import Person, World

ROUNDS = 40
FILLER = "".join(f"Line {number} is about nothing much.\n" for number in range(1, 301))
MANUAL = f"{FILLER}\n# Kilns\n\nThe bisque firing ends at 980 degrees.\nOpen the kiln below ninety.\n"
"""The section about kilns begins at line 302."""
CITING = (
    "It ends at 980 degrees [docs/kiln.md:304-305], see [round 1] and [docs/gone.md:1-2]. `[docs/kiln.md:1]`"
)


@pytest_asyncio.fixture(loop_scope="session")
async def pottery_conversation(world: World, sam: Person, upstream: Upstream) -> str:
    return await create_pottery_conversation(world, sam, upstream)


async def create_pottery_conversation(world: World, sam: Person, upstream: Upstream) -> str:
    """Uploads a manual, holds a conversation about it, and returns the conversation's id."""
    await sam.upload("docs/kiln.md", MANUAL.encode())
    await settled(world)
    upstream.says(CITING)
    [reply] = await sam.ask_and_wait("When does the bisque firing end?", "alpha")
    await settled(world)
    return str(reply["conversation_id"])


def hit(page: Page, title: str) -> Locator:
    return page.get_by_role("main").get_by_role("link").filter(has=page.get_by_text(title, exact=True))


def highlighted_lines(page: Page) -> Locator:
    """The highlighted lines in the file viewer."""
    return page.get_by_role("complementary", name="File").locator("li.meant")


async def test_a_hit_in_a_file_opens_at_its_lines(
    windows: Windows, sam: Person, pottery_conversation: str
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
    await expect(highlighted_lines(page).filter(has_text="bisque firing")).to_be_in_viewport()
    await expect(file).to_have_attribute("aria-current", "true")
    await expect(field).to_have_value("bisque firing")


async def test_a_hit_in_a_conversation_can_be_opened_by_arrow_keys(
    windows: Windows, sam: Person, pottery_conversation: str
) -> None:
    page = await windows.open(sam, "/search?q=bisque+firing&kind=talk")
    question = hit(page, "When does the bisque firing end?")
    await expect(question).to_have_count(2)
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "Enter"):
        await page.keyboard.press(key)
    await expect(page).to_have_url(re.compile(rf"/c/{pottery_conversation}#round-1/\w+$"))
    await expect(ConversationPage(page).reply("Alpha", "finished")).to_be_in_viewport()
    await page.go_back()
    await expect(question).to_have_count(2)


async def test_the_address_contains_the_query_and_the_filters(
    windows: Windows, sam: Person, pottery_conversation: str
) -> None:
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


async def test_the_search_page_says_when_vector_search_is_unavailable(
    windows: Windows, sam: Person, pottery_conversation: str
) -> None:
    page = await windows.open(sam, "/search?q=bisque")
    await expect(page.get_by_text("Searched by words only, not by meaning.")).to_be_visible()
    await page.get_by_role("button", name="How: Words and meaning").click()
    await page.get_by_role("menuitemradio", name="Words only").click()
    await expect(page.get_by_text("Searched by words only, not by meaning.")).to_be_hidden()


async def test_a_failed_search_can_be_retried(
    windows: Windows, sam: Person, pottery_conversation: str
) -> None:
    windows.allow("Failed to load resource: net::ERR_FAILED")
    page = await windows.open(sam, "/search")
    await page.route("**/api/search/global", lambda route: route.abort())
    await page.get_by_role("searchbox").fill("bisque")
    await expect(page.get_by_role("alert")).to_contain_text("The server cannot be reached")
    await page.unroute("**/api/search/global")
    await page.get_by_role("button", name="Try again").click()
    await expect(hit(page, "docs/kiln.md").first).to_be_visible()


async def test_the_command_palette_finds_files_and_messages(
    windows: Windows, sam: Person, pottery_conversation: str
) -> None:
    page = await windows.open(sam, "/new")
    await expect(page.get_by_role("heading", name="What would you like to ask?")).to_be_visible()
    await page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Type a command or search")
    await field.fill("bisque firing")
    files = page.get_by_role("group", name="Files").get_by_role("option")
    await expect(files.first).to_contain_text("docs/kiln.md")
    await expect(page.get_by_role("group", name="In conversations").get_by_role("option")).to_have_count(2)
    await files.first.hover()
    await field.press("Control+Enter")
    await expect(highlighted_lines(page).filter(has_text="bisque firing")).to_be_in_viewport()
    await expect(page).to_have_url(re.compile("/new$"))
    await page.keyboard.press("Control+k")
    await field.fill("bisque")
    await expect(files.first).to_be_visible()
    await field.press("ArrowUp")
    await field.press("Enter")
    await expect(page).to_have_url(re.compile(r"/search\?q=bisque$"))
    await expect(hit(page, "docs/kiln.md").first).to_be_visible()


@pytest_asyncio.fixture(loop_scope="session")
async def long_path(world: World, sam: Person) -> str:
    """The path of a conversation with forty rounds."""
    return f"/c/{await long_conversation(world, sam, ROUNDS * 4)}"


async def test_an_old_round_opens_directly_and_loads_its_neighbours(
    windows: Windows, sam: Person, long_path: str
) -> None:
    page = await windows.open(sam, f"{long_path}#round-9")
    conversation = ConversationPage(page)
    await expect(conversation.question("Question 9")).to_be_in_viewport()
    await expect(conversation.question(f"Question {ROUNDS}")).not_to_be_attached()
    await page.get_by_role("button", name="later rounds").dispatch_event("click")
    await expect(conversation.question("Question 12")).to_be_attached()
    await expect(conversation.question("Question 9")).to_be_in_viewport()
    await page.get_by_role("button", name="earlier rounds").dispatch_event("click")
    await expect(conversation.question("Question 2")).to_be_attached()
    await expect(conversation.question("Question 9")).to_be_in_viewport()
    await page.keyboard.press("l")
    await expect(conversation.question(f"Question {ROUNDS}")).to_be_attached()
    await expect(conversation.question("Question 9")).not_to_be_attached()


GO_TO = """
    (hash) => new Promise((found) => {
        const watcher = new MutationObserver(([change]) => found(change.target.ariaPosInSet));
        watcher.observe(document.body, { subtree: true, attributeFilter: ['data-found'] });
        location.hash = hash;
    })
"""
"""Changes the address and resolves to the number of the round that gets highlighted."""


async def test_changing_the_address_opens_another_round(
    windows: Windows, sam: Person, long_path: str, upstream: Upstream
) -> None:
    page = await windows.open(sam, long_path)
    conversation = ConversationPage(page)
    await expect(conversation.question(f"Question {ROUNDS}")).to_be_in_viewport()
    async with soon():
        assert await page.evaluate(GO_TO, "#round-3") == "3"
    await expect(conversation.question("Question 3")).to_be_in_viewport()
    upstream.says("And so we went on.")
    await conversation.ask("Where were we?")
    await expect(conversation.question("Where were we?")).to_be_in_viewport()
    await expect(conversation.question("Question 3")).not_to_be_attached()


async def test_a_branch_opens_at_an_inherited_round(windows: Windows, sam: Person, long_path: str) -> None:
    source = long_path.removeprefix("/c/")
    [reply, *_] = await sam.replies(source, 9)
    at = {"at_round": 9, "message_id": reply["id"], "title": "Another road"}
    branch = await sam.post(f"/api/conversations/{source}/branches", at, expect=201)
    page = await windows.open(sam, f"/c/{branch['id']}#round-9")
    conversation = ConversationPage(page)
    ninth = conversation.feed.locator('[aria-posinset="9"]').get_by_role("article")
    await expect(conversation.question("Question 9")).to_be_in_viewport()
    await expect(ninth).to_have_count(1)
    await page.evaluate("location.hash = '#round-2'")
    await expect(conversation.question("Question 2")).to_be_in_viewport()
    await page.goto(f"/c/{branch['id']}#round-9")
    await expect(ninth).to_have_count(1)
    await conversation.sidebar.get_by_role("link", name="New conversation").last.click()
    await expect(conversation.question(f"Question {ROUNDS}")).to_be_in_viewport()
    await page.evaluate("location.hash = '#round-9'")
    await expect(conversation.question("Question 9")).to_be_in_viewport()
    await expect(ninth).to_have_count(3)


async def test_deleted_rounds_do_not_block_loading_earlier_ones(
    windows: Windows, sam: Person, long_path: str
) -> None:
    url = f"/api/conversations/{long_path.removeprefix('/c/')}"
    for number in (8, 3):
        rounds = (await sam.get(f"{url}/messages", before=number + 1, limit=1))["rounds"]
        await sam.delete(f"/api/messages/{rounds[0]['messages'][0]['id']}")
    page = await windows.open(sam, f"{long_path}#round-8")
    conversation = ConversationPage(page)
    await expect(conversation.question("Question 9")).to_be_in_viewport()
    await page.get_by_role("button", name="5 earlier rounds").dispatch_event("click")
    await expect(conversation.question("Question 1")).to_be_attached()
    await expect(page.get_by_role("button", name=re.compile("earlier round"))).to_be_hidden()


async def test_a_phone_opens_the_reply_of_the_address(windows: Windows, sam: Person, long_path: str) -> None:
    page = await _phone_at_reply(windows, sam, long_path)
    round_ = ConversationPage(page).feed.locator('[aria-posinset="5"]')
    await expect(round_.get_by_role("tab", name="Gamma")).to_have_attribute("aria-selected", "true")
    await expect(round_.get_by_role("tabpanel", name="Gamma").get_by_role("article")).to_be_in_viewport()


async def _phone_at_reply(windows: Windows, sam: Person, path: str) -> Page:
    replies = await sam.replies(path.rpartition("/")[2], 5)
    return await windows.open(
        sam, f"{path}#round-5/{replies[-1]['id']}", PHONE, is_mobile=True, has_touch=True
    )


async def test_a_cited_file_opens_at_its_lines_from_the_receipt(page: Page, upstream: Upstream) -> None:
    conversation = ConversationPage(page)
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
    await conversation.seat("Alpha")
    await conversation.ask("When does the bisque firing end?")
    await expect(conversation.reply("Alpha", "finished")).to_be_visible()
    await conversation.reply("Alpha").focus()
    await page.keyboard.press("r")
    receipt = page.get_by_role("complementary", name="What was sent")
    await receipt.get_by_role("button", name=re.compile(r"^kiln\.md:\d+-305")).click()
    await receipt.get_by_role("button", name="Open at its lines").click()
    await expect(highlighted_lines(page).filter(has_text="bisque firing")).to_be_attached()
    await page.get_by_role("button", name="Back to what was sent").click()
    await receipt.get_by_role("tab", name="Files").click()
    files_read = page.get_by_role("complementary", name="Files it read")
    await expect(files_read.get_by_role("list", name="Cited")).to_contain_text("docs/kiln.md:304-305not sent")
    await files_read.get_by_role("list", name="Also read").get_by_role("button").first.click()
    await expect(highlighted_lines(page).first).to_be_attached()
    await page.get_by_role("button", name="Back to the files it read").click()
    await files_read.get_by_role("tab", name="Details").click()
    details = page.get_by_role("complementary", name="Details of the reply")
    await expect(details).to_contain_text("End complete")


async def test_only_citations_of_existing_sources_become_links(
    windows: Windows, sam: Person, pottery_conversation: str
) -> None:
    page = await windows.open(sam, f"/c/{pottery_conversation}")
    reply_text = ConversationPage(page).reply_text("Alpha")
    citations = reply_text.get_by_role("button")
    await expect(citations).to_have_text(["docs/kiln.md:304-305", "round 1"])
    await expect(reply_text.locator("p")).to_contain_text("and [docs/gone.md:1-2]. [docs/kiln.md:1]")
    await citations.first.click()
    await expect(highlighted_lines(page)).to_have_text(
        [re.compile("^304The bisque"), re.compile("^305Open the kiln")]
    )
    await expect(highlighted_lines(page).first).to_be_in_viewport()
    await expect(citations.first).to_have_class("on")


async def test_a_citation_of_missing_lines_says_that_they_are_gone(
    windows: Windows, sam: Person, pottery_conversation: str
) -> None:
    await sam.upload("docs/kiln.md", b"Only this is left.\n")
    page = await windows.open(sam, f"/c/{pottery_conversation}")
    await ConversationPage(page).reply_text("Alpha").get_by_role("button", name="docs/kiln.md").click()
    file = page.get_by_role("complementary", name="File")
    await expect(file).to_contain_text("It no longer has lines 304 to 305, only 1 line")
    await expect(file).to_contain_text("Only this is left.")


async def test_a_citation_can_be_opened_while_the_reply_streams(
    page: Page, sam: Person, upstream: Upstream, pottery_conversation: str
) -> None:
    conversation = ConversationPage(page)
    continue_beta, never = asyncio.Event(), asyncio.Event()
    upstream.plays(reply_in_parts("As [docs/kiln.md:304", never), model="alpha")
    upstream.plays(
        reply_in_parts("As [docs/kiln.md:304", continue_beta, "-305] says, and", never), model="beta"
    )
    await conversation.seat("Alpha", "Beta")
    await conversation.ask("What does the manual say?")
    await expect(conversation.reply_text("Alpha")).to_have_text("As [docs/kiln.md:304")
    await expect(conversation.reply_text("Beta")).to_have_text("As [docs/kiln.md:304")
    continue_beta.set()
    await conversation.reply_text("Beta").get_by_role("button", name="docs/kiln.md:304-305").click()
    await expect(highlighted_lines(page).first).to_be_in_viewport()
    await expect(conversation.reply_text("Alpha").get_by_role("button")).to_have_count(0)


async def test_a_cited_old_round_opens(
    windows: Windows, sam: Person, long_path: str, upstream: Upstream
) -> None:
    page = await windows.open(sam, long_path)
    conversation = ConversationPage(page)
    upstream.says("As was said in [round 4].")
    await conversation.ask("What was it again?")
    await conversation.reply_text("Alpha").last.get_by_role("button", name="round 4").click()
    await expect(conversation.question("Question 4")).to_be_in_viewport()
