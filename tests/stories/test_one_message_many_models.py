"""One message is answered by several models at the same time."""

from __future__ import annotations

import asyncio
import json

import pytest

from tertulia import council
from tests.patience import soon
from tests.stories.waiting import stored_rounds, wait_for_text
from tests.upstream.dialects import Usage
from tests.upstream.scripted import Finish, Hold, Say, says
from tests.world import running, turn


async def test_two_voices_answer_one_message(ada, upstream):
    upstream.says("Tea, of course.", model="alpha")
    upstream.says("Coffee.", model="beta")
    replies = await ada.ask_and_wait("Tea or coffee?", "alpha", "beta")
    assert [(r["voice"]["name"], r["content"], r["status"]) for r in replies] == [
        ("Alpha", "Tea, of course.", "complete"),
        ("Beta", "Coffee.", "complete"),
    ]


async def test_all_voices_are_asked_at_the_same_time(ada, upstream):
    everyone_asked = asyncio.Event()
    upstream.plays((Hold(everyone_asked), Say("Now."), Finish()))
    opened = await ada.ask("Together?", "alpha", "beta", "gamma")
    await upstream.wait_for_request(3)
    everyone_asked.set()
    await ada.wait_for_end(opened["turn"]["id"])
    replies = await ada.replies(opened["conversation"]["id"], 1)
    assert [reply["content"] for reply in replies] == ["Now."] * 3


async def test_quick_mode_asks_one_voice(ada, upstream):
    upstream.says("Yes.")
    [reply] = await ada.ask_and_wait("Just you?", "beta", mode="quick")
    assert (reply["content"], reply["speaker"], reply["role"]) == ("Yes.", "agent:beta", "advisor")
    assert len(upstream.requests) == 1


async def test_quick_mode_with_two_voices_is_refused(ada, upstream):
    refusal = await ada.ask("Both?", "alpha", "beta", mode="quick", expect=422)
    assert refusal["message"] == "The mode quick takes 1 voice; this turn has 2."


async def test_one_model_can_have_two_seats(ada, upstream):
    replies = await ada.ask_and_wait("Hello", "alpha", "alpha")
    assert [r["voice"]["name"] for r in replies] == ["Alpha", "Alpha 2"]
    assert len(upstream.requests) == 2


async def test_an_aside_reaches_the_chosen_seat_when_a_model_sits_twice(ada, upstream):
    upstream.plays(says("One."), says("Two."), says("Again."), model="alpha")
    first = await ada.ask_and_wait("Tea?", "alpha", "alpha")
    by_name = {reply["voice"]["name"]: reply for reply in first}
    second = by_name["Alpha 2"]
    [aside] = await ada.ask_and_wait(
        "And you?",
        "alpha",
        conversation_id=second["conversation_id"],
        visibility="own_lane",
        aside=True,
        lanes=[second["voice"]["id"]],
    )
    assert aside["voice"] == second["voice"]
    contents = [message["content"] for message in upstream.requests[-1].body["messages"][1:]]
    assert second["content"] in contents
    assert by_name["Alpha"]["content"] not in str(contents)


async def test_eight_voices_can_sit_at_one_table(ada, upstream):
    table = ["alpha", "beta", "gamma", "alpha", "beta", "gamma", "alpha", "beta"]
    replies = await ada.ask_and_wait("Everyone?", *table)
    assert [reply["voice"]["seat"] for reply in replies] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert {reply["status"] for reply in replies} == {"complete"}
    assert sorted(request.model for request in upstream.requests) == sorted(table)


async def test_a_ninth_voice_is_refused_and_nothing_is_written(ada, upstream):
    refusal = await ada.ask("Everyone?", *["alpha"] * 9, expect=422)
    assert refusal["message"] == "The mode parallel takes 1 to 8 voices; this turn has 9."
    assert await nothing_was_written(ada, upstream)


async def test_a_turn_without_voices_is_refused(ada, upstream):
    refusal = await ada.post("/api/turn", turn("Anyone?") | {"voices": []}, expect=422)
    assert refusal["code"] == "invalid"
    assert await nothing_was_written(ada, upstream)


async def test_an_unknown_model_is_refused_and_nothing_is_written(ada, upstream):
    refusal = await ada.ask("Hello", "alpha", "voices:delta", expect=422)
    assert refusal["code"] == "unknown_model"
    assert (
        refusal["message"]
        == "There is no model 'voices:delta' here. Choose one of those under Models and keys."
    )
    assert await nothing_was_written(ada, upstream)


