"""Files that would act when a browser shows them are saved by it instead, and a picture is only a picture."""

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
"""The page Chromium itself puts around a picture, and this watch's own script, are stopped by the sandbox."""


@pytest.mark.parametrize(("name", "content"), ACTIVE.items(), ids=ACTIVE.keys())
async def test_what_would_act_is_saved_and_not_shown(
    page: Page, sam: Person, name: str, content: bytes
) -> None:
    made = await sam.upload(name, content)
    where = f"/api/projects/{sam.home}/files/{made['id']}"
    here = page.url
    for path in (where, f"{where}?inline=true", f"{where}/versions/1?inline=true"):
        async with page.expect_download() as saving:
            with suppress(Error):  # a page that becomes a download is no page
                await page.goto(path)
        saved = await saving.value
        assert saved.suggested_filename == name
        assert page.url == here


async def test_a_script_that_calls_itself_a_picture_is_never_run(
    windows: Windows, page: Page, sam: Person
) -> None:
    """Opened by itself it is a broken picture, in a page of ours it gets no frame."""
    windows.expect(*VIEWER, "Content Security Policy", "the policy stopped")
    made = await sam.upload("both.gif", b"GIF89a\x01\x00\x01\x00=1;canary()//")
    where = f"/api/projects/{sam.home}/files/{made['id']}?inline=true"
    await page.evaluate(
        """(where) => {
            const frame = document.createElement('iframe');
            frame.src = where;
            document.body.append(frame);
        }""",
        where,
    )
    answer = await page.goto(where)
    assert answer is not None
    assert answer.headers["content-type"] == "image/gif"


async def test_a_picture_is_shown_without_anything_around_it(
    windows: Windows, page: Page, sam: Person
) -> None:
    windows.expect(*VIEWER)
    made = await sam.upload("cat.png", png(2, 2))
    answer = await page.goto(f"/api/projects/{sam.home}/files/{made['id']}?inline=true")
    assert answer is not None
    assert answer.headers["content-type"] == "image/png"
    assert "sandbox" in answer.headers["content-security-policy"]
