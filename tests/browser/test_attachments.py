"""Files are attached to a question by button, drop or paste, on a desktop and on a phone."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

from playwright.async_api import Browser, FilePayload, Locator, Page, Request, Route, expect

from tests.browser.conversation_page import ConversationPage
from tests.browser.test_accessibility import must_be_accessible
from tests.browser.test_project_page import DROP
from tests.browser.windows import PHONE, Windows
from tests.library.documents import png
from tests.upstream.scripted import Upstream
from tests.world import Person, endpoints, running

ROTA = b"# Rota\n\nOn Tuesday the pager is with Mateo.\n"
TEXT: FilePayload = {"name": "rota.md", "mimeType": "text/markdown", "buffer": ROTA}
PICTURE: FilePayload = {"name": "sea.png", "mimeType": "image/png", "buffer": png(8, 6)}
UPLOADS = re.compile(r"/attachments\?name=")

PASTE = """
    (field, names) => {
        const clipboardData = new DataTransfer();
        const type = (name) => (name.endsWith('png') ? 'image/png' : '');
        for (const name of names)
            clipboardData.items.add(new File(['words'], name, { type: type(name) }));
        field.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
    }
"""


class ConversationWithFiles(ConversationPage):
    """Page object of a conversation with the attachments of its message field."""

    def __init__(self, page: Page) -> None:
        super().__init__(page)
        self.chips = page.get_by_role("list", name="Attached files").get_by_role("listitem")
        self.attached = self.feed.get_by_role("list", name="Attached", exact=True).get_by_role("listitem")

    def chip(self, name: str) -> Locator:
        return self.chips.filter(has_text=name)

    async def attach(self, files: Sequence[FilePayload], where: str = "Add to this message") -> None:
        async with self.page.expect_file_chooser() as choosing:
            await self.page.get_by_role("button", name="Attach files").last.click()
            await self.page.get_by_role("menuitem", name=where).click()
        await (await choosing.value).set_files(list(files))


async def test_naming_a_project_file_attaches_it(sam: Person, page: Page, upstream: Upstream) -> None:
    await sam.upload("docs/rota.md", ROTA)
    upstream.says("Mateo has it.")
    conversation = ConversationWithFiles(page)
    await conversation.seat("Alpha")
    await conversation.field.press_sequentially("Who has the pager in #rot")
    offered = page.get_by_role("listbox", name="Which file to add").get_by_role("option")
    await expect(offered).to_contain_text("docs/rota.md")
    await conversation.field.press("Enter")
    await expect(conversation.field).to_have_value("Who has the pager in docs/rota.md ")
    await expect(conversation.chip("rota.md")).to_contain_text("44 B")
    await conversation.field.press("Enter")
    await expect(conversation.reply("Alpha", "finished")).to_be_visible()
    await expect(conversation.attached).to_have_count(1)
    assert "On Tuesday the pager is with Mateo." in str(upstream.last.body)


async def test_an_attached_text_and_picture_are_shown_in_every_window(
    windows: Windows, sam: Person, page: Page, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.says("Mateo has it.")
    conversation = ConversationWithFiles(page)
    await conversation.seat("Alpha", "Beta")
    async with page.expect_request(lambda request: _is_estimate_with_files(request, 2)):
        await conversation.attach([TEXT, PICTURE])
    await expect(conversation.chip("rota.md")).to_contain_text("44 B")
    await expect(conversation.chip("sea.png").locator("img")).to_have_js_property("naturalWidth", 8)
    vision_warning = "Alpha and Beta cannot see pictures. They are asked without sea.png."
    await expect(page.get_by_text(vision_warning)).to_be_visible()
    await page.screenshot(path=tmp_path / "composer.png")
    await must_be_accessible(page)
    await page.emulate_media(color_scheme="light")

    await conversation.ask("Who has the pager on Tuesday?")
    await expect(conversation.reply("Alpha", "finished")).to_be_visible()
    await expect(conversation.reply("Beta", "finished")).to_be_visible()
    await expect(conversation.chips).to_have_count(0)
    await expect(conversation.attached).to_have_count(2)
    await page.screenshot(path=tmp_path / "round.png")
    await conversation.reply("Alpha").focus()
    await page.keyboard.press("r")
    receipt = page.get_by_role("complementary", name="What was sent")
    await receipt.get_by_role("button", name="rota.md attached", exact=True).click()
    await expect(receipt.get_by_role("group", name="Text of rota.md")).to_contain_text("with Mateo")
    omitted = receipt.get_by_role("list", name="Left out").get_by_role("listitem")
    await expect(omitted.filter(has_text="sea.png")).to_contain_text("this model cannot see images")
    await page.keyboard.press("Escape")

    second_window = ConversationWithFiles(await windows.open(sam, f"/c/{conversation.id}"))
    for window in (conversation, second_window):
        await expect(window.attached.get_by_role("img", name="sea.png")).to_have_js_property(
            "naturalWidth", 8
        )
    await second_window.attach([TEXT])
    await second_window.ask("And on Wednesday?")
    await expect(conversation.attached).to_have_count(3)

    await page.reload()
    await expect(conversation.attached).to_have_count(3)
    await conversation.attached.get_by_role("button", name="rota.md").first.click()
    viewer = page.get_by_role("complementary", name="Attached file")
    await expect(viewer).to_contain_text("On Tuesday the pager is with Mateo.")
    await conversation.attached.get_by_role("button", name="sea.png").click()
    enlarged = page.get_by_role("dialog", name="sea.png")
    await expect(enlarged.get_by_role("img", name="sea.png")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(conversation.attached.get_by_role("button", name="sea.png")).to_be_focused()


def _is_estimate_with_files(request: Request, count: int) -> bool:
    """Whether a request is an estimate with this many attachments."""
    body = request.post_data_json if request.url.endswith("/api/estimate") else None
    return body is not None and len(body["attachments"]) == count


async def test_attachments_of_an_unsent_message_survive_a_reload(page: Page) -> None:
    conversation = ConversationWithFiles(page)
    await conversation.attach([TEXT, PICTURE])
    await conversation.field.fill("Half a thou")
    await expect(conversation.chip("sea.png")).to_contain_text("65 B")
    await page.reload()
    await expect(conversation.chips).to_have_count(2)
    await expect(conversation.field).to_have_value("Half a thou")
    await expect(conversation.chip("sea.png").locator("img")).to_have_js_property("naturalWidth", 8)
    await page.get_by_role("button", name="Remove rota.md").click()
    await page.reload()
    await expect(conversation.chips).to_have_count(1)


async def test_dropped_files_go_to_the_message_or_to_the_project(page: Page, sam: Person) -> None:
    conversation = ConversationWithFiles(page)
    await expect(conversation.field).to_be_focused()
    await page.evaluate(DROP, [[["notes.md", "# Notes\n"]], "main"])
    await expect(conversation.chip("notes.md")).to_contain_text("8 B")
    await page.evaluate(
        """() => {
            const carried = new DataTransfer();
            carried.items.add(new File(['# Kept\\n'], 'kept.md'));
            const manner = { dataTransfer: carried, bubbles: true, cancelable: true };
            globalThis.hold = () => document.body.dispatchEvent(new DragEvent('dragover', manner));
            globalThis.drop = (where) => where.dispatchEvent(new DragEvent('drop', manner));
            hold();
        }"""
    )
    zone = page.get_by_text("Add to the project", exact=True)
    await expect(zone).to_be_visible()
    await zone.evaluate("(zone) => drop(zone)")
    await expect(zone).to_be_hidden()
    await expect(conversation.chip("kept.md")).to_contain_text("in the project, 1 passage")
    listed = await sam.get(f"/api/projects/{sam.home}/files")
    assert [name["path"] for name in listed["items"]] == ["kept.md"]


async def test_pasting_attaches_files_and_inserts_text(page: Page) -> None:
    conversation = ConversationWithFiles(page)
    await conversation.field.evaluate(PASTE, ["image.png", "plan.md"])
    await expect(conversation.chip("plan.md")).to_contain_text("5 B")
    await expect(conversation.chips.filter(has_text=re.compile(r"pasted-\d{6}\.png"))).to_have_count(1)


async def test_a_question_is_sent_after_its_uploads_finish(page: Page, upstream: Upstream) -> None:
    upstream.says("Read.")
    conversation = ConversationWithFiles(page)
    await conversation.seat("Alpha")
    gate = asyncio.Event()

    async def held(route: Route) -> None:
        await gate.wait()
        await route.continue_()

    await page.route(UPLOADS, held)
    await conversation.attach([TEXT])
    await expect(page.get_by_role("progressbar", name="Uploading rota.md")).to_be_attached()
    await conversation.ask("What does it say?")
    await expect(page.get_by_text("sends when the files are uploaded")).to_be_visible()
    await expect(conversation.field).to_have_value("What does it say?")
    gate.set()
    await expect(conversation.reply("Alpha", "finished")).to_be_visible()
    await expect(conversation.attached).to_have_text(re.compile(r"rota\.md"))


async def test_a_failed_upload_can_be_retried(windows: Windows, page: Page) -> None:
    windows.allow("ERR_FAILED")
    conversation = ConversationWithFiles(page)
    await page.route(UPLOADS, lambda route: route.abort())
    await conversation.attach([TEXT])
    await expect(conversation.chip("rota.md").get_by_role("alert")).to_have_text(
        "The server cannot be reached."
    )
    await must_be_accessible(page)
    await conversation.ask("Not without it.")
    await expect(conversation.field).to_have_value("Not without it.")
    await expect(page.get_by_role("button", name="Send", exact=True)).to_be_disabled()
    await page.unroute(UPLOADS)
    await page.get_by_role("button", name="Try rota.md again").click()
    await expect(conversation.chip("rota.md")).to_contain_text("44 B")


async def test_a_too_large_file_is_refused_and_only_models_without_vision_are_warned_about(
    browser: Browser, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.says("I see.")
    vision_endpoints = endpoints(upstream).replace('"id": "alpha"', '"vision": true, "id": "alpha"')
    environ = {"TERTULIA_ENDPOINTS": vision_endpoints, "TERTULIA_UPLOAD_LIMIT_MIB": "1"}
    async with running(tmp_path, environ) as limited_server:
        windows = Windows(browser, limited_server.url)
        windows.allow("status of 413")
        page = await windows.open(await limited_server.set_up("Sam"), "/new")
        conversation = ConversationWithFiles(page)
        await conversation.seat("Alpha", "Beta")
        large: FilePayload = {"name": "film.bin", "mimeType": "", "buffer": b"x" * (2 << 20)}
        await conversation.attach([large, PICTURE])
        alert = conversation.chip("film.bin").get_by_role("alert")
        await expect(alert).to_have_text("A file holds at most 1 MiB.")
        await expect(page.get_by_role("button", name="Try film.bin again")).to_have_count(0)
        warning = page.get_by_text("Beta cannot see pictures. It is asked without sea.png.")
        await expect(warning).to_be_visible()
        await page.get_by_role("button", name="Remove Beta").click()
        await expect(warning).to_be_hidden()
        await page.get_by_role("button", name="Remove film.bin").click()
        await conversation.ask("What do you see?")
        await expect(conversation.reply("Alpha", "finished")).to_be_visible()
        await conversation.reply("Alpha").focus()
        await page.keyboard.press("r")
        receipt = page.get_by_role("complementary", name="What was sent")
        await receipt.get_by_role("button", name="sea.png attached", exact=True).click()
        await expect(receipt.get_by_role("img", name="sea.png")).to_have_js_property("naturalWidth", 8)
        await windows.close()
        windows.must_have_no_problems()


async def test_a_model_whose_window_is_too_small_is_named_and_can_be_left_out(
    browser: Browser, upstream: Upstream, tmp_path: Path
) -> None:
    small = endpoints(upstream).replace('"id": "gamma"', '"window": 1200, "id": "gamma"')
    async with running(tmp_path, {"TERTULIA_ENDPOINTS": small}) as tertulia:
        windows = Windows(browser, tertulia.url)
        page = await windows.open(await tertulia.set_up("Sam"), "/new")
        conversation = ConversationWithFiles(page)
        await conversation.seat("Alpha", "Gamma")
        await conversation.field.fill("word " * 3000)
        warning = page.get_by_role("status").filter(has_text="Gamma")
        await expect(warning).to_contain_text(re.compile("has room for [0-9]+ tokens"))
        await page.screenshot(path=tmp_path / "over.png")
        await must_be_accessible(page)
        await warning.get_by_role("button", name="Leave it out").click()
        await expect(page.get_by_role("button", name="Remove Gamma")).to_have_count(0)
        await expect(warning).to_have_count(0)
        await windows.close()
        windows.must_have_no_problems()


async def test_taking_a_failed_question_back_restores_its_files(
    windows: Windows, page: Page, upstream: Upstream
) -> None:
    windows.allow("status of 500")
    conversation = ConversationWithFiles(page)
    await conversation.seat("Alpha")
    await conversation.attach([TEXT])
    await expect(conversation.chip("rota.md")).to_contain_text("44 B")
    refused = '{"code": "unexpected", "message": "Try again in a moment."}'
    await page.route("**/api/turn", lambda route: route.fulfill(status=500, body=refused))
    await conversation.ask("Who has the pager?")
    await expect(conversation.attached).to_have_count(1)
    await page.unroute("**/api/turn")
    await page.get_by_role("button", name="Take back").click()
    await expect(page).to_have_url(re.compile("/new$"))
    await expect(conversation.chip("rota.md")).to_be_visible()
    await expect(conversation.field).to_have_value("Who has the pager?")


async def test_a_phone_attaches_files_in_the_message_sheet(
    windows: Windows, sam: Person, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.says("Mateo has it.")
    page = await windows.open(sam, "/new", PHONE, is_mobile=True, has_touch=True)
    conversation = ConversationWithFiles(page)
    await page.get_by_role("button", name="Ask all").tap()
    await conversation.attach([TEXT, PICTURE])
    await conversation.field.fill("Who has the pager on Tuesday?")
    await expect(conversation.chip("sea.png")).to_contain_text("65 B")
    await page.screenshot(path=tmp_path / "sheet.png")
    await must_be_accessible(page)
    await page.keyboard.press("Escape")
    await expect(page.get_by_text("2 files attached")).to_be_visible()
    await page.get_by_role("button", name="Who has the pager").tap()
    await page.get_by_role("dialog").get_by_role("button", name="Send").tap()
    await expect(conversation.attached).to_have_count(2)
    await page.screenshot(path=tmp_path / "round.png")
    await conversation.attached.get_by_role("button", name="rota.md").tap()
    await expect(page.get_by_role("dialog", name="Attached file")).to_contain_text("with Mateo")