async def test_a_model_without_a_key_is_refused_and_the_message_names_the_variable(ada, upstream):
    refusal = await ada.ask("Hello", "openai:gpt-4o", expect=422)
    assert refusal["message"] == "GPT-4o cannot answer. Set OPENAI_API_KEY to use OpenAI's models."
    assert await nothing_was_written(ada, upstream)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"mode": "shouting"}, f"There is no mode 'shouting'. The modes are: {', '.join(council.MODES)}."),
        ({"text": " \n\t"}, "Write something first."),
        ({"id": "not-a-ulid"}, "A turn's id is a ULID made by the client."),
        ({"conversation_id": "mine"}, "A conversation's id is a ULID."),
    ],
)
async def test_an_invalid_turn_is_refused_and_nothing_is_written(ada, upstream, change, sentence):
    refusal = await ada.post("/api/turn", turn("Hello") | change, expect=422)
    assert refusal["message"] == sentence
    assert await nothing_was_written(ada, upstream)


async def test_a_message_larger_than_a_mebibyte_is_refused(ada, upstream):
    refusal = await ada.ask("é" * (1 << 19) + "!", expect=413)
    assert refusal["code"] == "too_large"
    assert await nothing_was_written(ada, upstream)


async def test_a_202_response_contains_the_turn_the_conversation_and_the_question(ada, upstream):
    release = asyncio.Event()
    upstream.plays((Hold(release), Finish()))
    opened = await ada.ask("What is said is kept as it was typed:  two spaces\r\n", "alpha")
    assert opened["turn"]["state"] == "running"
    assert opened["turn"]["round_number"] == 1
    assert opened["conversation"]["is_answering"] is True
    assert opened["conversation"]["table"] == opened["turn"]["table"]
    assert opened["message"]["content"] == "What is said is kept as it was typed:  two spaces\r\n"
    assert opened["message"]["role"] == "user"
    release.set()
    await ada.wait_for_end(opened["turn"]["id"])


async def test_a_client_can_choose_the_id_of_a_new_conversation(ada, upstream):
    conversation_id = "01JD0000000000000000000000"
    first = await ada.ask("First", conversation_id=conversation_id, project_id=ada.home)
    assert first["conversation"]["id"] == conversation_id
    await ada.wait_for_end(first["turn"]["id"])
    second = await ada.ask("Second", conversation_id=conversation_id, project_id=ada.home)
    assert (second["conversation"]["id"], second["turn"]["round_number"]) == (conversation_id, 2)
    await ada.wait_for_end(second["turn"]["id"])


async def test_an_unknown_conversation_without_a_project_answers_404(ada, upstream):
    await ada.ask("Hello?", conversation_id="01JD0000000000000000000000", expect=404)
    assert await nothing_was_written(ada, upstream)


async def test_thinking_is_stored_separately_from_the_reply_text(ada, upstream):
    upstream.says("Forty-two.", thinking="Six times seven, so", model="alpha")
    [reply] = await ada.ask_and_wait("What is it?", "alpha")
    assert reply["content"] == "Forty-two."
    assert reply["thinking"]["text"] == "Six times seven, so"
    assert reply["thinking"]["seconds"] >= 0


async def test_a_reply_without_thinking_stores_none(ada, upstream):
    [reply] = await ada.ask_and_wait("Hello", "alpha")
    assert reply["thinking"] is None


async def test_usage_has_the_providers_token_counts_and_no_cost_when_the_price_is_unknown(ada, upstream):
    upstream.plays(says("Four words of answer.", usage=Usage(sent=120, cached=64, said=9, thought=4)))
    [reply] = await ada.ask_and_wait("Count", "alpha")
    usage = reply["usage"]
    counts = [usage[f"{kind}_tokens"] for kind in ("input", "cached", "output", "reasoning")]
    assert counts == [120, 64, 9, 4]
    assert usage["cost_micros"] is None
    assert 0 <= usage["first_token_ms"] <= usage["latency_ms"]


async def test_usage_has_the_cost_when_the_price_is_known(tmp_path, upstream):
    upstream.plays(says("Expensive.", usage=Usage(sent=1000, cached=400, said=100)))
    async with running(tmp_path, upstream.environ()) as world:
        ada = await world.set_up()
        [reply] = await ada.ask_and_wait("How much?", "openai:gpt-4o")
    # 600 uncached at $2.50, 400 cached at $1.25 and 100 output tokens at $10, each per million.
    assert reply["usage"]["cost_micros"] == 600 * 2.5 + 400 * 1.25 + 100 * 10


