"""A failing voice says why it failed and does not affect the other voices."""

from __future__ import annotations

import asyncio

import pytest

from tests.stories.waiting import final_state, is_reply, wait_for_item
from tests.upstream.scripted import Bare, Cut, Fail, Finish, Hold, Raw, Reset, Say, Think, refuses, says

SOON = "0.01"
"""A Retry-After header so short that the retry follows at once."""


@pytest.mark.parametrize(
    ("script", "status", "code", "message", "text"),
    [
        (
            refuses(429, {"error": {"message": "Slow down"}}, retry_after=SOON),
            "failed",
            "rate_limited",
            "voices asked us to slow down. Too many requests this minute.",
            "",
        ),
        (
            refuses(500, "the machine is on fire", retry_after=SOON),
            "failed",
            "unavailable",
            "voices is having trouble and did not answer.",
            "",
        ),
        (
            refuses(401, {"error": {"message": "Incorrect API key"}}),
            "failed",
            "auth",
            "voices refused the key. It may have been revoked.",
            "",
        ),
        (
            refuses(402, {"error": {"message": "Payment required"}}),
            "failed",
            "rate_limited",
            "voices says the credit of this key is used up. Add credit there, or use another model.",
            "",
        ),
        (
            refuses(400, {"error": {"message": "maximum context length is 8192 tokens, you sent 9000"}}),
            "failed",
            "context_length",
            "Beta holds 8,192 tokens and this needs 9,000.",
            "",
        ),
        (
            (Say("Half a thou"), Cut()),
            "interrupted",
            "cut",
            "The connection to voices was lost before the reply was finished.",
            "Half a thou",
        ),
        (
            (Say("Half a thou"), Reset()),
            "interrupted",
            "cut",
            "The connection to voices was lost before the reply was finished.",
            "Half a thou",
        ),
        (
            (Say("All but the end"), Bare()),
            "interrupted",
            "cut",
            "The connection to voices was lost before the reply was finished.",
            "All but the end",
        ),
        (
            (Say("Well, "), Fail("overloaded", "overloaded_error")),
            "interrupted",
            "unavailable",
            "voices had an error in the middle of the reply.",
            "Well, ",
        ),
        (
            (Say("Readable, then "), Raw(b"data: {not json\n\n"), Finish()),
            "interrupted",
            "malformed",
            "voices sent something that could not be read. The reply ends here.",
            "Readable, then ",
        ),
        (
            (Say("As long as I may"), Finish("length")),
            "interrupted",
            "length",
            "The reply reached its length limit.",
            "As long as I may",
        ),
        (
            (Finish("content_filter"),),
            "failed",
            "filtered",
            "This model declined. Its safety filter stopped the reply.",
            "",
        ),
        (
            (Say("First you take"), Finish("content_filter")),
            "interrupted",
            "filtered",
            "Stopped by the provider's safety filter.",
            "First you take",
        ),
        (
            (Finish("tool_calls"),),
            "failed",
            "empty",
            "The model ended without writing a reply.",
            "",
        ),
        (
            (Think("Let me see."), Finish()),
            "failed",
            "empty",
            "The model ended without writing a reply.",
            "",
        ),
        (
            (Say("\n\n"), Finish()),
            "failed",
            "empty",
            "The model ended without writing a reply.",
            "\n\n",
        ),
    ],
    ids=[
        "429",
        "500",
        "401",
        "402",
        "too-long",
        "cut",
        "reset",
        "bare-end",
        "error-event",
        "malformed",
        "length",
        "filtered",
        "filtered-in-the-middle",
        "tool-call-alone",
        "thought-alone",
        "blank",
    ],
)
async def test_a_failed_reply_has_its_error_and_the_other_voices_answer(
    ada, upstream, script, status, code, message, text
):
    upstream.says("I am fine.", model="alpha")
    upstream.plays(script, model="beta")
    opened = await ada.ask("How are you?", "alpha", "beta", "alpha")
    assert await final_state(ada, opened["turn"]["id"]) == "complete"
    first, beta, third = await ada.replies(opened["conversation"]["id"], 1)
    assert [(r["status"], r["content"], r["failure"]) for r in (first, third)] == [
        ("complete", "I am fine.", None)
    ] * 2
    assert (beta["status"], beta["content"]) == (status, text)
    assert (beta["failure"]["code"], beta["failure"]["message"]) == (code, message)


async def test_a_failed_reply_stores_the_providers_own_message_as_detail(ada, upstream):
    upstream.plays(refuses(400, {"error": {"message": "temperature: must be cold"}}), model="beta")
    [reply] = await ada.ask_and_wait("Hello", "beta")
    assert reply["failure"]["detail"] == "temperature: must be cold"


