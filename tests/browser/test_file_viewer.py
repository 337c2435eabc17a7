"""The file viewer: rendered Markdown, highlighted code, and no search flags for files without text."""

from __future__ import annotations

from playwright.async_api import Locator, Page, expect

from tests.browser.windows import Windows
from tests.world import Person

PLAN = b"# The plan\n\n- **One** thing\n- `another_one`\n\n<script>canary()</script>\n"
CODE = b'def greet(name):\n    """Says hello,\n    over two lines."""\n    return f"hello {name}"\n'
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002"
    "0001e221bc330000000049454e44ae426082"
)


async def test_markdown_opens_rendered_and_can_switch_to_source(windows: Windows, sam: Person) -> None:
    file = await sam.upload("docs/plan.md", PLAN)
    page = await windows.open(sam, f"/p/{sam.home}?file={file['id']}")
    viewer = page.get_by_role("complementary", name="File")
    await expect(viewer.get_by_role("heading", name="The plan")).to_be_visible()
    await expect(viewer.locator(".prose strong")).to_have_text("One")
    await viewer.get_by_role("radio", name="Source").click()
    await expect(viewer.locator("li").nth(2)).to_contain_text("- **One** thing")


async def test_markdown_opens_as_source_when_the_address_names_lines(windows: Windows, sam: Person) -> None:
    file = await sam.upload("docs/plan.md", PLAN)
    page = await windows.open(sam, f"/p/{sam.home}?file={file['id']}&line=3&to=4")
    viewer = page.get_by_role("complementary", name="File")
    await expect(viewer.locator(".meant")).to_have_count(2)
    await expect(viewer.locator(".meant").first).to_contain_text("- **One** thing")


async def test_code_is_highlighted_and_keeps_its_text(windows: Windows, sam: Person) -> None:
    file = await sam.upload("src/greet.py", CODE)
    page = await windows.open(sam, f"/p/{sam.home}?file={file['id']}&line=2")
    viewer = page.get_by_role("complementary", name="File")
    lines = viewer.locator("li code")
    await expect(lines.first.locator(".hljs-keyword")).to_have_text("def")
    await expect(lines.nth(2).locator(".hljs-string")).to_be_visible()
    assert await lines.all_text_contents() == CODE.decode().rstrip("\n").split("\n")
    await expect(viewer.locator(".meant")).to_have_count(1)


async def test_files_without_text_have_no_checkboxes(windows: Windows, sam: Person) -> None:
    await sam.upload("sea.png", PICTURE)
    await sam.upload("plan.md", PLAN)
    page = await windows.open(sam, f"/p/{sam.home}")
    assert await _checkbox_count(page, "plan.md") == 3
    assert await _checkbox_count(page, "sea.png") == 0
    await expect(_row(page, "sea.png")).to_contain_text("not possible, it has no text")


def _row(page: Page, name: str) -> Locator:
    return page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=name))


async def _checkbox_count(page: Page, name: str) -> int:
    await expect(_row(page, name)).to_be_visible()
    return await _row(page, name).get_by_role("checkbox").count()
