"""One message is answered by several minds at once."""

from __future__ import annotations

import asyncio
import json

import pytest

from tertulia import council
from tests.stories.listening import rounds, said
from tests.upstream.dialects import Usage
from tests.upstream.scripted import Finish, Hold, Say, says
from tests.world import running, turn


async def test_two_voices_answer_one_message(ada, upstream):
    upstream.says("Tea, of course.", model="alpha")
    upstream.says("Coffee.", model="beta")
    replies = await ada.hear("Tea or coffee?", "alpha", "beta")
    assert [(r["voice"]["name"], r["content"], r["status"]) for r in replies] == [
        ("Alpha", "Tea, of course.", "complete"),
        ("Beta", "Coffee.", "complete"),
    ]


async def test_all_voices_are_asked_before_any_has_answered(ada, upstream):
    everyone_asked = asyncio.Event()
    upstream.plays((Hold(everyone_asked), Say("Now."), Finish()))
    opened = await ada.ask("Together?", "alpha", "beta", "gamma")
    await upstream.heard(3)
    everyone_asked.set()
    await ada.ended(opened["turn"]["id"])
    replies = await ada.replies(opened["conversation"]["id"], 1)
    assert [reply["content"] for reply in replies] == ["Now."] * 3


async def test_quick_asks_one_voice(ada, upstream):
    upstream.says("Yes.")
    [reply] = await ada.hear("Just you?", "beta", mode="quick")
    assert (reply["content"], reply["speaker"], reply["role"]) == ("Yes.", "agent:beta", "advisor")
    assert len(upstream.requests) == 1


async def test_quick_with_two_voices_is_refused_with_a_sentence(ada, upstream):
    refusal = await ada.ask("Both?", "alpha", "beta", mode="quick", expect=422)
    assert refusal["message"] == "The mode quick takes 1 voice; this turn has 2."


async def test_the_same_model_can_sit_twice(ada, upstream):
    replies = await ada.hear("Hello", "alpha", "alpha")
    assert [r["voice"]["name"] for r in replies] == ["Alpha", "Alpha 2"]
    assert len(upstream.requests) == 2


async def test_of_two_seats_of_one_model_either_can_be_asked_alone_and_reads_its_own_words(ada, upstream):
    upstream.plays(says("One."), says("Two."), says("Again."), model="alpha")
    first = await ada.hear("Tea?", "alpha", "alpha")
    by_name = {reply["voice"]["name"]: reply for reply in first}
    second = by_name["Alpha 2"]
    [alone] = await ada.hear(
        "And you?",
        "alpha",
        conversation_id=second["conversation_id"],
        visibility="own_lane",
        aside=True,
        lanes=[second["voice"]["id"]],
    )
    assert alone["voice"] == second["voice"]
    shown = [message["content"] for message in upstream.requests[-1].body["messages"][1:]]
    assert second["content"] in shown
    assert by_name["Alpha"]["content"] not in str(shown)


async def test_eight_voices_can_sit_at_one_table(ada, upstream):
    table = ["alpha", "beta", "gamma", "alpha", "beta", "gamma", "alpha", "beta"]
    replies = await ada.hear("Everyone?", *table)
    assert [reply["voice"]["seat"] for reply in replies] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert {reply["status"] for reply in replies} == {"complete"}
    assert sorted(seen.model for seen in upstream.requests) == sorted(table)


async def test_the_ninth_voice_is_refused_and_nothing_is_written(ada, upstream):
    refusal = await ada.ask("Everyone?", *["alpha"] * 9, expect=422)
    assert refusal["message"] == "The mode parallel takes 1 to 8 voices; this turn has 9."
    assert await nothing_was_written(ada, upstream)


async def test_a_turn_without_voices_is_refused(ada, upstream):
    refusal = await ada.post("/api/turn", turn("Anyone?") | {"voices": []}, expect=422)
    assert refusal["code"] == "invalid"
    assert await nothing_was_written(ada, upstream)


async def test_an_unknown_model_is_refused_with_a_sentence_and_nothing_is_written(ada, upstream):
    refusal = await ada.ask("Hello", "alpha", "voices:delta", expect=422)
    assert refusal["code"] == "unknown_model"
    assert (
        refusal["message"]
        == "There is no model 'voices:delta' here. Choose one of those under Models and keys."
    )
    assert await nothing_was_written(ada, upstream)


