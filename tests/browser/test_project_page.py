"""The project page: files are uploaded, searched, read and changed, and every error has a message."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, FilePayload, Locator, Page, Route, expect

from tests.browser.conversation_page import ConversationPage
from tests.browser.test_accessibility import axe_script, must_be_accessible
from tests.browser.windows import PHONE, Windows
from tests.library.documents import png, zipped
from tests.patience import soon
from tests.upstream.scripted import Upstream
from tests.world import Person, endpoints, running

NOTES = b"# Refresh\n\nA refresh token is used once.\nThe old token is marked revoked.\n"

DROP = """
    ([files, target]) => {
        const carried = new DataTransfer();
        for (const [name, text] of files) carried.items.add(new File([text], name));
        const where = document.querySelector(target);
        const manner = { dataTransfer: carried, bubbles: true, cancelable: true };
        for (const kind of ['dragover', 'drop']) where.dispatchEvent(new DragEvent(kind, manner));
    }
"""

ALL_VIOLATIONS = """
    async () => (await axe.run(document)).violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`)
"""


class ProjectPage:
    """Page object of a project."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.files = page.get_by_role("group", name="Files")
        self.uploads = page.get_by_role("list", name="Uploads")

    def row(self, path: str) -> Locator:
        more = self.page.get_by_role("button", name=f"More for {path}", exact=True)
        return self.files.get_by_role("row").filter(has=more)

    def flag(self, about: str, path: str) -> Locator:
        return self.files.get_by_role("checkbox", name=f"{about}, {path}", exact=True)

    async def drop(self, *files: tuple[str, str], on: str = ".page") -> None:
        await self.page.evaluate(DROP, [files, on])

    async def choose(self, path: str, action: str) -> None:
        await self.page.get_by_role("button", name=f"More for {path}", exact=True).click()
        await self.page.get_by_role("menuitem", name=action).click()

    async def upload(self, name: str, content: bytes) -> None:
        async with self.page.expect_file_chooser() as choosing:
            await self.page.get_by_role("button", name="Upload", exact=True).click()
        chosen: FilePayload = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
        await (await choosing.value).set_files(chosen)


@pytest_asyncio.fixture(loop_scope="session")
async def project_page(windows: Windows, sam: Person, upstream: Upstream) -> AsyncIterator[ProjectPage]:
    page = await windows.open(sam, f"/p/{sam.home}")
    await expect(page.get_by_role("heading", name="Add files")).to_be_visible()
    yield ProjectPage(page)


async def test_files_dropped_on_the_page_are_uploaded_and_one_upload_is_cancelled(
    project_page: ProjectPage,
) -> None:
    release = asyncio.Event()

    async def hold_request(route: Route) -> None:
        await release.wait()
        await route.continue_()

    await project_page.page.route(re.compile(r"/files\?path="), hold_request)
    await project_page.drop(("one.md", "# One\n"), ("two.py", "print(2)\n"), ("three.csv", "a,b\n"))
    items = project_page.uploads.get_by_role("listitem")
    await expect(items).to_have_count(3)
    await expect(items.first).to_contain_text("uploading, 0 B of 6 B")
    await expect(project_page.page.get_by_role("progressbar", name="Uploading one.md")).to_be_visible()
    await project_page.page.get_by_role("button", name="Cancel two.py").click()
    release.set()
    await expect(project_page.row("three.csv")).to_contain_text("passage")
    await expect(project_page.row("one.md")).to_contain_text("passage")
    await expect(project_page.row("two.py")).to_have_count(0)
    await expect(project_page.uploads).to_have_count(0)
    await expect(project_page.page.get_by_role("tab", name="Files")).to_have_text(re.compile("2$"))


async def test_an_upload_cancelled_before_the_server_has_it_never_appears(
    sam: Person, project_page: ProjectPage
) -> None:
    """The upload request arrives after the cancellation, as if delayed by the network."""
    held_request: asyncio.Future[Route] = asyncio.get_running_loop().create_future()
    await project_page.page.route(re.compile(r"/files\?path="), lambda route: held_request.set_result(route))
    await project_page.drop(("late.md", "# Late\n"))
    async with soon():
        upload = await held_request
    async with project_page.page.expect_response(re.compile("/uploads/")) as response_info:
        await project_page.page.get_by_role("button", name="Cancel late.md").click()
    assert (await response_info.value).status == 204
    late_response = await sam.client.post(
        upload.request.url, content=b"# Late\n", headers={"Content-Type": "application/octet-stream"}
    )
    assert late_response.status_code == 409
    await project_page.page.unroute_all(behavior="ignoreErrors")
    await project_page.upload("next.md", b"# Next\n")
    await expect(project_page.row("next.md")).to_contain_text("passage")
    await expect(project_page.row("late.md")).to_have_count(0)
    assert await paths_of(sam) == ["next.md"]


@pytest.mark.parametrize("is_archive", [False, True])
async def test_an_upload_cancelled_after_the_server_has_it_never_appears(
    sam: Person, project_page: ProjectPage, is_archive: bool
) -> None:
    """The response is held back, so the page cannot know that the file is stored."""
    answered: asyncio.Future[Route] = asyncio.get_running_loop().create_future()
    name, content = (
        ("many.zip", zipped({f"{n}.md": f"# {n}\n" for n in range(60)}))
        if is_archive
        else (
            "early.md",
            b"# Early\n",
        )
    )

    async def save(route: Route) -> None:
        response = await sam.client.post(
            route.request.url, content=content, headers={"Content-Type": "application/octet-stream"}
        )
        assert response.status_code == 201
        answered.set_result(route)

    await project_page.page.route(re.compile(r"/files\?(path|unzip)="), save)
    await record_rows(project_page.page)
    await project_page.upload(name, content)
    async with soon():
        await answered
    assert await paths_of(sam) != []
    async with project_page.page.expect_response(re.compile("/uploads/")) as response_info:
        await project_page.page.get_by_role("button", name=f"Cancel {name}").click()
    assert (await response_info.value).status == 204
    assert await paths_of(sam) == []
    await project_page.page.unroute_all(behavior="ignoreErrors")
    await project_page.upload("next.md", b"# Next\n")
    await expect(project_page.row("next.md")).to_contain_text("passage")
    assert await project_page.page.evaluate("window.recordedRows") == ["More for next.md"]


async def record_rows(page: Page) -> None:
    """Records every file that appears in the list, however briefly."""
    await page.evaluate("""
        () => {
            window.recordedRows = [];
            const rows = '[role=group][aria-label=Files] [aria-label^="More for "]';
            const note = () => {
                for (const button of document.querySelectorAll(rows)) {
                    const name = button.getAttribute('aria-label');
                    if (!window.recordedRows.includes(name)) window.recordedRows.push(name);
                }
            };
            new MutationObserver(note).observe(document.body, { childList: true, subtree: true });
        }
    """)


async def paths_of(person: Person) -> list[str]:
    return [file["path"] for file in (await person.get(f"/api/projects/{person.home}/files"))["items"]]


async def test_a_failed_upload_is_retried_and_the_queue_waits_for_it(
    windows: Windows, project_page: ProjectPage
) -> None:
    windows.allow("net::ERR_CONNECTION_RESET")
    page = project_page.page
    await page.route(re.compile(r"/files\?path="), lambda route: route.abort("connectionreset"))
    await project_page.drop(*((f"{name}.md", "# Words\n") for name in ("one", "two", "three", "four")))
    items = project_page.uploads.get_by_role("listitem")
    await expect(items.first).to_contain_text("The server cannot be reached.")
    await expect(items.last).to_contain_text("waiting")
    await page.get_by_role("tab", name="Leaderboard").click()
    await page.get_by_role("tab", name="Files").click()
    await page.unroute_all()
    await page.get_by_role("button", name="Try all again").click()
    await expect(project_page.row("one.md")).to_be_visible()
    await expect(project_page.row("four.md")).to_be_visible()
    await expect(project_page.uploads).to_have_count(0)


async def test_a_zip_is_unpacked_into_folders_unless_unpacking_is_off(project_page: ProjectPage) -> None:
    packed = zipped({"docs/a.md": "# A\n", "docs/deep/b.md": "# B\n", "top.txt": "top\n"})
    await project_page.upload("notes.zip", packed)
    await expect(project_page.row("docs/deep/b.md")).to_be_visible()
    folder = project_page.page.get_by_role("button", name="docs 2")
    await folder.click()
    await expect(folder).to_have_attribute("aria-expanded", "false")
    await expect(project_page.row("docs/a.md")).to_have_count(0)
    await expect(project_page.row("top.txt")).to_be_visible()
    await project_page.page.get_by_role("switch", name="Unpack zip files").click()
    await project_page.upload("whole.zip", packed)
    await expect(project_page.row("whole.zip")).to_be_visible()


async def test_a_text_file_is_created_edited_renamed_and_deleted(project_page: ProjectPage) -> None:
    page = project_page.page
    await page.get_by_role("button", name="New text file").click()
    dialog = page.get_by_role("dialog", name="New text file")
    await dialog.get_by_label("Path").fill("plan.md")
    await dialog.get_by_label("Text", exact=True).fill("# Plan\n\nWalk.\n")
    await dialog.get_by_role("button", name="Create file").click()
    await expect(dialog).to_be_hidden()

    await project_page.choose("plan.md", "Edit text")
    editor = page.get_by_role("dialog", name="Edit plan.md")
    await expect(editor.get_by_label("Text", exact=True)).to_have_value("# Plan\n\nWalk.\n")
    await editor.get_by_label("Text", exact=True).fill("# Plan\n\nRun.\n")
    await editor.get_by_role("button", name="Save as next version").click()
    await expect(editor).to_be_hidden()

    await project_page.choose("plan.md", "Rename and describe")
    details = page.get_by_role("dialog", name="Rename and describe")
    await details.get_by_label("Path").fill("docs/the plan.md")
    await details.get_by_label("Tags").fill("design, summer")
    await details.get_by_role("button", name="Save").click()
    await expect(project_page.row("docs/the plan.md")).to_contain_text("designsummer")

    await project_page.row("docs/the plan.md").get_by_role("button", name="the plan.md", exact=True).click()
    await expect(page.get_by_role("complementary", name="File")).to_contain_text("Run.")
    await page.get_by_role("button", name="Close").click()

    await project_page.choose("docs/the plan.md", "Delete")
    confirmation = page.get_by_role("alertdialog", name="Delete “docs/the plan.md”?")
    await expect(confirmation).to_contain_text("2 versions will be deleted for everyone.")
    await expect(confirmation.get_by_role("button", name="Cancel")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(confirmation).to_be_hidden()
    await expect(project_page.row("docs/the plan.md")).to_be_visible()
    await project_page.choose("docs/the plan.md", "Delete")
    await confirmation.get_by_role("button", name="Delete file").click()
    await expect(page.get_by_role("heading", name="Add files")).to_be_visible()


PRESS_ESCAPE_WHILE_CLOSING = """(question, editor) => {
    question.close();
    const key = new KeyboardEvent("keydown", {key: "Escape", bubbles: true, cancelable: true});
    editor.dispatchEvent(key);
}"""


async def test_a_concurrent_change_is_shown_and_no_version_is_lost(
    project_page: ProjectPage, sam: Person
) -> None:
    uploaded = await sam.upload("plan.md", b"Walk.\r\n")
    address = f"/api/projects/{sam.home}/files/{uploaded['id']}"
    await project_page.choose("plan.md", "Edit text")
    editor = project_page.page.get_by_role("dialog", name="Edit plan.md")
    text = editor.get_by_label("Text", exact=True)
    await expect(editor.get_by_role("button", name="Save as next version")).to_be_disabled()
    await text.fill("Run.\n")
    await sam.client.put(address, content=b"Swim.\n", headers={"Content-Type": "application/octet-stream"})
    await expect(editor.get_by_role("alert")).to_contain_text("Someone saved version 2 meanwhile.")
    confirmation = project_page.page.get_by_role("alertdialog", name="Discard your changes?")
    for _ in range(2):
        await project_page.page.keyboard.press("Escape")
        await expect(confirmation).to_be_visible()
        await project_page.page.keyboard.press("Escape")
        await expect(confirmation).to_be_hidden()
    await project_page.page.keyboard.press("Escape")
    await confirmation.evaluate(PRESS_ESCAPE_WHILE_CLOSING, await editor.element_handle())
    await expect(confirmation).to_be_visible()
    await confirmation.get_by_role("button", name="Cancel").click()
    await expect(text).to_have_value("Run.\n")
    await editor.get_by_role("button", name="Save mine as next version").click()
    await expect(editor).to_be_hidden()
    assert (await sam.client.get(address)).content == b"Run.\r\n"
    assert (await sam.client.get(f"{address}/versions/2")).content == b"Swim.\n"


async def test_versions_show_their_changes_and_can_be_restored(
    project_page: ProjectPage, sam: Person
) -> None:
    page = project_page.page
    await sam.upload("plan.md", b"Walk.\nRest.\n")
    await sam.upload("plan.md", b"Run.\nRest.\n")
    await project_page.choose("plan.md", "Versions")
    dialog = page.get_by_role("dialog", name="Versions of plan.md")
    newest = dialog.get_by_role("listitem").filter(has_text="Version 2")
    await newest.get_by_role("button", name="What changed").click()
    changes = dialog.get_by_role("group", name="Changes in version 2")
    await expect(changes.locator(".removed")).to_have_text("−Walk.")
    await expect(changes.locator(".added")).to_have_text("+Run.")
    await expect(newest.get_by_role("button", name="Restore")).to_have_count(0)
    await dialog.get_by_role("button", name="Restore").click()
    await expect(dialog.get_by_text("Version 3")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="plan.md", exact=True).click()
    await expect(page.get_by_role("complementary", name="File")).to_contain_text("Walk.")


async def test_flags_can_be_set_for_a_file_or_a_folder(project_page: ProjectPage, sam: Person) -> None:
    for path in ("docs/a.md", "docs/b.md"):
        await sam.upload(path, b"# Words\n")
    always, whole = "Always sent", project_page.flag("Always sent", "all of docs")
    await expect(whole).to_have_attribute("aria-checked", "false")
    await project_page.flag(always, "docs/a.md").click()
    await expect(project_page.flag(always, "docs/a.md")).to_be_checked()
    await expect(whole).to_have_attribute("aria-checked", "mixed")
    await expect(project_page.page.get_by_text("Every question includes docs/a.md")).to_be_visible()
    await whole.click()
    await expect(project_page.flag(always, "docs/b.md")).to_be_checked()
    await expect(project_page.page.get_by_text("Every question includes these 2 files")).to_be_visible()
    await project_page.flag("Searched for each question", "docs/a.md").click()
    await expect(project_page.row("docs/a.md")).to_contain_text("not indexed")


async def test_the_file_list_can_be_filtered_by_text_and_tags(project_page: ProjectPage, sam: Person) -> None:
    for path, tags in (("a.md", ["design"]), ("b.md", ["design", "summer"]), ("c.md", [])):
        uploaded = await sam.upload(path, b"# Words\n")
        url = f"/api/projects/{sam.home}/files/{uploaded['id']}/metadata"
        await sam.client.patch(url, json={"tags": tags})
    await expect(project_page.row("b.md")).to_contain_text("summer")
    await project_page.page.get_by_role("button", name="Tags").click()
    await (
        project_page.page.get_by_role("menuitemradio", name="summer")
        .or_(project_page.page.get_by_role("menuitemcheckbox", name="summer"))
        .click()
    )
    await expect(project_page.row("a.md")).to_have_count(0)
    await expect(project_page.row("b.md")).to_be_visible()
    await project_page.page.get_by_role("searchbox", name="Filter files").fill("zzz")
    await expect(project_page.page.get_by_text("No file matches.")).to_be_visible()


async def test_the_file_list_shows_the_indexing_state_live(project_page: ProjectPage, sam: Person) -> None:
    await sam.upload("good.md", NOTES)
    await sam.upload("bad.pdf", b"%PDF-1.4 and then nothing")
    await sam.upload("sea.png", png(8, 6))
    await expect(project_page.row("good.md")).to_contain_text(re.compile(r"\d passages?"))
    await expect(project_page.row("bad.pdf")).to_contain_text("unreadable")
    await expect(project_page.row("sea.png")).to_contain_text("not indexed")
    await project_page.row("bad.pdf").get_by_role("button", name="Why").click()
    await expect(project_page.page.get_by_role("dialog", name="Why bad.pdf")).to_contain_text("PDF")
    await project_page.page.keyboard.press("Escape")
    await expect(project_page.row("bad.pdf").get_by_role("button", name="Why")).to_be_focused()
    await project_page.page.get_by_role("button", name="sea.png", exact=True).click()
    picture = project_page.page.get_by_role("complementary", name="File").get_by_role("img", name="sea.png")
    await expect(picture).to_have_js_property("naturalWidth", 8)


async def test_the_address_of_a_file_opens_it_at_the_given_lines(windows: Windows, sam: Person) -> None:
    uploaded = await sam.upload("long.md", "".join(f"Line {n}\n" for n in range(1, 5001)).encode())
    page = await windows.open(sam, f"/p/{sam.home}?file={uploaded['id']}&line=4321&to=4330")
    viewer = page.get_by_role("complementary", name="File")
    await expect(viewer.locator("li.meant")).to_have_count(10)
    await expect(viewer.get_by_text("Line 4321", exact=True)).to_be_in_viewport()


async def test_the_test_search_opens_a_passage_in_its_file(project_page: ProjectPage, sam: Person) -> None:
    page = project_page.page
    await sam.upload("auth.md", NOTES)
    await expect(project_page.row("auth.md")).to_contain_text("passage")
    search_field = page.get_by_role("searchbox", name="Test search")
    await search_field.fill("how is a refresh token revoked?")
    await search_field.press("Enter")
    await expect(page.get_by_text(re.compile(r"1 passage in \d+ ms"))).to_be_visible()
    await page.get_by_role("button", name=re.compile("^auth.md line")).click()
    viewer = page.get_by_role("complementary", name="File")
    await expect(viewer.locator(".meant").first).to_contain_text("Refresh")
    await search_field.fill("zebra crossing")
    await search_field.press("Enter")
    await expect(page.get_by_text(re.compile(r"No match in \d+ ms"))).to_be_visible()


async def test_uploads_over_the_file_limit_or_the_quota_are_refused(
    browser: Browser, upstream: Upstream, tmp_path: Path
) -> None:
    limits = {"TERTULIA_UPLOAD_LIMIT_MIB": "1", "TERTULIA_QUOTA_MIB": "1"}
    async with running(tmp_path, {"TERTULIA_ENDPOINTS": endpoints(upstream)} | limits) as limited_server:
        sam = await limited_server.set_up("Sam")
        windows = Windows(browser, limited_server.url)
        windows.allow("status of 413", "status of 507", "status of 409")
        page = await windows.open(sam, f"/p/{sam.home}")
        project_page = ProjectPage(page)
        await project_page.upload("large.txt", b"x" * (2 << 20))
        await expect(project_page.uploads.get_by_role("alert")).to_contain_text("A file holds at most 1 MiB.")
        await page.get_by_role("button", name="Dismiss large.txt").click()
        await expect(project_page.uploads).to_have_count(0)
        await project_page.upload("first.txt", b"a" * (700 << 10))
        await expect(project_page.row("first.txt")).to_be_visible()
        await project_page.upload("second.txt", b"b" * (700 << 10))
        await expect(project_page.uploads.get_by_role("alert")).to_contain_text(
            "more than the 1 MiB you have"
        )
        await expect(project_page.row("second.txt")).to_have_count(0)
        await windows.close()
        windows.must_have_no_problems()


async def test_a_phone_shows_each_file_as_a_card(windows: Windows, sam: Person, tmp_path: Path) -> None:
    await sam.upload("docs/a rather long name for a file of notes.md", NOTES)
    page = await windows.open(sam, f"/p/{sam.home}", PHONE, is_mobile=True, has_touch=True)
    project_page = ProjectPage(page)
    row = project_page.row("docs/a rather long name for a file of notes.md")
    await expect(row).to_contain_text("passage")
    box = await row.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= PHONE["width"]
    assert box["height"] < 170
    await row.get_by_role("checkbox", name=re.compile("^Always")).tap()
    await expect(row.get_by_role("checkbox", name=re.compile("^Always"))).to_be_checked()
    await page.screenshot(path=tmp_path / "phone.png")
    await must_be_accessible(page)
    await row.get_by_role("button", name=re.compile("^a rather long")).tap()
    await expect(page.get_by_role("dialog", name="File")).to_contain_text("used once")


async def test_a_file_dropped_outside_a_drop_target_does_not_replace_the_page(
    windows: Windows, sam: Person
) -> None:
    page = await windows.open(sam, "/settings/appearance")
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert await page.evaluate(
        """() => {
            const dataTransfer = new DataTransfer();
            dataTransfer.items.add(new File(['words'], 'a.md'));
            const manner = { dataTransfer, bubbles: true, cancelable: true };
            const isHeld = (kind) => !document.body.dispatchEvent(new DragEvent(kind, manner));
            return ['dragover', 'drop'].every(isHeld);
        }"""
    )


async def test_a_viewer_has_no_controls_that_change_files(
    windows: Windows, sam: Person, administrator: Person
) -> None:
    shared = (await administrator.post("/api/projects", {"name": "Shared"}, expect=201))["id"]
    await administrator.put(f"/api/projects/{shared}/members", {"user_id": sam.id, "role": "viewer"})
    for content in (b"Walk.\n", b"Run.\n"):
        await administrator.upload("plan.md", content, shared)
    page = await windows.open(sam, f"/p/{shared}")
    project_page = ProjectPage(page)
    await expect(project_page.flag("Always sent", "plan.md")).to_be_disabled()
    await expect(page.get_by_role("button", name=re.compile("Upload|New text file"))).to_have_count(0)
    await project_page.drop(("mine.md", "# Mine\n"))
    await page.get_by_role("button", name="More for plan.md").click()
    await expect(page.get_by_role("menuitem")).to_have_text(["Versions", "Download"])
    await page.get_by_role("menuitem", name="Versions").click()
    dialog = page.get_by_role("dialog", name="Versions of plan.md")
    await expect(dialog.get_by_role("button", name="What changed")).to_have_count(2)
    await expect(dialog.get_by_role("button", name="Restore")).to_have_count(0)
    await expect(project_page.uploads).to_have_count(0)


async def test_the_project_page_opens_offline_and_loads_when_online_again(
    windows: Windows, page: Page, sam: Person
) -> None:
    windows.allow("ERR_INTERNET_DISCONNECTED", "WebSocket connection")
    await sam.upload("plan.md", b"Walk.\n")
    await page.wait_for_load_state("networkidle")
    await page.context.set_offline(True)
    await page.get_by_role("link", name="Project", exact=True).click()
    await expect(page.get_by_text("The files could not be listed.")).to_be_visible()
    await page.context.set_offline(False)
    await expect(ProjectPage(page).row("plan.md")).to_be_visible()


async def test_a_project_is_renamed_and_deleted_unless_it_is_the_last(
    windows: Windows, sam: Person, upstream: Upstream
) -> None:
    page = await windows.open(sam, f"/p/{sam.home}")
    more = page.get_by_role("button", name=re.compile("^More for "))
    await more.first.click()
    await expect(page.get_by_role("menuitem", name="Delete project")).to_have_count(0)
    project = await sam.post("/api/projects", {"name": "Kiln"}, expect=201)
    await page.goto(f"/p/{project['id']}")
    await page.get_by_role("button", name="More for Kiln").click()
    await page.get_by_role("menuitem", name="Rename and describe").click()
    dialog = page.get_by_role("dialog", name="Rename and describe")
    await dialog.get_by_label("Name").fill("The kiln")
    await dialog.get_by_label("Description").fill("Firing, and what came of it.")
    await dialog.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("heading", name="The kiln")).to_be_visible()
    await expect(page.get_by_role("main").get_by_text("Firing, and what came of it.")).to_be_visible()
    await page.get_by_role("button", name="More for The kiln").click()
    await page.get_by_role("menuitem", name="Delete project").click()
    await page.get_by_role("alertdialog").get_by_role("button", name="Delete project").click()
    await expect(page).to_have_url(re.compile("/new$"))
    assert [listed["id"] for listed in (await sam.get("/api/projects"))["items"]] == [sam.home]
    await ConversationPage(page).ask("Still here?")
    await expect(ConversationPage(page).question("Still here?")).to_be_visible()


async def test_unsaved_instructions_survive_leaving_the_page(project_page: ProjectPage, sam: Person) -> None:
    page = project_page.page
    await page.get_by_role("tab", name="Instructions and models").click()
    save = page.get_by_role("button", name="Save", exact=True)
    await expect(save.first).to_be_disabled()
    await page.get_by_role("textbox", name="Instructions").fill("Be brief.")
    await page.get_by_role("link", name="New conversation").click()
    await expect(page.get_by_role("heading", name="What would you like to ask?")).to_be_visible()
    await page.get_by_role("link", name="Project", exact=True).click()
    await page.get_by_role("tab", name="Instructions and models").click()
    await expect(page.get_by_role("textbox", name="Instructions")).to_have_value("Be brief.")
    await page.get_by_label("Lines per passage").fill("3")
    await save.first.click()
    await expect(page.get_by_text("From 5 to 1000 lines")).to_be_visible()
    await page.get_by_label("Lines per passage").fill("20")
    await save.first.click()
    await expect(page.get_by_text("Not saved yet")).to_have_count(0)
    project = (await sam.get(f"/api/projects/{sam.home}"))["project"]
    assert project["instructions"] == "Be brief."
    assert project["settings"]["retrieval_config"]["chunk_size"] == 20


@pytest.mark.parametrize("tab", ["Files", "Instructions and models"])
async def test_the_project_page_has_no_accessibility_violation_at_all(
    windows: Windows, sam: Person, tab: str
) -> None:
    await sam.upload("docs/a.md", NOTES)
    await sam.upload("bad.pdf", b"%PDF-1.4 and then nothing")
    page = await windows.open(sam, f"/p/{sam.home}")
    await expect(ProjectPage(page).row("bad.pdf")).to_contain_text("unreadable")
    await page.get_by_role("tab", name=tab).click()
    await page.emulate_media(reduced_motion="reduce")
    await page.evaluate(axe_script())
    assert await page.evaluate(ALL_VIOLATIONS) == []
    await must_be_accessible(page)
