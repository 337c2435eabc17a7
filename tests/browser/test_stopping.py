"""Stopped, failed and interrupted replies can be continued or retried, and other replies are unaffected."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Page, expect

from tests.browser.conversation_page import ConversationPage, reply_in_parts, stored_replies
from tests.upstream.scripted import Bare, Cut, Say, Script, Upstream, refuses, says
from tests.world import Person

SOON = "0.01"


async def test_the_stop_button_stops_all_replies_and_keeps_their_text(
    page: Page, sam: Person, upstream: Upstream
) -> None:
    conversation = ConversationPage(page)
    upstream.plays(reply_in_parts("Half a thought", asyncio.Event()))
    await conversation.seat("Alpha", "Beta")
    await conversation.ask("Go on for ever.")
    await expect(conversation.reply_text("Alpha")).to_have_text("Half a thought")
    await expect(conversation.reply_text("Beta")).to_have_text("Half a thought")

    await page.get_by_role("button", name="Stop all replies").click()
    for name in ("Alpha", "Beta"):
        await expect(conversation.reply(name, "stopped")).to_contain_text("Half a thought")
        await expect(conversation.reply(name)).to_contain_text("Stopped after 3 words.")
    stored = await stored_replies(sam, conversation.id)
    assert [reply["status"] for reply in stored.values()] == ["stopped", "stopped"]
    await expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()


async def test_a_shortcut_stops_all_replies_while_typing(page: Page, upstream: Upstream) -> None:
    conversation = ConversationPage(page)
    upstream.plays(reply_in_parts("Half a thought", asyncio.Event()))
    await conversation.seat("Alpha", "Beta")
    await conversation.ask("Go on for ever.")
    await expect(conversation.reply_text("Beta")).to_have_text("Half a thought")
    await conversation.field.fill("Wait,")
    await page.keyboard.press("Control+.")
    for name in ("Alpha", "Beta"):
        await expect(conversation.reply(name, "stopped")).to_be_visible()
    await expect(conversation.field).to_have_value("Wait,")


async def test_one_reply_is_stopped_while_the_other_goes_on(page: Page, upstream: Upstream) -> None:
    conversation, finish_beta = ConversationPage(page), asyncio.Event()
    upstream.plays(reply_in_parts("I could go on", asyncio.Event()), model="alpha")
    upstream.plays(reply_in_parts("So could I", finish_beta, ", and I did."), model="beta")
    await conversation.seat("Alpha", "Beta")
    await conversation.ask("Who goes on?")
    await expect(conversation.reply_text("Alpha")).to_have_text("I could go on")
    await expect(conversation.reply_text("Beta")).to_have_text("So could I")
    await conversation.reply("Alpha").get_by_role("button", name="Stop").click()
    await expect(conversation.reply("Alpha", "stopped")).to_contain_text("I could go on")
    await expect(conversation.reply("Beta", "writing")).to_be_visible()
    finish_beta.set()
    await expect(conversation.reply("Beta", "finished")).to_contain_text("So could I, and I did.")


async def test_a_stopped_reply_can_be_continued(page: Page, sam: Person, upstream: Upstream) -> None:
    conversation = ConversationPage(page)
    upstream.plays(reply_in_parts("Half a", asyncio.Event()), says(" thought is whole now."), model="alpha")
    await conversation.seat("Alpha")
    await conversation.ask("Think.")
    await expect(conversation.reply_text("Alpha")).to_have_text("Half a")
    await page.keyboard.press("Control+.")
    await conversation.reply("Alpha", "stopped").get_by_role("button", name="Continue").click()
    await expect(conversation.reply("Alpha", "finished")).to_contain_text("Half a thought is whole now.")
    await expect(conversation.reply("Alpha")).to_have_count(1)


async def test_regenerating_keeps_the_earlier_version(page: Page, upstream: Upstream) -> None:
    conversation = ConversationPage(page)
    upstream.plays(says("A first try."), says("A second try."), model="alpha")
    await conversation.seat("Alpha")
    await conversation.ask("Try.")
    card = conversation.reply("Alpha", "finished")
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
async def test_a_failed_reply_shows_its_error_and_can_be_retried(
    page: Page, upstream: Upstream, script: Script, title: str, sentence: str
) -> None:
    conversation = ConversationPage(page)
    upstream.plays(script, model="beta")
    await conversation.seat("Alpha", "Beta")
    await conversation.ask("Are you both well?")
    failed = conversation.reply("Beta", "failed").get_by_role("alert")
    await expect(failed).to_contain_text(title)
    await expect(failed).to_contain_text(sentence)
    await expect(conversation.reply("Alpha", "finished")).to_contain_text("alpha heard: Are you both well?")
    await expect(conversation.reply("Alpha").get_by_role("alert")).to_have_count(0)

    upstream.says("Better now.", model="beta")
    await failed.get_by_role("button", name="Retry now").click()
    await expect(conversation.reply("Beta", "finished")).to_contain_text("Better now.")


async def test_another_model_can_answer_for_a_failed_one(page: Page, upstream: Upstream) -> None:
    conversation = ConversationPage(page)
    upstream.plays(refuses(401, {"error": {"message": "Incorrect API key"}}), model="beta")
    await conversation.seat("Beta")
    await conversation.ask("Who answers?")
    failed = conversation.reply("Beta", "failed").get_by_role("alert")
    await expect(failed).to_contain_text("voices refused the key")
    await failed.get_by_role("button", name="Use another model").click()
    picker = page.get_by_role("dialog", name="Use another model")
    await expect(picker.get_by_role("option").filter(has_text="Beta")).to_have_count(0)
    await picker.get_by_role("combobox").fill("gamma")
    await page.keyboard.press("Enter")
    await expect(conversation.reply("Gamma", "finished")).to_contain_text("gamma heard: Who answers?")


async def test_the_wait_before_a_retry_is_shown_and_can_be_stopped(page: Page, upstream: Upstream) -> None:
    conversation = ConversationPage(page)
    upstream.plays(refuses(429, {"error": {"message": "Slow down"}}, retry_after="30"), model="beta")
    await conversation.seat("Alpha", "Beta")
    await conversation.ask("Are you there?")
    waiting = conversation.reply("Beta", "waiting for the provider")
    await expect(waiting).to_contain_text("voices asked us to slow down. Too many requests this minute.")
    await expect(waiting).to_contain_text(re.compile(r"in \d+ s, second of 3 tries"))
    await expect(conversation.reply("Alpha", "finished")).to_be_visible()
    await waiting.get_by_role("button", name="Stop").click()
    await expect(conversation.reply("Beta", "stopped")).to_be_visible()


async def test_retry_now_ends_the_wait_before_a_retry(page: Page, upstream: Upstream) -> None:
    conversation = ConversationPage(page)
    upstream.plays(refuses(429, retry_after="58"), says("Here."), model="beta")
    await conversation.seat("Alpha", "Beta")
    await conversation.ask("Are you there?")
    waiting = conversation.reply("Beta", "waiting for the provider")
    await waiting.get_by_role("button", name="Retry now").click()
    await expect(conversation.reply("Beta", "finished")).to_contain_text("Here.")
    assert [request.model for request in upstream.requests].count("beta") == 2


async def test_another_model_can_answer_instead_of_a_waiting_one(page: Page, upstream: Upstream) -> None:
    conversation = ConversationPage(page)
    upstream.plays(refuses(429, retry_after="58"), says("Never."), model="beta")
    await conversation.seat("Beta")
    await conversation.ask("Who answers?")
    waiting = conversation.reply("Beta", "waiting for the provider")
    await waiting.get_by_role("button", name="Use another model").click()
    await conversation.option("Gamma").click()
    await expect(conversation.reply("Gamma", "finished")).to_contain_text("gamma heard: Who answers?")
    assert [request.model for request in upstream.requests].count("beta") == 1


@pytest.mark.parametrize("end", [Cut(), Bare()], ids=["cut", "bare"])
async def test_an_interrupted_reply_keeps_its_text_and_can_be_continued(
    page: Page, upstream: Upstream, end: Cut | Bare
) -> None:
    conversation = ConversationPage(page)
    upstream.plays((Say("Half a thou"), end), says("ght."), model="beta")
    await conversation.seat("Alpha", "Beta")
    await conversation.ask("And then?")
    interrupted = conversation.reply("Beta", "interrupted")
    await expect(interrupted).to_contain_text("Half a thou")
    await expect(interrupted.get_by_role("alert")).to_contain_text("Connection lost after 3 words.")
    await expect(conversation.reply("Alpha", "finished")).to_be_visible()
    await interrupted.get_by_role("button", name="Continue").click()
    await expect(conversation.reply("Beta", "finished")).to_contain_text("Half a thought.")