async def test_a_rate_limited_request_is_retried_and_the_wait_is_sent_as_an_event(ada, upstream):
    upstream.plays(refuses(429, retry_after=SOON), refuses(503, retry_after=SOON), says("Here I am."))
    opened = await ada.ask("Busy?", "alpha")
    events = await ada.wait_for_end(opened["turn"]["id"])
    waits = [event.data["waiting"] for event in events if event.name == "waiting" and event.data["waiting"]]
    assert [(wait["attempt"], wait["attempts"]) for wait in waits] == [(1, 2), (2, 2)]
    [reply] = await ada.replies(opened["conversation"]["id"], 1)
    assert (reply["status"], reply["content"]) == ("complete", "Here I am.")


async def test_a_request_is_sent_three_times_at_most(ada, upstream):
    upstream.plays(refuses(429, retry_after=SOON))
    [reply] = await ada.ask_and_wait("Busy?", "alpha")
    assert reply["failure"]["code"] == "rate_limited"
    assert len(upstream.requests) == 3


async def test_a_request_is_not_retried_after_its_first_text(ada, upstream):
    upstream.plays((Say("Once"), Cut()), says("Once more"))
    [reply] = await ada.ask_and_wait("Say it once", "alpha")
    assert reply["content"] == "Once"
    assert len(upstream.requests) == 1


async def test_a_turn_fails_when_every_voice_fails(ada, upstream):
    upstream.plays(refuses(401))
    opened = await ada.ask("Anyone?", "alpha", "beta")
    assert await final_state(ada, opened["turn"]["id"]) == "failed"
    replies = await ada.replies(opened["conversation"]["id"], 1)
    assert [reply["status"] for reply in replies] == ["failed", "failed"]


async def test_a_conversation_goes_on_after_a_failed_round(ada, upstream):
    upstream.plays(refuses(401), says("Back again."))
    opened = await ada.ask("Anyone?", "alpha")
    await ada.wait_for_end(opened["turn"]["id"])
    [reply] = await ada.ask_and_wait("And now?", "alpha", conversation_id=opened["conversation"]["id"])
    assert (reply["status"], reply["content"]) == ("complete", "Back again.")


async def test_a_finished_reply_is_sent_while_another_voice_still_runs(ada, upstream):
    release = asyncio.Event()
    upstream.says("Done already.", model="alpha")
    upstream.plays((Hold(release), *refuses(401)), model="beta")
    opened = await ada.ask("Who is first?", "alpha", "beta")
    async with ada.live() as tab:
        item = await wait_for_item(tab, f"conversation:{opened['conversation']['id']}", is_reply)
        assert item["value"]["content"] == "Done already."
        release.set()
    await ada.wait_for_end(opened["turn"]["id"])


async def test_a_question_larger_than_the_context_window_fails_without_a_request(ada, upstream):
    [reply] = await ada.ask_and_wait("word " * 9000, "alpha")
    assert reply["failure"]["code"] == "context_length"
    assert "Shorten the message, or ask a model with a larger window." in reply["failure"]["message"]
    assert upstream.requests == []


async def test_a_failed_reply_has_no_tokens_and_an_interrupted_one_is_counted_locally(ada, upstream):
    upstream.plays(refuses(401), model="alpha")
    upstream.plays((Say("Some words were said"), Cut()), model="beta")
    failed, broken = await ada.ask_and_wait("Hello", "alpha", "beta")
    assert (failed["usage"]["input_tokens"], failed["usage"]["output_tokens"]) == (0, 0)
    assert broken["usage"]["input_tokens"] > 20
    assert broken["usage"]["output_tokens"] > 2


async def test_a_filtered_reply_keeps_its_text_and_the_finish_reason(ada, upstream):
    upstream.plays((Say("First you take"), Finish("content_filter")), model="beta")
    [reply] = await ada.ask_and_wait("How?", "beta")
    assert (reply["content"], reply["failure"]["detail"]) == ("First you take", "content_filter")


async def test_an_empty_reply_fails_with_the_finish_reason_as_detail(ada, upstream):
    upstream.plays((Finish("tool_calls"),), model="beta")
    [reply] = await ada.ask_and_wait("How?", "beta")
    assert (reply["status"], reply["failure"]["detail"]) == ("failed", "tool_calls")


async def test_the_citations_of_a_search_model_are_listed_below_its_reply(ada, upstream):
    citations = b'data: {"citations":["https://one.example/a"],"choices":[]}\n\n'
    upstream.plays((Raw(citations), Say("It is so [1]."), Finish()), model="beta")
    [reply] = await ada.ask_and_wait("Is it?", "beta")
    content = "It is so [1].\n\nSources:\n\n1. [one.example/a](<https://one.example/a>)"
    assert (reply["status"], reply["content"]) == ("complete", content)