async def test_a_model_without_a_key_is_refused_and_the_sentence_says_which_to_set(ada, upstream):
    refusal = await ada.ask("Hello", "openai:gpt-4o", expect=422)
    assert refusal["message"] == "GPT-4o cannot answer. Set OPENAI_API_KEY to use OpenAI's models."
    assert await nothing_was_written(ada, upstream)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"mode": "shouting"}, f"There is no mode 'shouting'. The modes are: {', '.join(council.MODES)}."),
        ({"text": " \n\t"}, "Write something first."),
        ({"id": "not-a-ulid"}, "A turn's id is a ULID made by the client."),
        ({"conversation_id": "mine"}, "A conversation's id is a ULID."),
    ],
)
async def test_what_cannot_be_asked_is_refused_and_nothing_is_written(ada, upstream, wrong, sentence):
    refusal = await ada.post("/api/turn", turn("Hello") | wrong, expect=422)
    assert refusal["message"] == sentence
    assert await nothing_was_written(ada, upstream)


async def test_a_message_over_a_mebibyte_is_refused(ada, upstream):
    refusal = await ada.ask("é" * (1 << 19) + "!", expect=413)
    assert refusal["code"] == "too_large"
    assert await nothing_was_written(ada, upstream)


async def test_the_answer_202_carries_the_turn_the_conversation_and_the_question(ada, upstream):
    held = asyncio.Event()
    upstream.plays((Hold(held), Finish()))
    opened = await ada.ask("What is said is kept as it was typed:  two spaces\r\n", "alpha")
    assert opened["turn"]["state"] == "running"
    assert opened["turn"]["round_number"] == 1
    assert opened["conversation"]["is_answering"] is True
    assert opened["conversation"]["table"] == opened["turn"]["table"]
    assert opened["message"]["content"] == "What is said is kept as it was typed:  two spaces\r\n"
    assert opened["message"]["role"] == "user"
    held.set()
    await ada.ended(opened["turn"]["id"])


async def test_a_client_can_name_the_conversation_it_begins(ada, upstream):
    mine = "01JD0000000000000000000000"
    opened = await ada.ask("First", conversation_id=mine, project_id=ada.home)
    assert opened["conversation"]["id"] == mine
    await ada.ended(opened["turn"]["id"])
    again = await ada.ask("Second", conversation_id=mine, project_id=ada.home)
    assert (again["conversation"]["id"], again["turn"]["round_number"]) == (mine, 2)
    await ada.ended(again["turn"]["id"])


async def test_a_conversation_that_does_not_exist_is_not_begun_without_a_project(ada, upstream):
    await ada.ask("Hello?", conversation_id="01JD0000000000000000000000", expect=404)
    assert await nothing_was_written(ada, upstream)


async def test_thinking_is_kept_beside_the_reply_and_not_in_it(ada, upstream):
    upstream.says("Forty-two.", thinking="Six times seven, so", model="alpha")
    [reply] = await ada.hear("What is it?", "alpha")
    assert reply["content"] == "Forty-two."
    assert reply["thinking"]["text"] == "Six times seven, so"
    assert reply["thinking"]["seconds"] >= 0


async def test_a_reply_without_thinking_has_none(ada, upstream):
    [reply] = await ada.hear("Hello", "alpha")
    assert reply["thinking"] is None


async def test_the_tokens_are_as_the_provider_counted_and_an_unknown_price_is_unknown(ada, upstream):
    upstream.plays(says("Four words of answer.", usage=Usage(sent=120, cached=64, said=9, thought=4)))
    [reply] = await ada.hear("Count", "alpha")
    usage = reply["usage"]
    counted = [usage[f"{kind}_tokens"] for kind in ("input", "cached", "output", "reasoning")]
    assert counted == [120, 64, 9, 4]
    assert usage["cost_micros"] is None
    assert 0 <= usage["first_token_ms"] <= usage["latency_ms"]


