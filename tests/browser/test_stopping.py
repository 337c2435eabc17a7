"""Replies that do not end by themselves: stopped, failed, interrupted. The others are not affected."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Page, expect

from tests.browser.room import Room, in_parts, stored
from tests.browser.windows import PHONE
from tests.upstream.scripted import Bare, Cut, Say, Script, Upstream, refuses, says
from tests.world import Person

SOON = "0.01"


async def test_the_button_stops_all_and_what_was_said_stays(
    page: Page, sam: Person, upstream: Upstream
) -> None:
    room = Room(page)
    upstream.plays(in_parts("Half a thought", asyncio.Event()))
    await room.seat("Alpha", "Beta")
    await room.ask("Go on for ever.")
    await expect(room.words("Alpha")).to_have_text("Half a thought")
    await expect(room.words("Beta")).to_have_text("Half a thought")

    await page.get_by_role("button", name="Stop all replies").click()
    for name in ("Alpha", "Beta"):
        await expect(room.reply(name, "stopped")).to_contain_text("Half a thought")
        await expect(room.reply(name)).to_contain_text("Stopped after 3 words.")
    kept = await stored(sam, room.id)
    assert [reply["status"] for reply in kept.values()] == ["stopped", "stopped"]
    await expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()


async def test_a_key_stops_all_while_one_writes(page: Page, upstream: Upstream) -> None:
    room = Room(page)
    upstream.plays(in_parts("Half a thought", asyncio.Event()))
    await room.seat("Alpha", "Beta")
    await room.ask("Go on for ever.")
    await expect(room.words("Beta")).to_have_text("Half a thought")
    await room.field.fill("Wait,")
    await page.keyboard.press("Control+.")
    for name in ("Alpha", "Beta"):
        await expect(room.reply(name, "stopped")).to_be_visible()
    await expect(room.field).to_have_value("Wait,")


async def test_one_is_stopped_and_the_other_goes_on(page: Page, upstream: Upstream) -> None:
    room, ends = Room(page), asyncio.Event()
    upstream.plays(in_parts("I could go on", asyncio.Event()), model="alpha")
    upstream.plays(in_parts("So could I", ends, ", and I did."), model="beta")
    await room.seat("Alpha", "Beta")
    await room.ask("Who goes on?")
    await expect(room.words("Alpha")).to_have_text("I could go on")
    await expect(room.words("Beta")).to_have_text("So could I")
    await room.reply("Alpha").get_by_role("button", name="Stop").click()
    await expect(room.reply("Alpha", "stopped")).to_contain_text("I could go on")
    await expect(room.reply("Beta", "writing")).to_be_visible()
    ends.set()
    await expect(room.reply("Beta", "finished")).to_contain_text("So could I, and I did.")


async def test_a_stopped_reply_is_continued_where_it_broke_off(
    page: Page, sam: Person, upstream: Upstream
) -> None:
    room = Room(page)
    upstream.plays(in_parts("Half a", asyncio.Event()), says(" thought is whole now."), model="alpha")
    await room.seat("Alpha")
    await room.ask("Think.")
    await expect(room.words("Alpha")).to_have_text("Half a")
    await page.keyboard.press("Control+.")
    await room.reply("Alpha", "stopped").get_by_role("button", name="Continue").click()
    await expect(room.reply("Alpha", "finished")).to_contain_text("Half a thought is whole now.")
    await expect(room.reply("Alpha")).to_have_count(1)


async def test_asking_again_keeps_the_earlier_version_within_reach(page: Page, upstream: Upstream) -> None:
    room = Room(page)
    upstream.plays(says("A first try."), says("A second try."), model="alpha")
    await room.seat("Alpha")
    await room.ask("Try.")
    card = room.reply("Alpha", "finished")
    await expect(card).to_contain_text("A first try.")
    await card.hover()
    await card.get_by_role("button", name="Regenerate").click()
    await card.get_by_role("menuitem", name="Again").click()
    await expect(card).to_contain_text("A second try.")
    versions = card.get_by_role("group", name="Versions")
    await expect(versions).to_contain_text("2 of 2")
    await versions.get_by_role("button", name="Earlier version").click()
    await expect(card).to_contain_text("A first try.")


@pytest.mark.parametrize(
    ("script", "title", "sentence"),
    [
        (
            refuses(429, {"error": {"message": "Slow down"}}, retry_after=SOON),
            "voices asked us to slow down",
            "Too many requests this minute.",
        ),
        (
            refuses(500, "the machine is on fire", retry_after=SOON),
            "voices is having trouble and did not answer",
            "Error message from voices",
        ),
    ],
    ids=["too many requests", "out of order"],
)
async def test_a_voice_that_fails_says_why_and_is_tried_again(
    page: Page, upstream: Upstream, script: Script, title: str, sentence: str
) -> None:
    room = Room(page)
    upstream.plays(script, model="beta")
    await room.seat("Alpha", "Beta")
    await room.ask("Are you both well?")
    failed = room.reply("Beta", "failed").get_by_role("alert")
    await expect(failed).to_contain_text(title)
    await expect(failed).to_contain_text(sentence)
    await expect(room.reply("Alpha", "finished")).to_contain_text("alpha heard: Are you both well?")
    await expect(room.reply("Alpha").get_by_role("alert")).to_have_count(0)

    upstream.says("Better now.", model="beta")
    await failed.get_by_role("button", name="Retry now").click()
    await expect(room.reply("Beta", "finished")).to_contain_text("Better now.")


async def test_another_model_can_take_the_place_of_one_that_failed(page: Page, upstream: Upstream) -> None:
    room = Room(page)
    upstream.plays(refuses(401, {"error": {"message": "Incorrect API key"}}), model="beta")
    await room.seat("Beta")
    await room.ask("Who answers?")
    failed = room.reply("Beta", "failed").get_by_role("alert")
    await expect(failed).to_contain_text("voices refused the key")
    await failed.get_by_role("button", name="Use another model").click()
    picker = page.get_by_role("dialog", name="Use another model")
    await expect(picker.get_by_role("option").filter(has_text="Beta")).to_have_count(0)
    await picker.get_by_role("combobox").fill("gamma")
    await page.keyboard.press("Enter")
    await expect(room.reply("Gamma", "finished")).to_contain_text("gamma heard: Who answers?")
    await page.set_viewport_size(PHONE)
    await expect(page.get_by_role("tab", name="Gamma")).to_be_visible()
    await expect(page.get_by_role("tab", name="Beta")).to_have_count(0)


async def test_a_provider_that_asks_for_patience_is_waited_for_in_sight(
    page: Page, upstream: Upstream
) -> None:
    room = Room(page)
    upstream.plays(refuses(429, {"error": {"message": "Slow down"}}, retry_after="30"), model="beta")
    await room.seat("Alpha", "Beta")
    await room.ask("Are you there?")
    waiting = room.reply("Beta", "waiting for the provider")
    await expect(waiting).to_contain_text("voices asked us to slow down. Too many requests this minute.")
    await expect(waiting).to_contain_text(re.compile(r"in \d+ s, second of 3 tries"))
    await expect(room.reply("Alpha", "finished")).to_be_visible()
    await waiting.get_by_role("button", name="Stop").click()
    await expect(room.reply("Beta", "stopped")).to_be_visible()


async def test_the_wait_for_a_provider_can_be_ended(page: Page, upstream: Upstream) -> None:
    room = Room(page)
    upstream.plays(refuses(429, retry_after="58"), says("Here."), model="beta")
    await room.seat("Alpha", "Beta")
    await room.ask("Are you there?")
    waiting = room.reply("Beta", "waiting for the provider")
    await waiting.get_by_role("button", name="Retry now").click()
    await expect(room.reply("Beta", "finished")).to_contain_text("Here.")
    assert [seen.model for seen in upstream.requests].count("beta") == 2


async def test_another_model_takes_the_place_of_one_that_is_waited_for(
    page: Page, upstream: Upstream
) -> None:
    room = Room(page)
    upstream.plays(refuses(429, retry_after="58"), says("Never."), model="beta")
    await room.seat("Beta")
    await room.ask("Who answers?")
    waiting = room.reply("Beta", "waiting for the provider")
    await waiting.get_by_role("button", name="Use another model").click()
    await room.option("Gamma").click()
    await expect(room.reply("Gamma", "finished")).to_contain_text("gamma heard: Who answers?")
    assert [seen.model for seen in upstream.requests].count("beta") == 1


@pytest.mark.parametrize("end", [Cut(), Bare()], ids=["cut", "bare"])
async def test_a_line_that_drops_leaves_the_words_and_a_way_on(
    page: Page, upstream: Upstream, end: Cut | Bare
) -> None:
    room = Room(page)
    upstream.plays((Say("Half a thou"), end), says("ght."), model="beta")
    await room.seat("Alpha", "Beta")
    await room.ask("And then?")
    cut = room.reply("Beta", "interrupted")
    await expect(cut).to_contain_text("Half a thou")
    await expect(cut.get_by_role("alert")).to_contain_text("Connection lost after 3 words.")
    await expect(room.reply("Alpha", "finished")).to_be_visible()
    await cut.get_by_role("button", name="Continue").click()
    await expect(room.reply("Beta", "finished")).to_contain_text("Half a thought.")
