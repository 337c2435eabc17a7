"""Files with active content are downloaded instead of shown, and an image is only an image."""

from __future__ import annotations

from contextlib import suppress

import pytest
from playwright.async_api import Error, Page

from tests.browser.windows import Windows
from tests.library.documents import pdf, png
from tests.world import Person

SCRIPT = "<script>canary()</script>"
ACTIVE = {
    "page.html": f"<!doctype html><body onload='canary()'>{SCRIPT}".encode(),
    "photo.png": f"<html>{SCRIPT}</html>".encode(),
    "drawing.svg": f"<svg xmlns='http://www.w3.org/2000/svg' onload='canary()'>{SCRIPT}</svg>".encode(),
    "utf7.txt": b"+ADw-script+AD4-canary()+ADw-/script+AD4-",
    "page.xhtml": f"<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'>{SCRIPT}</html>".encode(),
    "paper.pdf": pdf(["x"], "/OpenAction << /S /JavaScript /JS (app.alert\\(1\\)) >>"),
}


VIEWER = ("Applying inline style violates", "Blocked script execution in .* sandboxed")
"""The sandbox blocks Chromium's own image page and the script of the page monitor."""


@pytest.mark.parametrize(("name", "content"), ACTIVE.items(), ids=ACTIVE.keys())
async def test_active_content_is_downloaded_and_never_shown(
    page: Page, sam: Person, name: str, content: bytes
) -> None:
    uploaded = await sam.upload(name, content)
    url = f"/api/projects/{sam.home}/files/{uploaded['id']}"
    url_before = page.url
    for path in (url, f"{url}?inline=true", f"{url}/versions/1?inline=true"):
        async with page.expect_download() as download_info:
            with suppress(Error):  # goto fails when the response becomes a download
                await page.goto(path)
        download = await download_info.value
        assert download.suggested_filename == name
        assert page.url == url_before


async def test_a_script_disguised_as_an_image_is_never_run(windows: Windows, page: Page, sam: Person) -> None:
    """It is a broken image when opened, and a frame with it is blocked."""
    windows.allow(*VIEWER, "Content Security Policy", "the policy stopped")
    uploaded = await sam.upload("both.gif", b"GIF89a\x01\x00\x01\x00=1;canary()//")
    url = f"/api/projects/{sam.home}/files/{uploaded['id']}?inline=true"
    await page.evaluate(
        """(where) => {
            const frame = document.createElement('iframe');
            frame.src = where;
            document.body.append(frame);
        }""",
        url,
    )
    answer = await page.goto(url)
    assert answer is not None
    assert answer.headers["content-type"] == "image/gif"


async def test_an_image_is_shown_in_a_sandbox(windows: Windows, page: Page, sam: Person) -> None:
    windows.allow(*VIEWER)
    uploaded = await sam.upload("cat.png", png(2, 2))
    answer = await page.goto(f"/api/projects/{sam.home}/files/{uploaded['id']}?inline=true")
    assert answer is not None
    assert answer.headers["content-type"] == "image/png"
    assert "sandbox" in answer.headers["content-security-policy"]