async def test_a_known_price_becomes_the_cost_of_the_reply(tmp_path, upstream):
    upstream.plays(says("Expensive.", usage=Usage(sent=1000, cached=400, said=100)))
    async with running(tmp_path, upstream.environ()) as world:
        ada = await world.first()
        [reply] = await ada.hear("How much?", "openai:gpt-4o")
    # 600 fresh at $2.50, 400 cached at $1.25 and 100 said at $10, each per million.
    assert reply["usage"]["cost_micros"] == 600 * 2.5 + 400 * 1.25 + 100 * 10


async def test_a_provider_that_does_not_count_is_counted_here(ada, upstream):
    upstream.plays((Say("Nobody counted these words."), Finish("stop", None)))
    [reply] = await ada.hear("Count", "alpha")
    assert reply["usage"]["input_tokens"] > 20
    assert reply["usage"]["output_tokens"] > 3


async def test_a_reply_can_quote_the_message_it_answers_and_stays_as_typed(ada, upstream):
    upstream.says("The earth is round.", model="alpha")
    opened = await ada.ask("Round?", "alpha")
    await ada.ended(opened["turn"]["id"])
    conversation = opened["conversation"]["id"]
    [reply] = await ada.replies(conversation, 1)
    again = await ada.ask("Are you sure?", "alpha", conversation_id=conversation, reply_to_id=reply["id"])
    await ada.ended(again["turn"]["id"])
    shown = (await upstream.heard(2)).body["messages"][-1]["content"]
    assert shown.endswith('[Replying to Alpha: "The earth is round."]\n\nAre you sure?')
    assert again["message"]["content"] == "Are you sure?"


async def test_a_message_of_another_conversation_cannot_be_replied_to(ada, upstream):
    [reply] = await ada.hear("One", "alpha")
    other = await ada.ask("Two", "alpha")
    await ada.ended(other["turn"]["id"])
    await ada.ask("Three", conversation_id=other["conversation"]["id"], reply_to_id=reply["id"], expect=409)
    assert len(await rounds(ada, other["conversation"]["id"])) == 1


async def test_the_stream_itself_can_be_the_answer(ada, upstream):
    upstream.says("Word by word", model="alpha")
    async with ada.client.stream(
        "POST", "/api/turn", json=turn("Stream"), headers={"Accept": "text/event-stream"}
    ) as response:
        body = (await response.aread()).decode()
    assert response.headers["content-type"].startswith("text/event-stream")
    assert [line for line in body.splitlines() if line.startswith("event: ")][-1] == "event: ended"
    assert '"content":"Word by word"' in body


async def test_lines_of_json_can_be_the_answer(ada, upstream):
    upstream.says("Line by line", model="alpha")
    upstream.says("Also", model="beta")
    async with ada.client.stream(
        "POST", "/api/turn", json=turn("Lines", "alpha", "beta"), headers={"Accept": "application/x-ndjson"}
    ) as response:
        lines = [json.loads(line) async for line in response.aiter_lines() if line]
    said_by = {line["speaker"] for line in lines if line["type"] == "reply"}
    done_by = {line["speaker"]: line["message"]["content"] for line in lines if "message" in line}
    assert said_by == {"agent:alpha", "agent:beta"}
    assert done_by == {"agent:alpha": "Line by line", "agent:beta": "Also"}
    assert lines[-1]["type"] == "done"
    assert lines[-1]["turn"]["state"] == "complete"


async def test_whatever_letters_a_model_writes_arrive_unharmed(ada, upstream):
    text = 'Ελληνικά, 日本語, 👩‍👩‍👧, \u202eright to left\u202c, a\u0301, \\n and "quotes" </script>'
    upstream.plays(says(text, chunks=list(text)))
    [reply] = await ada.hear("Say it", "alpha")
    assert reply["content"] == text


async def test_a_second_round_goes_on_while_others_talk_elsewhere(ada, upstream):
    held = asyncio.Event()
    upstream.plays((Say("Slow"), Hold(held), Finish()), model="alpha")
    slow = await ada.ask("Slow one", "alpha")
    await said(ada, slow["turn"]["id"], "Slow")
    [quick] = await ada.hear("Quick one", "beta")
    assert quick["status"] == "complete"
    held.set()
    await ada.ended(slow["turn"]["id"])


async def nothing_was_written(person, upstream) -> bool:
    listed = await person.get("/api/conversations", project_id=person.home)
    return listed["items"] == [] and upstream.requests == []
