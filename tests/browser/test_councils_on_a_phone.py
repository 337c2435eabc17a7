"""A council on a phone: one tap leads from every reply to the summary."""

from __future__ import annotations

import json
import re
from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.browser.windows import PHONE, Windows
from tests.upstream.scripted import Upstream, says
from tests.world import Person

ALPHA = "Sign-in success by platform. " + "A long answer. " * 200
OUTLINE = json.dumps(
    {
        "headline": "Watch sign-in success.",
        "agreement": [],
        "tensions": [],
        "next_steps": [],
        "map": [
            {
                "topic": "Sign-in success",
                "cells": [
                    {"who": "Alpha", "stance": "agrees", "quote": "Sign-in success by platform"},
                    {"who": "Beta", "stance": "agrees", "quote": "Another"},
                ],
            }
        ],
    }
)


async def test_a_button_leads_from_the_tabs_to_the_summary(
    windows: Windows, sam: Person, upstream: Upstream
) -> None:
    upstream.says("A long answer. " * 200, model="alpha")
    upstream.says("Another. " * 50, model="beta")
    replies = await sam.ask_and_wait("Shall we?", "alpha", "beta", mode="brain_trust")
    page = await windows.open(
        sam, f"/c/{replies[0]['conversation_id']}", PHONE, is_mobile=True, has_touch=True
    )
    await expect(page.get_by_role("tab", name="Alpha")).to_be_visible()
    summary = page.get_by_role("heading", name="Summary")
    await expect(summary).not_to_be_in_viewport()
    await page.get_by_role("button", name="Summary", exact=True).tap()
    await expect(summary).to_be_in_viewport()
    await _must_be_uncovered(summary)


async def test_a_tab_leads_from_the_summary_back_to_its_reply(
    windows: Windows, sam: Person, upstream: Upstream
) -> None:
    upstream.plays(says(ALPHA), says("The summary. " * 200), says("no data"), model="alpha")
    upstream.says("Another. " * 50, model="beta")
    page = await _council(windows, sam, "brain_trust", "alpha", "beta")
    alpha = page.get_by_role("tabpanel", name="Alpha").get_by_text("Sign-in success by platform")
    summary = page.get_by_role("button", name="Summary", exact=True)
    await summary.tap()
    await expect(alpha).not_to_be_in_viewport()
    await page.get_by_role("tab", name="Alpha").tap()
    await expect(alpha).to_be_in_viewport()
    await _must_be_uncovered(alpha)
    await summary.tap()
    await page.get_by_role("tab", name="Beta").tap()
    await expect(page.get_by_role("tabpanel", name="Beta").get_by_text("Another.")).to_be_in_viewport()


async def test_a_cell_of_the_agreement_map_leads_to_its_reply(
    windows: Windows, sam: Person, upstream: Upstream
) -> None:
    upstream.plays(says(ALPHA), says("The summary."), says(OUTLINE), model="alpha")
    upstream.says("Another. " * 50, model="beta")
    page = await _council(windows, sam, "brain_trust", "alpha", "beta")
    table = page.get_by_role("complementary", name="Agreement map")
    await table.get_by_role("button", name="Beta agrees, show the sentence").tap()
    await table.get_by_role("button", name="Beta, read the reply").tap()
    await expect(page.get_by_role("tab", name="Beta")).to_have_attribute("aria-selected", "true")
    await expect(page.get_by_role("tabpanel", name="Beta").get_by_text("Another.")).to_be_in_viewport()


async def test_each_step_of_a_peer_review_has_its_own_tabs(
    windows: Windows, sam: Person, upstream: Upstream
) -> None:
    upstream.says("Answer A is best.\n\nRanking: A > B")
    page = await _council(windows, sam, "peer_review", "alpha", "beta", "gamma")
    tabs = page.get_by_role("tablist", name="Replies")
    answers, reviews = (
        tabs.nth(step).get_by_role("tab", selected=True) for step in range(await tabs.count())
    )
    await tabs.first.get_by_role("tab", name="Beta").tap()
    await tabs.last.get_by_role("tab", name="Gamma").tap()
    await expect(reviews).to_have_accessible_name(re.compile("Gamma"))
    await expect(answers).to_have_accessible_name(re.compile("Beta"))
    ids = await page.locator("[role=tab], [role=tabpanel]").evaluate_all(
        "(parts) => parts.map((part) => part.id)"
    )
    assert len(set(ids)) == len(ids) == 12


async def _council(windows: Windows, sam: Person, mode: str, *models: str) -> Page:
    replies: list[dict[str, Any]] = await sam.ask_and_wait("Shall we?", *models, mode=mode)
    path = f"/c/{replies[0]['conversation_id']}"
    page = await windows.open(sam, path, PHONE, is_mobile=True, has_touch=True)
    await expect(page.get_by_role("tab", name="Alpha").first).to_be_visible()
    return page


async def _must_be_uncovered(element: Locator) -> None:
    """Checks that no sticky element covers its first line."""
    assert await element.evaluate("""(element) => {
        const { left, top } = element.getBoundingClientRect();
        const there = document.elementFromPoint(left + 8, top + 8);
        return there !== null && (element.contains(there) || there.contains(element));
    }""")
