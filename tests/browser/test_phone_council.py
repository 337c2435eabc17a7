"""A council on a phone: its summary is one tap away from every reply."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.windows import PHONE, Windows
from tests.upstream.scripted import Upstream
from tests.world import Person


async def test_a_phone_reaches_the_summary_from_the_tabs(
    windows: Windows, sam: Person, upstream: Upstream
) -> None:
    upstream.says("A long answer. " * 200, model="alpha")
    upstream.says("Another. " * 50, model="beta")
    replies = await sam.hear("Shall we?", "alpha", "beta", mode="brain_trust")
    page = await windows.open(
        sam, f"/c/{replies[0]['conversation_id']}", PHONE, is_mobile=True, has_touch=True
    )
    await expect(page.get_by_role("tab", name="Alpha")).to_be_visible()
    summary = page.get_by_role("heading", name="Summary")
    await expect(summary).not_to_be_in_viewport()
    await page.get_by_role("button", name="Summary", exact=True).tap()
    await expect(summary).to_be_in_viewport()
