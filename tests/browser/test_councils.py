"""A council as one sees it: advisors, the synthesis with its map, a second opinion tied to the words."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tertulia.app import new_id
from tests.browser.room import Room, in_parts, stored
from tests.browser.windows import PHONE, Windows
from tests.upstream.scripted import Finish, Hold, Say, Upstream, refuses, says, words
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
    await expect(table).to_contain_text("Alpha 2 does not mention it")
    await expect(table).to_contain_text("Gamma is absent")
    await expect(table).not_to_contain_text("Gamma does not mention it")
    await expect(table).to_contain_text("0 of 2 topics shared by all")
    await expect(table).not_to_contain_text("%")
    sides = synthesis.get_by_role("region", name="Who takes which side").get_by_role("listitem")
    await expect(sides).to_have_text(
        [re.compile("Beta.*status page", re.S), re.compile("Alpha.*read as failure", re.S)]
    )
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


async def test_a_synthesis_says_what_it_read_and_can_be_written_again_with_who_came_late(
    windows: Windows, sam: Person, trust: str, upstream: Upstream, tmp_path: Path
) -> None:
    more = asyncio.Event()
    upstream.plays(in_parts("Here ", more, "after all."), model="gamma")
    upstream.plays(says("Now with everyone."), says("no data"), model="alpha")
    page, other = await windows.open(sam, trust), await windows.open(sam, trust)
    room = Room(page)
    synthesis = page.get_by_role("article", name="Summary by Alpha")
    await room.reply("Gamma", "failed").get_by_role("button", name="Retry").click()
    await expect(synthesis).to_contain_text("Gamma is answering again.")
    await expect(synthesis).to_contain_text("having read three of four")
    more.set()
    again = synthesis.get_by_role("button", name="Write it again with Gamma")
    await expect(again).to_be_visible()
    await expect(synthesis).to_contain_text("having read three of four")
    await expect(synthesis).to_contain_text("Gamma answered after this was written.")
    await expect(room.reply("Gamma", "finished")).to_contain_text("not included in the summary")
    await page.screenshot(path=tmp_path / "written-again.png", full_page=True)
    await page.reload()
    await expect(synthesis).to_contain_text("having read three of four")
    await again.click()
    for each in (page, other):
        written = each.get_by_role("article", name="Summary by Alpha")
        await expect(written).to_contain_text("Now with everyone.")
        await expect(written).to_contain_text("having read all four")
    await expect(again).to_have_count(0)
    await synthesis.get_by_role("button", name="Earlier version").click()
    await expect(synthesis).to_contain_text("having read three of four")
    await expect(again).to_have_count(0)


async def test_what_is_written_again_after_the_synthesis_is_an_earlier_version_to_it(
    windows: Windows, sam: Person, trust: str, upstream: Upstream
) -> None:
    upstream.says("Rather two numbers.", model="beta")
    page = await windows.open(sam, trust)
    beta = (await stored(sam, trust.rpartition("/")[2]))["Beta"]
    await sam.post(f"/api/messages/{beta['id']}/retry", {"id": new_id()}, expect=202)
    synthesis = page.get_by_role("article", name="Summary by Alpha")
    await expect(synthesis).to_contain_text("having read three of four, one in an earlier version")
    await expect(Room(page).reply("Beta", "finished")).to_contain_text("the summary has an earlier version")
    await expect(synthesis.get_by_role("button", name="Write it again with Beta")).to_be_visible()


async def test_the_words_of_the_synthesis_stay_where_they_are_read_when_the_outline_comes(
    page: Page, upstream: Upstream
) -> None:
    room, more, drawn = Room(page), asyncio.Event(), asyncio.Event()
    script = (*(Say(part) for part in words(OUTLINE)), Hold(drawn), Finish())
    upstream.plays(
        says(ALPHA), in_parts(f"{SYNTHESIS}- And ", more, "one thing more."), script, model="alpha"
    )
    upstream.plays(says(BETA), model="beta")
    await room.seat("Alpha", "Beta")
    await page.get_by_role("button", name=re.compile("^Mode")).click()
    await page.get_by_role("option", name=re.compile("^Brain trust")).click()
    await room.ask("Well?")
    words_of = page.locator("article[data-lane*='synthesis'] .words")
    first = words_of.get_by_text("Watch sign-in success above all, split by platform.")
    await expect(words_of).to_contain_text("And")
    node, before = await first.element_handle(), await first.bounding_box()
    more.set()
    await expect(page.get_by_text("Drawing the agreement map")).to_be_visible()
    drawn.set()
    await expect(page.get_by_role("complementary", name="Agreement map")).to_be_visible()
    assert node is not None
    assert before is not None
    assert await node.evaluate("node => node.isConnected && node.innerText.includes('Pause if it falls')")
    after = await first.bounding_box()
    assert after is not None
    assert (after["x"], after["width"], after["height"]) == (before["x"], before["width"], before["height"])
    await expect(words_of).to_contain_text("one thing more.")


async def test_a_peer_review_is_read_with_names_and_its_places_stand_above_the_synthesis(
    windows: Windows, sam: Person, upstream: Upstream, tmp_path: Path
) -> None:
    for name in ("alpha", "beta"):
        upstream.plays(
            says(f"I am {name}."), says("Answer B is right, A is vague.\n\n**Ranking: B > A**"), model=name
        )
    upstream.plays(says("I am gamma."), says("I like them both."), model="gamma")
    chair = {"model": "voices:gamma"}
    replies = await sam.hear("Who?", "alpha", "beta", "gamma", mode="peer_review", chair=chair)
    by_alpha = next(r for r in replies if r["step"] == "review" and r["voice"]["name"] == "Alpha")
    named = {one["label"]: one["name"] for one in by_alpha["read_replies"]}
    first, second = named["Answer B"], named["Answer A"]
    page = await windows.open(sam, f"/c/{replies[0]['conversation_id']}")
    review = page.locator("article.advisor[data-lane*='alpha'][data-lane*='review']")
    await expect(review).to_contain_text(f"{first} is right, {second} is vague.")
    await expect(review).to_contain_text(f"{first} > {second}")
    places = page.get_by_role("region", name="Places")
    row = places.get_by_role("row").filter(has=page.get_by_role("rowheader", name=first))
    await expect(row).to_contain_text("place 1 for Alpha")
    await expect(places).to_contain_text("Beta does not rank its own answer")
    await expect(places).to_contain_text("No order could be read in the review by Gamma.")
    await review.get_by_role("button", name="Read all").click()
    whole = page.locator("article.reply[data-lane*='review']")
    await expect(whole).to_contain_text(f"{first} is right")
    await expect(whole).to_contain_text(f"Reviewed without names: A was {second}, B was {first}.")
    await page.screenshot(path=tmp_path / "peer-review-places.png", full_page=True)
    await page.keyboard.press("t")
    await page.screenshot(path=tmp_path / "peer-review-places-dark.png", full_page=True)


async def test_the_places_of_a_peer_review_fit_a_phone(
    windows: Windows, sam: Person, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.says("Ranking: C > B > A")
    replies = await sam.hear("Who?", "alpha", "beta", "gamma", "alpha", mode="peer_review")
    page = await windows.open(
        sam, f"/c/{replies[0]['conversation_id']}", PHONE, is_mobile=True, has_touch=True
    )
    places = page.get_by_role("region", name="Places")
    await expect(places.get_by_role("row")).to_have_count(5)
    await places.scroll_into_view_if_needed()
    await page.screenshot(path=tmp_path / "places-phone.png")
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


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


async def test_a_second_opinion_stays_in_view_when_its_round_is_given_a_summary(
    windows: Windows, sam: Person, upstream: Upstream
) -> None:
    upstream.plays(says(ANSWER), says("Both."), model="alpha")
    upstream.plays(says(CRITIQUE), model="beta")
    [answer, _] = await sam.hear("Why did sign-in fail for some?", "alpha", "beta", mode="second_opinion")
    path = f"/api/conversations/{answer['conversation_id']}/rounds/1/synthesis"
    opened = await sam.post(path, {"id": new_id()}, expect=202)
    await sam.ended(opened["turn"]["id"])
    page = await windows.open(sam, f"/c/{answer['conversation_id']}")
    summary = page.get_by_role("article", name="Summary by Alpha")
    await expect(summary).to_contain_text("having read both")
    await expect(Room(page).reply("Beta", "finished")).to_contain_text("The cause is right.")


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
