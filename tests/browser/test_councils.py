"""Councils in the interface: advisors, the synthesis with its agreement map, second opinions with quotes."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tertulia.app import new_id
from tests.browser.conversation_page import ConversationPage, reply_in_parts, stored_replies
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
async def brain_trust_path(sam: Person, upstream: Upstream) -> str:
    """The path of a brain trust of four voices, one of which failed."""
    upstream.plays(
        says(ALPHA), says("Write the stop rule today."), says(SYNTHESIS), says(OUTLINE), model="alpha"
    )
    upstream.plays(says(BETA), model="beta")
    upstream.plays(refuses(401), model="gamma")
    table = ("alpha", "beta", "gamma", "alpha")
    replies = await sam.ask_and_wait(
        "Which numbers, and what should make us stop?", *table, mode="brain_trust"
    )
    return f"/c/{replies[0]['conversation_id']}"


async def test_a_brain_trust_shows_the_synthesis_the_map_and_the_failed_voice(
    windows: Windows, sam: Person, brain_trust_path: str, tmp_path: Path
) -> None:
    page = await windows.open(sam, brain_trust_path)
    conversation = ConversationPage(page)
    synthesis = page.get_by_role("article", name="Summary by Alpha")
    await expect(synthesis.get_by_role("heading", name="Points of agreement")).to_be_visible()
    await expect(synthesis).to_contain_text("having read three of four")
    await expect(conversation.reply("Gamma", "failed")).to_contain_text("not included in the summary")
    await expect(conversation.feed).to_contain_text("Brain trust")
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
    await expect(conversation.reply_text("Alpha").first).to_contain_text("chart the rest")
    await page.keyboard.press("t")
    await page.screenshot(path=tmp_path / "brain-trust-dark.png", full_page=True)


async def test_a_failed_advisor_can_be_retried_from_its_card(
    windows: Windows, sam: Person, brain_trust_path: str, upstream: Upstream
) -> None:
    upstream.says("Here after all.", model="gamma")
    page = await windows.open(sam, brain_trust_path)
    conversation = ConversationPage(page)
    await conversation.reply("Gamma", "failed").get_by_role("button", name="Retry").click()
    await expect(conversation.reply("Gamma", "finished")).to_contain_text("Here after all.")


async def test_a_synthesis_names_what_it_read_and_can_be_rewritten_with_a_late_reply(
    windows: Windows, sam: Person, brain_trust_path: str, upstream: Upstream, tmp_path: Path
) -> None:
    finish_reply = asyncio.Event()
    upstream.plays(reply_in_parts("Here ", finish_reply, "after all."), model="gamma")
    upstream.plays(says("Now with everyone."), says("no data"), model="alpha")
    page, second_page = await windows.open(sam, brain_trust_path), await windows.open(sam, brain_trust_path)
    conversation = ConversationPage(page)
    synthesis = page.get_by_role("article", name="Summary by Alpha")
    await conversation.reply("Gamma", "failed").get_by_role("button", name="Retry").click()
    await expect(synthesis).to_contain_text("Gamma is answering again.")
    await expect(synthesis).to_contain_text("having read three of four")
    finish_reply.set()
    rewrite_button = synthesis.get_by_role("button", name="Write it again with Gamma")
    await expect(rewrite_button).to_be_visible()
    await expect(synthesis).to_contain_text("having read three of four")
    await expect(synthesis).to_contain_text("Gamma answered after this was written.")
    await expect(conversation.reply("Gamma", "finished")).to_contain_text("not included in the summary")
    await page.screenshot(path=tmp_path / "written-again.png", full_page=True)
    await page.reload()
    await expect(synthesis).to_contain_text("having read three of four")
    await rewrite_button.click()
    for window in (page, second_page):
        synthesis_ = window.get_by_role("article", name="Summary by Alpha")
        await expect(synthesis_).to_contain_text("Now with everyone.")
        await expect(synthesis_).to_contain_text("having read all four")
    await expect(rewrite_button).to_have_count(0)
    await synthesis.get_by_role("button", name="Earlier version").click()
    await expect(synthesis).to_contain_text("having read three of four")
    await expect(rewrite_button).to_have_count(0)


async def test_a_synthesis_says_that_it_read_an_earlier_version_of_a_reply(
    windows: Windows, sam: Person, brain_trust_path: str, upstream: Upstream
) -> None:
    upstream.says("Rather two numbers.", model="beta")
    page = await windows.open(sam, brain_trust_path)
    beta = (await stored_replies(sam, brain_trust_path.rpartition("/")[2]))["Beta"]
    await sam.post(f"/api/messages/{beta['id']}/retry", {"id": new_id()}, expect=202)
    synthesis = page.get_by_role("article", name="Summary by Alpha")
    await expect(synthesis).to_contain_text("having read three of four, one in an earlier version")
    await expect(ConversationPage(page).reply("Beta", "finished")).to_contain_text(
        "the summary has an earlier version"
    )
    await expect(synthesis.get_by_role("button", name="Write it again with Beta")).to_be_visible()


async def test_the_synthesis_text_does_not_move_when_the_outline_arrives(
    page: Page, upstream: Upstream
) -> None:
    conversation, finish_synthesis, finish_outline = ConversationPage(page), asyncio.Event(), asyncio.Event()
    script = (*(Say(part) for part in words(OUTLINE)), Hold(finish_outline), Finish())
    upstream.plays(
        says(ALPHA),
        reply_in_parts(f"{SYNTHESIS}- And ", finish_synthesis, "one thing more."),
        script,
        model="alpha",
    )
    upstream.plays(says(BETA), model="beta")
    await conversation.seat("Alpha", "Beta")
    await page.get_by_role("button", name=re.compile("^Mode")).click()
    await page.get_by_role("option", name=re.compile("^Brain trust")).click()
    await conversation.ask("Well?")
    synthesis_text = page.locator("article[data-lane*='synthesis'] .words")
    first = synthesis_text.get_by_text("Watch sign-in success above all, split by platform.")
    await expect(synthesis_text).to_contain_text("And")
    node, box_before = await first.element_handle(), await first.bounding_box()
    finish_synthesis.set()
    await expect(page.get_by_text("Drawing the agreement map")).to_be_visible()
    finish_outline.set()
    await expect(page.get_by_role("complementary", name="Agreement map")).to_be_visible()
    assert node is not None
    assert box_before is not None
    assert await node.evaluate("node => node.isConnected && node.innerText.includes('Pause if it falls')")
    box_after = await first.bounding_box()
    assert box_after is not None
    assert (box_after["x"], box_after["width"], box_after["height"]) == (
        box_before["x"],
        box_before["width"],
        box_before["height"],
    )
    await expect(synthesis_text).to_contain_text("one thing more.")


async def test_a_peer_review_shows_names_and_a_table_of_places(
    windows: Windows, sam: Person, upstream: Upstream, tmp_path: Path
) -> None:
    for name in ("alpha", "beta"):
        upstream.plays(
            says(f"I am {name}."), says("Answer B is right, A is vague.\n\n**Ranking: B > A**"), model=name
        )
    upstream.plays(says("I am gamma."), says("I like them both."), model="gamma")
    chair = {"model": "voices:gamma"}
    replies = await sam.ask_and_wait("Who?", "alpha", "beta", "gamma", mode="peer_review", chair=chair)
    review_by_alpha = next(r for r in replies if r["step"] == "review" and r["voice"]["name"] == "Alpha")
    name_by_label = {reply_["label"]: reply_["name"] for reply_ in review_by_alpha["read_replies"]}
    first, second = name_by_label["Answer B"], name_by_label["Answer A"]
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
    full_review = page.locator("article.reply[data-lane*='review']")
    await expect(full_review).to_contain_text(f"{first} is right")
    await expect(full_review).to_contain_text(f"Reviewed without names: A was {second}, B was {first}.")
    await page.screenshot(path=tmp_path / "peer-review-places.png", full_page=True)
    await page.keyboard.press("t")
    await page.screenshot(path=tmp_path / "peer-review-places-dark.png", full_page=True)


async def test_the_places_of_a_peer_review_fit_on_a_phone(
    windows: Windows, sam: Person, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.says("Ranking: C > B > A")
    replies = await sam.ask_and_wait("Who?", "alpha", "beta", "gamma", "alpha", mode="peer_review")
    page = await windows.open(
        sam, f"/c/{replies[0]['conversation_id']}", PHONE, is_mobile=True, has_touch=True
    )
    places = page.get_by_role("region", name="Places")
    await expect(places.get_by_role("row")).to_have_count(5)
    await places.scroll_into_view_if_needed()
    await page.screenshot(path=tmp_path / "places-phone.png")
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


async def test_a_brain_trust_on_a_phone_has_tabs_and_a_synthesis(
    windows: Windows, sam: Person, brain_trust_path: str, tmp_path: Path
) -> None:
    page = await windows.open(sam, brain_trust_path, PHONE, is_mobile=True, has_touch=True)
    await expect(page.get_by_role("tablist", name="Replies").get_by_role("tab")).to_have_count(4)
    await expect(page.get_by_role("article", name="Summary by Alpha")).to_be_attached()
    await page.get_by_role("article", name="Summary by Alpha").scroll_into_view_if_needed()
    await page.screenshot(path=tmp_path / "brain-trust-phone.png")
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


async def test_the_synthesis_streams_into_the_page(page: Page, upstream: Upstream) -> None:
    conversation, finish_synthesis = ConversationPage(page), asyncio.Event()
    upstream.plays(
        says("Mine."),
        reply_in_parts("Bringing it ", finish_synthesis, "together."),
        says("{}"),
        model="alpha",
    )
    await conversation.seat("Alpha", "Beta")
    await page.get_by_role("button", name=re.compile("^Mode")).click()
    await page.get_by_role("option", name=re.compile("^Brain trust")).click()
    await conversation.ask("Well?")
    writing = page.get_by_role("article", name=re.compile("^Alpha, .*writing$"))
    await expect(writing).to_contain_text("Bringing it")
    await expect(conversation.feed).to_contain_text("2 of 3 finished")
    finish_synthesis.set()
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


async def test_a_second_opinion_marks_the_quoted_text(
    windows: Windows, sam: Person, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.plays(says(ANSWER), says("Revised: 1,772 of them."), model="alpha")
    upstream.plays(says(CRITIQUE), model="beta")
    replies = await sam.ask_and_wait("Why did sign-in fail for some?", "alpha", "beta", mode="second_opinion")
    page = await windows.open(sam, f"/c/{replies[0]['conversation_id']}")
    critique = page.get_by_role("article", name="Second opinion by Beta")
    await expect(critique).to_contain_text("Mostly holds")
    await expect(critique.get_by_role("listitem")).to_have_count(3)
    marks = ConversationPage(page).reply_text("Alpha").locator("mark[data-n]")
    await expect(marks).to_have_count(3)
    await expect(ConversationPage(page).reply_text("Alpha").locator("mark[data-note='2']")).to_have_text(
        "all of the 1,912 failures"
    )
    await page.screenshot(path=tmp_path / "second-opinion.png", full_page=True)
    await critique.get_by_role("button", name="Note 2, show what it is about").focus()
    await expect(ConversationPage(page).reply_text("Alpha").locator("mark[data-note='2']")).to_have_class(
        re.compile("lit")
    )
    await page.keyboard.press("t")
    await page.screenshot(path=tmp_path / "second-opinion-dark.png", full_page=True)

    await critique.get_by_role("button", name="Ask Alpha to revise").click()
    await expect(page.get_by_text("Revised: 1,772 of them.")).to_be_visible()
    stored = await sam.get(f"/api/conversations/{replies[0]['conversation_id']}")
    assert stored["conversation"]["mode"] == "second_opinion"
    assert stored["rounds"][-1]["messages"][0]["reply_to_id"] == replies[1]["id"]


async def test_a_second_opinion_stays_visible_after_a_summary_is_added(
    windows: Windows, sam: Person, upstream: Upstream
) -> None:
    upstream.plays(says(ANSWER), says("Both."), model="alpha")
    upstream.plays(says(CRITIQUE), model="beta")
    [answer, _] = await sam.ask_and_wait(
        "Why did sign-in fail for some?", "alpha", "beta", mode="second_opinion"
    )
    path = f"/api/conversations/{answer['conversation_id']}/rounds/1/synthesis"
    opened = await sam.post(path, {"id": new_id()}, expect=202)
    await sam.wait_for_end(opened["turn"]["id"])
    page = await windows.open(sam, f"/c/{answer['conversation_id']}")
    summary = page.get_by_role("article", name="Summary by Alpha")
    await expect(summary).to_contain_text("having read both")
    await expect(ConversationPage(page).reply("Beta", "finished")).to_contain_text("The cause is right.")


@pytest.mark.parametrize("mode", ["debate", "peer_review", "relay"])
async def test_every_mode_shows_all_of_its_replies(
    windows: Windows, sam: Person, upstream: Upstream, mode: str, tmp_path: Path
) -> None:
    replies = await sam.ask_and_wait("Tea or coffee?", "alpha", "beta", mode=mode)
    page = await windows.open(sam, f"/c/{replies[0]['conversation_id']}")
    name = {"debate": "Debate", "peer_review": "Peer review", "relay": "One after another"}[mode]
    await expect(ConversationPage(page).feed).to_contain_text(f"Round 1 · {name}")
    for reply in replies:
        if reply["step"] != "outline":
            await expect(page.locator(f"[data-lane*='{reply['voice']['id']}']").first).to_be_visible()
    if mode != "relay":
        await expect(page.get_by_role("heading", name="Summary")).to_be_visible()
    await page.screenshot(path=tmp_path / f"{mode}.png", full_page=True)