async def test_tokens_are_counted_locally_when_the_provider_reports_none(ada, upstream):
    upstream.plays((Say("Nobody counted these words."), Finish("stop", None)))
    [reply] = await ada.ask_and_wait("Count", "alpha")
    assert reply["usage"]["input_tokens"] > 20
    assert reply["usage"]["output_tokens"] > 3


async def test_a_reply_to_a_message_puts_it_into_the_prompt_and_stores_only_the_typed_text(ada, upstream):
    upstream.says("The earth is round.", model="alpha")
    first = await ada.ask("Round?", "alpha")
    await ada.wait_for_end(first["turn"]["id"])
    conversation = first["conversation"]["id"]
    [reply] = await ada.replies(conversation, 1)
    second = await ada.ask("Are you sure?", "alpha", conversation_id=conversation, reply_to_id=reply["id"])
    await ada.wait_for_end(second["turn"]["id"])
    prompt = (await upstream.wait_for_request(2)).body["messages"][-1]["content"]
    assert prompt.endswith('[Replying to Alpha: "The earth is round."]\n\nAre you sure?')
    assert second["message"]["content"] == "Are you sure?"


async def test_replying_to_a_message_of_another_conversation_is_refused(ada, upstream):
    [reply] = await ada.ask_and_wait("One", "alpha")
    other_turn = await ada.ask("Two", "alpha")
    await ada.wait_for_end(other_turn["turn"]["id"])
    await ada.ask(
        "Three", conversation_id=other_turn["conversation"]["id"], reply_to_id=reply["id"], expect=409
    )
    assert len(await stored_rounds(ada, other_turn["conversation"]["id"])) == 1


async def test_posting_a_turn_can_answer_with_an_event_stream(ada, upstream):
    upstream.says("Word by word", model="alpha")
    async with (
        ada.client.stream(
            "POST", "/api/turn", json=turn("Stream"), headers={"Accept": "text/event-stream"}
        ) as response,
        soon(),
    ):
        body = (await response.aread()).decode()
    assert response.headers["content-type"].startswith("text/event-stream")
    assert [line for line in body.splitlines() if line.startswith("event: ")][-1] == "event: ended"
    assert '"content":"Word by word"' in body


async def test_posting_a_turn_can_answer_with_json_lines(ada, upstream):
    upstream.says("Line by line", model="alpha")
    upstream.says("Also", model="beta")
    async with (
        ada.client.stream(
            "POST",
            "/api/turn",
            json=turn("Lines", "alpha", "beta"),
            headers={"Accept": "application/x-ndjson"},
        ) as response,
        soon(),
    ):
        lines = [json.loads(line) async for line in response.aiter_lines() if line]
    said_by = {line["speaker"] for line in lines if line["type"] == "reply"}
    done_by = {line["speaker"]: line["message"]["content"] for line in lines if "message" in line}
    assert said_by == {"agent:alpha", "agent:beta"}
    assert done_by == {"agent:alpha": "Line by line", "agent:beta": "Also"}
    assert lines[-1]["type"] == "done"
    assert lines[-1]["turn"]["state"] == "complete"


async def test_any_unicode_text_of_a_model_is_stored_unchanged(ada, upstream):
    text = 'Ελληνικά, 日本語, 👩‍👩‍👧, \u202eright to left\u202c, a\u0301, \\n and "quotes" </script>'
    upstream.plays(says(text, chunks=list(text)))
    [reply] = await ada.ask_and_wait("Say it", "alpha")
    assert reply["content"] == text


async def test_conversations_are_answered_independently_of_each_other(ada, upstream):
    release = asyncio.Event()
    upstream.plays((Say("Slow"), Hold(release), Finish()), model="alpha")
    slow_turn = await ada.ask("Slow one", "alpha")
    await wait_for_text(ada, slow_turn["turn"]["id"], "Slow")
    [quick_reply] = await ada.ask_and_wait("Quick one", "beta")
    assert quick_reply["status"] == "complete"
    release.set()
    await ada.wait_for_end(slow_turn["turn"]["id"])


async def nothing_was_written(person, upstream) -> bool:
    listed = await person.get("/api/conversations", project_id=person.home)
    return listed["items"] == [] and upstream.requests == []
