"""A prompt has a voice's own replies as its own and all others by name, and the receipt rebuilds it."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from tertulia.app import new_id
from tertulia.context.assemble import rebuild
from tertulia.core.receipts import Receipt
from tertulia.core.serialization import from_plain
from tests.upstream.scripted import Cut, RecordedRequest, Say, Upstream, refuses, says
from tests.world import Person, running

ROUNDS = 32
WORKING = {"smart": 20, "balanced": 10, "fast": 5, "cheap": 5}


async def test_own_replies_are_assistant_messages_and_others_are_tagged_by_name(ada, upstream):
    upstream.plays(says("Tea."), says("Still tea."), model="alpha")
    upstream.plays(says("Coffee."), says("Still coffee."), model="beta")
    first = await ada.ask_and_wait("Tea or coffee?", "alpha", "beta")
    await ada.ask_and_wait("Sure?", "alpha", "beta", conversation_id=first[0]["conversation_id"])
    alpha, beta = prompts_of(upstream, "alpha")[1], prompts_of(upstream, "beta")[1]
    assert [message["role"] for message in alpha] == ["system", "user", "assistant", "user"]
    assert [message["content"] for message in alpha[1:3]] == ["Tea or coffee?", "Tea."]
    assert alpha[3]["content"].startswith("[Beta]: Coffee.\n\n")
    assert alpha[3]["content"].endswith("\n\nSure?")
    assert [message["content"] for message in beta[1:3]] == ["Tea or coffee?", "Coffee."]
    assert beta[3]["content"].startswith("[Alpha]: Tea.\n\n")


async def test_a_parallel_round_hides_the_replies_of_the_other_voices(ada, upstream):
    upstream.says("A secret of this round.", model="alpha")
    await ada.ask_and_wait("Well?", "alpha", "beta", "gamma")
    for request in upstream.requests:
        assert "secret" not in json.dumps(request.body)


async def test_the_system_prompt_names_the_voice(ada, upstream):
    await ada.ask_and_wait("Who are you?", "alpha", "alpha")
    names = sorted(messages_of(request)[0]["content"].split(",")[0] for request in upstream.requests)
    assert names == ["You are Alpha", "You are Alpha 2"]


async def test_two_voices_of_one_model_have_separate_assistant_messages(ada, upstream):
    upstream.plays(says("I say one thing."), says("I say another."), says("On we go."), model="alpha")
    first = await ada.ask_and_wait("Talk", "alpha", "alpha")
    own = {reply["voice"]["name"]: reply["content"] for reply in first}
    await ada.ask_and_wait("Go on", "alpha", "alpha", conversation_id=first[0]["conversation_id"])
    for messages in prompts_of(upstream, "alpha")[2:]:
        name = messages[0]["content"].split(",")[0].removeprefix("You are ")
        other_name = next(voice for voice in own if voice != name)
        assert messages[2] == {"role": "assistant", "content": own[name]}
        assert f"[{other_name}]: {own[other_name]}" in messages[3]["content"]


async def test_user_and_assistant_messages_alternate_in_every_case(ada, upstream):
    """Failed and interrupted replies and changing tables: strict providers require alternating roles."""
    upstream.plays(
        refuses(401), says("Two."), (Say("Thr"), Cut()), says("Four."), says("Five."), model="alpha"
    )
    conversation = None
    for text, table in [
        ("One", ["alpha"]),
        ("Two", ["alpha", "beta"]),
        ("Three", ["alpha", "gamma"]),
        ("Four", ["beta", "alpha"]),
        ("Five", ["alpha", "beta", "gamma"]),
    ]:
        [reply, *_] = await ada.ask_and_wait(
            text, *table, **({"conversation_id": conversation} if conversation else {})
        )
        conversation = reply["conversation_id"]
    for request in upstream.requests:
        system, *messages = messages_of(request)
        assert system["role"] == "system"
        assert [message["role"] for message in messages[::2]] == ["user"] * len(messages[::2])
        assert [message["role"] for message in messages[1::2]] == ["assistant"] * len(messages[1::2])
        assert all(message["content"].strip() for message in messages)


async def test_own_lane_shows_a_voice_only_the_person_and_itself(ada, upstream):
    upstream.plays(says("Mine."), says("Mine again."), model="alpha")
    upstream.plays(says("Not yours."), says("Not yours again."), model="beta")
    first = await ada.ask_and_wait("One", "alpha", "beta", visibility="own_lane")
    await ada.ask_and_wait(
        "Two", "alpha", "beta", visibility="own_lane", conversation_id=first[0]["conversation_id"]
    )
    second = prompts_of(upstream, "alpha")[1]
    assert "Not yours" not in json.dumps(second)
    assert [message["content"] for message in second[1:3]] == ["One", "Mine."]


async def test_a_later_round_can_use_the_open_visibility_again(ada, upstream):
    upstream.says("Hidden, then seen.", model="beta")
    first = await ada.ask_and_wait("One", "alpha", "beta", visibility="own_lane")
    conversation = first[0]["conversation_id"]
    await ada.ask_and_wait("Two", "alpha", "beta", conversation_id=conversation, visibility="open")
    assert "[Beta]: Hidden, then seen." in prompts_of(upstream, "alpha")[1][3]["content"]


async def test_the_project_instructions_are_in_every_system_prompt(ada, upstream):
    await ada.put(f"/api/projects/{ada.home}", {"instructions": "Answer in rhyme."})
    await ada.ask_and_wait("Hello", "alpha", "beta")
    assert all("Answer in rhyme." in messages_of(request)[0]["content"] for request in upstream.requests)


async def test_the_system_prompt_stays_the_same_in_every_round(ada, upstream):
    [first] = await ada.ask_and_wait("One", "alpha")
    for text in ("Two", "Three"):
        await ada.ask_and_wait(text, "alpha", conversation_id=first["conversation_id"])
    assert len({messages[0]["content"] for messages in prompts_of(upstream, "alpha")}) == 1


@pytest.mark.parametrize(
    "words", ["Plain.", "Zwei\n\nAbsätze", " leading and trailing ", "日本語 👩‍👩‍👧 \u202e"]
)
async def test_the_prompt_rebuilt_from_the_receipt_equals_the_prompt_that_was_sent(ada, upstream, words):
    upstream.plays(says(words, chunks=[words]))
    first = await ada.ask_and_wait(words, "alpha", "beta")
    conversation = first[0]["conversation_id"]
    second = await ada.ask_and_wait(
        f"And {words}", "alpha", "beta", conversation_id=conversation, reply_to_id=first[1]["id"]
    )
    for reply in (*first, *second):
        prompt = prompts_of(upstream, reply["voice"]["model"].split(":")[1])[reply["round_number"] - 1]
        assert await rebuilt_messages(ada, reply["id"]) == prompt


async def test_the_receipts_of_a_retry_and_a_continued_reply_rebuild_their_prompts(ada, upstream):
    upstream.plays((Say("Half"), Cut()), says(" and whole."), says("Anew."))
    [broken] = await ada.ask_and_wait("Tell", "alpha")
    for action in ("continue", "retry"):
        opened = await ada.post(f"/api/messages/{broken['id']}/{action}", {"id": new_id()}, expect=202)
        await ada.wait_for_end(opened["turn"]["id"])
    replies = sorted(await ada.replies(broken["conversation_id"], 1), key=lambda r: r["created_at"])
    for reply, prompt in zip(replies, prompts_of(upstream, "alpha"), strict=True):
        assert await rebuilt_messages(ada, reply["id"]) == prompt


async def test_the_receipt_gives_a_reason_for_each_segment(ada, upstream):
    first = await ada.ask_and_wait("One", "alpha", "beta")
    [second] = await ada.ask_and_wait("Two", "alpha", conversation_id=first[0]["conversation_id"])
    receipt = await ada.get(f"/api/messages/{second['id']}/receipt")
    assert receipt["model"] == "voices:alpha"
    segments = [
        (segment["layer"], segment["reason"], segment["source_id"]) for segment in receipt["segments"]
    ]
    recent = [source for layer, reason, source in segments if reason == "recent"]
    assert len(recent) == 3
    assert {first[0]["id"], first[1]["id"]} < set(recent)
    assert segments[-1][:2] == ("question", "asked_now")
    assert all(segment["tokens"] > 0 for segment in receipt["segments"])
    assert 0 < sum(segment["tokens"] for segment in receipt["segments"]) <= receipt["budget_tokens"]


async def test_a_reply_without_a_request_has_no_receipt(ada, upstream):
    [reply] = await ada.ask_and_wait("word " * 9000, "alpha")
    await ada.get(f"/api/messages/{reply['id']}/receipt", expect=404)


async def test_a_stranger_cannot_read_a_receipt(ada, bob, upstream):
    [reply] = await ada.ask_and_wait("Private", "alpha")
    await bob.get(f"/api/messages/{reply['id']}/receipt", expect=404)


@pytest.mark.slow
async def test_over_thirty_rounds_each_tier_keeps_its_window_and_a_stable_prefix(tmp_path, upstream):
    models = [{"id": tier, "tier": tier, "window": 100_000} for tier in WORKING]
    row = {"name": "voices", "base_url": f"{upstream.url}/v1", "is_local": False, "models": models}
    upstream.says("Noted.")
    async with running(tmp_path, {"TERTULIA_ENDPOINTS": json.dumps([row])}) as world:
        ada = await world.set_up()
        await ada.put(f"/api/projects/{ada.home}", {"settings": {"retrieval_config": {"enabled": False}}})
        opened = await ada.ask("Question 1", *WORKING)
        await ada.wait_for_end(opened["turn"]["id"])
        for number in range(2, ROUNDS + 1):
            turn_ = await ada.ask(
                f"Question {number}", *WORKING, conversation_id=opened["conversation"]["id"]
            )
            await ada.wait_for_end(turn_["turn"]["id"])
        for tier, working in WORKING.items():
            prompts = prompts_of(upstream, tier)
            assert len(prompts) == ROUNDS
            for number, messages in enumerate(prompts, start=1):
                rounds = earlier_rounds(messages)
                assert rounds == list(range(number - len(rounds), number)), (
                    "the latest rounds, complete and in order"
                )
                assert min(number - 1, working) <= len(rounds) <= min(number - 1, working + working // 2)
            assert prefix_changes(prompts) <= (ROUNDS - working) // (working // 2) + 1
        last_replies = await ada.replies(opened["conversation"]["id"], ROUNDS)
        for reply in last_replies:
            rounds_sent = earlier_rounds(prompts_of(upstream, reply["voice"]["model"].split(":")[1])[-1])
            receipt = await ada.get(f"/api/messages/{reply['id']}/receipt")
            assert [(omitted["reason"], omitted["round_number"]) for omitted in receipt["left_out"]] == [
                ("outside_window", ROUNDS - 1 - len(rounds_sent)),
                ("search_off", None),
            ]


async def test_the_minimal_context_strategy_sends_fewer_rounds(ada, upstream):
    await ada.put(f"/api/projects/{ada.home}", {"settings": {"context_strategy": "minimal"}})
    upstream.says("Noted.")
    [first] = await ada.ask_and_wait("Question 1", "alpha")
    for number in range(2, 9):
        await ada.ask_and_wait(f"Question {number}", "alpha", conversation_id=first["conversation_id"])
    assert earlier_rounds(prompts_of(upstream, "alpha")[-1]) == [3, 4, 5, 6, 7]


async def test_a_repeated_review_gets_as_many_rounds_as_before(tmp_path, upstream):
    """The critic, who failed at first, has a larger window than the voice it reviews."""
    models = [{"id": tier, "tier": tier, "window": 100_000} for tier in ("fast", "smart")]
    row = {"name": "voices", "base_url": f"{upstream.url}/v1", "is_local": False, "models": models}
    upstream.says("Noted.")
    async with running(tmp_path, {"TERTULIA_ENDPOINTS": json.dumps([row])}) as world:
        ada = await world.set_up()
        [first] = await ada.ask_and_wait("Question 1", "smart")
        conversation = {"conversation_id": first["conversation_id"]}
        for number in range(2, 12):
            await ada.ask_and_wait(f"Question {number}", "smart", **conversation)
        upstream.plays(refuses(401), says("I agree."), model="smart")
        [answer, _] = await ada.ask_and_wait(
            "Question 12", "fast", "smart", mode="second_opinion", **conversation
        )
        retry = await ada.post(f"/api/messages/{answer['id']}/retry", {"id": new_id()}, expect=202)
        await ada.wait_for_end(retry["turn"]["id"])
    assert earlier_rounds(prompts_of(upstream, "fast")[-1])[0] == 7
    assert earlier_rounds(prompts_of(upstream, "smart")[-1]) == list(range(1, 12))


def messages_of(request: RecordedRequest) -> list[dict[str, Any]]:
    return list(request.body["messages"])


def prompts_of(upstream: Upstream, model: str) -> list[list[dict[str, Any]]]:
    """The messages that a model got, one list per request."""
    return [messages_of(request) for request in upstream.requests if request.model == model]


async def rebuilt_messages(person: Person, message_id: str) -> list[dict[str, Any]]:
    """The messages that the receipt rebuilds."""
    prompt = rebuild(from_plain(Receipt, await person.get(f"/api/messages/{message_id}/receipt")))
    system = [{"role": "system", "content": prompt.system}]
    return system + [{"role": message.role, "content": message.content} for message in prompt.messages]


def earlier_rounds(messages: list[dict[str, Any]]) -> list[int]:
    """The numbers of the earlier questions in a prompt."""
    lines = [line for message in messages[1:] for line in message["content"].splitlines()]
    return [int(line.split()[1]) for line in lines if line.startswith("Question ")][:-1]


def prefix_changes(requests: list[list[dict[str, Any]]]) -> int:
    """How often the beginning of the prompt changed, which invalidates the provider's cache."""
    return sum(after[: len(before) - 1] != before[:-1] for before, after in pairwise(requests))


async def test_every_page_has_the_mode_and_visibility_of_its_rounds(ada, upstream):
    """The newest rounds come with the page, the older ones with the page before it."""
    settings_ = [("parallel", "open"), ("quick", "own_lane"), ("parallel", "own_lane")] * 2
    conversation = None
    for mode, visibility in settings_:
        more = {} if conversation is None else {"conversation_id": conversation}
        voices = ("alpha", "beta") if mode == "parallel" else ("alpha",)
        replies = await ada.ask_and_wait("Well?", *voices, mode=mode, visibility=visibility, **more)
        conversation = replies[0]["conversation_id"]
    page = await ada.get(f"/api/conversations/{conversation}")
    older = await ada.get(f"/api/conversations/{conversation}/messages", before=page["next_before"])
    turns = {turn["id"]: turn for turn in (*older["turns"], *page["turns"])}
    stored = []
    for round_ in (*older["rounds"], *page["rounds"]):
        turn = turns[round_["messages"][0]["turn_id"]]
        stored.append((turn["mode"], turn["visibility"]))
        assert (turn["state"], len(turn["table"])) == ("complete", 2 if turn["mode"] == "parallel" else 1)
    assert stored == settings_
