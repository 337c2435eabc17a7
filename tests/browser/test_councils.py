"""A council as one sees it: advisors, the synthesis with its map, a second opinion tied to the words."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.room import Room, in_parts
from tests.browser.windows import PHONE, Windows
from tests.upstream.scripted import Upstream, refuses, says
from tests.world import Person

SYNTHESIS = """\
Watch sign-in success above all, split by platform. Pause if it falls half a point for ten minutes.

## Points of agreement
- Sign-in success is the first number. Every advisor begins there. (Alpha, Beta, Alpha 2)
- The stop rule is written before launch. (Alpha, Beta)

## Tensions
- **In public or in private?** Beta would put the numbers on the status page. Alpha would not. (Beta vs Alpha)

## Next steps
- Add platform to the sign-in event
- Draft the stop rule, one paragraph, no conditions
"""
ALPHA = "Sign-in success by platform, gateway p95, and **time to revoke**. Page on the first, chart the rest."
BETA = (
    "One number people believe beats five they explain away. Sign-in success, and put it on the status page."
)


def cell(who: str, stance: str, quote: str) -> dict[str, str]:
    return {"who": who, "stance": stance, "quote": quote}


OUTLINE = json.dumps(
    {
        "headline": "Watch sign-in success above all, split by platform.",
        "agreement": [{"text": "Sign-in success is the first number.", "who": ["Alpha", "Beta"]}],
        "tensions": [
            {
                "question": "In public or in private?",
                "sides": [
                    {"text": "Beta would put the numbers on the status page.", "who": ["Beta"]},
                    {"text": "Alpha expects noise to be read as failure.", "who": ["Alpha"]},
                ],
            }
        ],
        "next_steps": [{"text": "Add platform to the sign-in event", "who": []}],
        "map": [
            {
                "topic": "Sign-in success first",
                "cells": [
                    cell("Alpha", "agrees", "Sign-in success by platform"),
                    cell("Beta", "agrees", "Sign-in success, and put it on the status page"),
                    cell("Alpha 2", "partly", "words it never said"),
                ],
            },
            {
                "topic": "Numbers made public",
                "cells": [cell("Beta", "agrees", "put it on the status page")],
            },
        ],
    }
)


@pytest_asyncio.fixture(loop_scope="session")
async def trust(sam: Person, upstream: Upstream) -> str:
    """The path of a brain trust of four, one of which failed."""
    upstream.plays(
        says(ALPHA), says("Write the stop rule today."), says(SYNTHESIS), says(OUTLINE), model="alpha"
    )
    upstream.plays(says(BETA), model="beta")
    upstream.plays(refuses(401), model="gamma")
    table = ("alpha", "beta", "gamma", "alpha")
    replies = await sam.hear("Which numbers, and what should make us stop?", *table, mode="brain_trust")
    return f"/c/{replies[0]['conversation_id']}"


async def test_a_brain_trust_of_four_shows_who_failed_and_what_the_others_hold(
    windows: Windows, sam: Person, trust: str, tmp_path: Path
) -> None:
    page = await windows.open(sam, trust)
    room = Room(page)
    synthesis = page.get_by_role("article", name="Summary by Alpha")
    await expect(synthesis.get_by_role("heading", name="Points of agreement")).to_be_visible()
    await expect(synthesis).to_contain_text("having read three of four")
    await expect(room.reply("Gamma", "failed")).to_contain_text("not included in the summary")
    await expect(room.feed).to_contain_text("Brain trust")
    await page.screenshot(path=tmp_path / "brain-trust.png", full_page=True)

    table = page.get_by_role("complementary", name="Agreement map")
    await expect(table.get_by_role("row")).to_have_count(3)
    await expect(table).to_contain_text("Alpha 2 is silent")
    await table.get_by_role("button", name="Alpha agrees, show the sentence").click()
    await expect(table.locator("blockquote")).to_have_text("“Sign-in success by platform”")
    await table.get_by_role("button", name="Alpha, read the reply").click()
    await expect(room.words("Alpha").first).to_contain_text("chart the rest")
    await page.keyboard.press("t")
    await page.screenshot(path=tmp_path / "brain-trust-dark.png", full_page=True)


async def test_an_advisor_that_failed_can_be_tried_again_from_its_card(
    windows: Windows, sam: Person, trust: str, upstream: Upstream
) -> None:
    upstream.says("Here after all.", model="gamma")
    page = await windows.open(sam, trust)
    room = Room(page)
    await room.reply("Gamma", "failed").get_by_role("button", name="Retry").click()
    await expect(room.reply("Gamma", "finished")).to_contain_text("Here after all.")


async def test_a_brain_trust_on_a_phone_is_read_by_tabs_and_then_the_synthesis(
    windows: Windows, sam: Person, trust: str, tmp_path: Path
) -> None:
    page = await windows.open(sam, trust, PHONE, is_mobile=True, has_touch=True)
    await expect(page.get_by_role("tablist", name="Replies").get_by_role("tab")).to_have_count(4)
    await expect(page.get_by_role("article", name="Summary by Alpha")).to_be_attached()
    await page.get_by_role("article", name="Summary by Alpha").scroll_into_view_if_needed()
    await page.screenshot(path=tmp_path / "brain-trust-phone.png")
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


async def test_the_synthesis_is_seen_coming_word_by_word(page: Page, upstream: Upstream) -> None:
    room, more = Room(page), asyncio.Event()
    upstream.plays(says("Mine."), in_parts("Bringing it ", more, "together."), says("{}"), model="alpha")
    await room.seat("Alpha", "Beta")
    await page.get_by_role("button", name=re.compile("^Mode")).click()
    await page.get_by_role("option", name=re.compile("^Brain trust")).click()
    await room.ask("Well?")
    writing = page.get_by_role("article", name=re.compile("^Alpha, .*writing$"))
    await expect(writing).to_contain_text("Bringing it")
    await expect(room.feed).to_contain_text("2 of 3 finished")
    more.set()
    await expect(page.get_by_text("Bringing it together.")).to_be_visible()


ANSWER = """\
Two groups signed in that morning, and only one of them met the lagging replica.

The gateway reads **warm sessions** from memory, so they never touched the database.

This explains all of the 1,912 failures, and the loop that some described. It has held since.
"""
CRITIQUE = """\
Verdict: mostly holds. The cause is right. One claim is wrong and one is not shown.

1. "The gateway reads warm sessions from memory" - checks out: confirmed in the gateway source.
2. "all of the 1,912 failures" - wrong: 140 are expired passwords. Instead: "1,772 of the 1,912 failures"
3. "It has held since" - not shown: nothing in the project records a test after the repair.
"""


async def test_a_second_opinion_points_at_the_words_it_is_about(
    windows: Windows, sam: Person, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.plays(says(ANSWER), says("Revised: 1,772 of them."), model="alpha")
    upstream.plays(says(CRITIQUE), model="beta")
    replies = await sam.hear("Why did sign-in fail for some?", "alpha", "beta", mode="second_opinion")
    page = await windows.open(sam, f"/c/{replies[0]['conversation_id']}")
    critique = page.get_by_role("article", name="Second opinion by Beta")
    await expect(critique).to_contain_text("Mostly holds")
    await expect(critique.get_by_role("listitem")).to_have_count(3)
    marked = Room(page).words("Alpha").locator("mark[data-n]")
    await expect(marked).to_have_count(3)
    await expect(Room(page).words("Alpha").locator("mark[data-note='2']")).to_have_text(
        "all of the 1,912 failures"
    )
    await page.screenshot(path=tmp_path / "second-opinion.png", full_page=True)
    await critique.get_by_role("button", name="Note 2, show what it is about").focus()
    await expect(Room(page).words("Alpha").locator("mark[data-note='2']")).to_have_class(re.compile("lit"))
    await page.keyboard.press("t")
    await page.screenshot(path=tmp_path / "second-opinion-dark.png", full_page=True)

    await critique.get_by_role("button", name="Ask Alpha to revise").click()
    await expect(page.get_by_text("Revised: 1,772 of them.")).to_be_visible()
    kept = await sam.get(f"/api/conversations/{replies[0]['conversation_id']}")
    assert kept["conversation"]["mode"] == "second_opinion"
    assert kept["rounds"][-1]["messages"][0]["reply_to_id"] == replies[1]["id"]


@pytest.mark.parametrize("mode", ["debate", "peer_review", "relay"])
async def test_every_mode_can_be_read_to_its_end(
    windows: Windows, sam: Person, upstream: Upstream, mode: str, tmp_path: Path
) -> None:
    replies = await sam.hear("Tea or coffee?", "alpha", "beta", mode=mode)
    page = await windows.open(sam, f"/c/{replies[0]['conversation_id']}")
    name = {"debate": "Debate", "peer_review": "Peer review", "relay": "One after another"}[mode]
    await expect(Room(page).feed).to_contain_text(f"Round 1 · {name}")
    for reply in replies:
        if reply["step"] != "outline":
            await expect(page.locator(f"[data-lane*='{reply['voice']['id']}']").first).to_be_visible()
    if mode != "relay":
        await expect(page.get_by_role("heading", name="Summary")).to_be_visible()
    await page.screenshot(path=tmp_path / f"{mode}.png", full_page=True)
