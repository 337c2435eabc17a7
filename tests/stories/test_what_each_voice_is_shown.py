"""What each voice is shown: its own words as its own, all others by name, and a receipt that proves it."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from tertulia.app import new_id
from tertulia.context.assemble import rebuild
from tertulia.core.receipts import Receipt
from tertulia.core.serialization import from_plain
from tests.upstream.scripted import Cut, Say, Seen, Upstream, refuses, says
from tests.world import Person, running

ROUNDS = 32
WORKING = {"smart": 20, "balanced": 10, "fast": 5, "cheap": 5}


async def test_others_are_tagged_by_name_and_own_words_are_ones_own(ada, upstream):
    upstream.plays(says("Tea."), says("Still tea."), model="alpha")
    upstream.plays(says("Coffee."), says("Still coffee."), model="beta")
    first = await ada.hear("Tea or coffee?", "alpha", "beta")
    await ada.hear("Sure?", "alpha", "beta", conversation_id=first[0]["conversation_id"])
    alpha, beta = shown(upstream, "alpha")[1], shown(upstream, "beta")[1]
    assert [message["role"] for message in alpha] == ["system", "user", "assistant", "user"]
    assert [message["content"] for message in alpha[1:3]] == ["Tea or coffee?", "Tea."]
    assert alpha[3]["content"].startswith("[Beta]: Coffee.\n\n")
    assert alpha[3]["content"].endswith("\n\nSure?")
    assert [message["content"] for message in beta[1:3]] == ["Tea or coffee?", "Coffee."]
    assert beta[3]["content"].startswith("[Alpha]: Tea.\n\n")


async def test_nobody_sees_what_the_others_say_in_the_same_round(ada, upstream):
    upstream.says("A secret of this round.", model="alpha")
    await ada.hear("Well?", "alpha", "beta", "gamma")
    for seen in upstream.requests:
        assert "secret" not in json.dumps(seen.body)


async def test_each_is_told_its_own_name_and_how_the_table_talks(ada, upstream):
    await ada.hear("Who are you?", "alpha", "alpha")
    names = sorted(request(seen)[0]["content"].split(",")[0] for seen in upstream.requests)
    assert names == ["You are Alpha", "You are Alpha 2"]


async def test_two_voices_of_one_model_do_not_take_each_other_for_themselves(ada, upstream):
    upstream.plays(says("I say one thing."), says("I say another."), says("On we go."), model="alpha")
    first = await ada.hear("Talk", "alpha", "alpha")
    own = {reply["voice"]["name"]: reply["content"] for reply in first}
    await ada.hear("Go on", "alpha", "alpha", conversation_id=first[0]["conversation_id"])
    for messages in shown(upstream, "alpha")[2:]:
        name = messages[0]["content"].split(",")[0].removeprefix("You are ")
        other = next(voice for voice in own if voice != name)
        assert messages[2] == {"role": "assistant", "content": own[name]}
        assert f"[{other}]: {own[other]}" in messages[3]["content"]


async def test_roles_alternate_whatever_happened(ada, upstream):
    """Failed and broken replies, voices that come and go: strict providers accept none of it unmended."""
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
        [reply, *_] = await ada.hear(
            text, *table, **({"conversation_id": conversation} if conversation else {})
        )
        conversation = reply["conversation_id"]
    for seen in upstream.requests:
        system, *messages = request(seen)
        assert system["role"] == "system"
        assert [message["role"] for message in messages[::2]] == ["user"] * len(messages[::2])
        assert [message["role"] for message in messages[1::2]] == ["assistant"] * len(messages[1::2])
        assert all(message["content"].strip() for message in messages)


async def test_in_its_own_lane_a_voice_sees_the_person_and_itself_alone(ada, upstream):
    upstream.plays(says("Mine."), says("Mine again."), model="alpha")
    upstream.plays(says("Not yours."), says("Not yours again."), model="beta")
    first = await ada.hear("One", "alpha", "beta", visibility="own_lane")
    await ada.hear("Two", "alpha", "beta", visibility="own_lane", conversation_id=first[0]["conversation_id"])
    second = shown(upstream, "alpha")[1]
    assert "Not yours" not in json.dumps(second)
    assert [message["content"] for message in second[1:3]] == ["One", "Mine."]


async def test_a_lane_can_be_opened_again_from_round_to_round(ada, upstream):
    upstream.says("Hidden, then seen.", model="beta")
    first = await ada.hear("One", "alpha", "beta", visibility="own_lane")
    conversation = first[0]["conversation_id"]
    await ada.hear("Two", "alpha", "beta", conversation_id=conversation, visibility="open")
    assert "[Beta]: Hidden, then seen." in shown(upstream, "alpha")[1][3]["content"]


async def test_the_projects_instructions_reach_everyone(ada, upstream):
    await ada.put(f"/api/projects/{ada.home}", {"instructions": "Answer in rhyme."})
    await ada.hear("Hello", "alpha", "beta")
    assert all("Answer in rhyme." in request(seen)[0]["content"] for seen in upstream.requests)


async def test_nothing_that_changes_with_the_round_stands_in_the_system_prompt(ada, upstream):
    [first] = await ada.hear("One", "alpha")
    for text in ("Two", "Three"):
        await ada.hear(text, "alpha", conversation_id=first["conversation_id"])
    assert len({messages[0]["content"] for messages in shown(upstream, "alpha")}) == 1


@pytest.mark.parametrize(
    "words", ["Plain.", "Zwei\n\nAbsätze", " leading and trailing ", "日本語 👩‍👩‍👧 \u202e"]
)
async def test_the_request_rebuilt_from_the_receipt_is_the_request_that_was_sent(ada, upstream, words):
    upstream.plays(says(words, chunks=[words]))
    first = await ada.hear(words, "alpha", "beta")
    conversation = first[0]["conversation_id"]
    second = await ada.hear(
        f"And {words}", "alpha", "beta", conversation_id=conversation, reply_to_id=first[1]["id"]
    )
    for reply in (*first, *second):
        sent = shown(upstream, reply["voice"]["model"].split(":")[1])[reply["round_number"] - 1]
        assert await rebuilt(ada, reply["id"]) == sent


async def test_the_receipt_of_a_retry_and_of_a_continued_reply_rebuild_theirs(ada, upstream):
    upstream.plays((Say("Half"), Cut()), says(" and whole."), says("Anew."))
    [broken] = await ada.hear("Tell", "alpha")
    for what in ("continue", "retry"):
        opened = await ada.post(f"/api/messages/{broken['id']}/{what}", {"id": new_id()}, expect=202)
        await ada.ended(opened["turn"]["id"])
    replies = sorted(await ada.replies(broken["conversation_id"], 1), key=lambda r: r["created_at"])
    for reply, sent in zip(replies, shown(upstream, "alpha"), strict=True):
        assert await rebuilt(ada, reply["id"]) == sent


async def test_the_receipt_says_why_each_part_was_shown(ada, upstream):
    first = await ada.hear("One", "alpha", "beta")
    [second] = await ada.hear("Two", "alpha", conversation_id=first[0]["conversation_id"])
    receipt = await ada.get(f"/api/messages/{second['id']}/receipt")
    assert receipt["model"] == "voices:alpha"
    told = [(segment["layer"], segment["reason"], segment["source_id"]) for segment in receipt["segments"]]
    recent = [source for layer, reason, source in told if reason == "recent"]
    assert len(recent) == 3
    assert {first[0]["id"], first[1]["id"]} < set(recent)
    assert told[-1][:2] == ("question", "asked_now")
    assert all(segment["tokens"] > 0 for segment in receipt["segments"])
    assert 0 < sum(segment["tokens"] for segment in receipt["segments"]) <= receipt["budget_tokens"]


async def test_a_reply_that_was_shown_nothing_has_no_receipt(ada, upstream):
    [reply] = await ada.hear("word " * 9000, "alpha")
    await ada.get(f"/api/messages/{reply['id']}/receipt", expect=404)


async def test_a_stranger_cannot_read_a_receipt(ada, bob, upstream):
    [reply] = await ada.hear("Private", "alpha")
    await bob.get(f"/api/messages/{reply['id']}/receipt", expect=404)


@pytest.mark.slow
async def test_over_thirty_rounds_each_tier_keeps_its_window_and_the_prefix_holds(tmp_path, upstream):
    models = [{"id": tier, "tier": tier, "window": 100_000} for tier in WORKING]
    row = {"name": "voices", "base_url": f"{upstream.url}/v1", "is_local": False, "models": models}
    upstream.says("Noted.")
    async with running(tmp_path, {"TERTULIA_ENDPOINTS": json.dumps([row])}) as world:
        ada = await world.first()
        await ada.put(f"/api/projects/{ada.home}", {"settings": {"retrieval_config": {"enabled": False}}})
        opened = await ada.ask("Question 1", *WORKING)
        await ada.ended(opened["turn"]["id"])
        for number in range(2, ROUNDS + 1):
            asked = await ada.ask(
                f"Question {number}", *WORKING, conversation_id=opened["conversation"]["id"]
            )
            await ada.ended(asked["turn"]["id"])
        for tier, working in WORKING.items():
            requests = shown(upstream, tier)
            assert len(requests) == ROUNDS
            for number, messages in enumerate(requests, start=1):
                rounds = earlier_rounds(messages)
                assert rounds == list(range(number - len(rounds), number)), "the last rounds, whole, in order"
                assert min(number - 1, working) <= len(rounds) <= min(number - 1, working + working // 2)
            assert moves(requests) <= (ROUNDS - working) // (working // 2) + 1
        last = await ada.replies(opened["conversation"]["id"], ROUNDS)
        for reply in last:
            kept = earlier_rounds(shown(upstream, reply["voice"]["model"].split(":")[1])[-1])
            receipt = await ada.get(f"/api/messages/{reply['id']}/receipt")
            assert [(left["reason"], left["round_number"]) for left in receipt["left_out"]] == [
                ("outside_window", ROUNDS - 1 - len(kept)),
                ("search_off", None),
            ]


async def test_a_project_that_wants_little_context_shows_fewer_rounds(ada, upstream):
    await ada.put(f"/api/projects/{ada.home}", {"settings": {"context_strategy": "minimal"}})
    upstream.says("Noted.")
    [first] = await ada.hear("Question 1", "alpha")
    for number in range(2, 9):
        await ada.hear(f"Question {number}", "alpha", conversation_id=first["conversation_id"])
    assert earlier_rounds(shown(upstream, "alpha")[-1]) == [3, 4, 5, 6, 7]


async def test_who_is_asked_again_because_of_another_is_shown_as_many_rounds_as_before(tmp_path, upstream):
    """The critic, who failed at first, remembers more than the one it reviews."""
    models = [{"id": tier, "tier": tier, "window": 100_000} for tier in ("fast", "smart")]
    row = {"name": "voices", "base_url": f"{upstream.url}/v1", "is_local": False, "models": models}
    upstream.says("Noted.")
    async with running(tmp_path, {"TERTULIA_ENDPOINTS": json.dumps([row])}) as world:
        ada = await world.first()
        [first] = await ada.hear("Question 1", "smart")
        more = {"conversation_id": first["conversation_id"]}
        for number in range(2, 12):
            await ada.hear(f"Question {number}", "smart", **more)
        upstream.plays(refuses(401), says("I agree."), model="smart")
        [answer, _] = await ada.hear("Question 12", "fast", "smart", mode="second_opinion", **more)
        again = await ada.post(f"/api/messages/{answer['id']}/retry", {"id": new_id()}, expect=202)
        await ada.ended(again["turn"]["id"])
    assert earlier_rounds(shown(upstream, "fast")[-1])[0] == 7
    assert earlier_rounds(shown(upstream, "smart")[-1]) == list(range(1, 12))


def request(seen: Seen) -> list[dict[str, Any]]:
    return list(seen.body["messages"])


def shown(upstream: Upstream, model: str) -> list[list[dict[str, Any]]]:
    """What a model was sent, request by request."""
    return [request(seen) for seen in upstream.requests if seen.model == model]


async def rebuilt(person: Person, message_id: str) -> list[dict[str, Any]]:
    """The request as the receipt tells it."""
    prompt = rebuild(from_plain(Receipt, await person.get(f"/api/messages/{message_id}/receipt")))
    system = [{"role": "system", "content": prompt.system}]
    return system + [{"role": message.role, "content": message.content} for message in prompt.messages]


def earlier_rounds(messages: list[dict[str, Any]]) -> list[int]:
    """The numbers of the questions in a request, without the one asked now."""
    lines = [line for message in messages[1:] for line in message["content"].splitlines()]
    return [int(line.split()[1]) for line in lines if line.startswith("Question ")][:-1]


def moves(requests: list[list[dict[str, Any]]]) -> int:
    """How often the beginning of the prompt changed, and the provider's cache with it."""
    return sum(after[: len(before) - 1] != before[:-1] for before, after in pairwise(requests))


async def test_every_round_says_later_in_which_mode_and_under_which_visibility_it_was_answered(ada, upstream):
    """The newest six are read by page; the oldest with those before."""
    given = [("parallel", "open"), ("quick", "own_lane"), ("parallel", "own_lane")] * 2
    conversation = None
    for mode, visibility in given:
        more = {} if conversation is None else {"conversation_id": conversation}
        voices = ("alpha", "beta") if mode == "parallel" else ("alpha",)
        replies = await ada.hear("Well?", *voices, mode=mode, visibility=visibility, **more)
        conversation = replies[0]["conversation_id"]
    page = await ada.get(f"/api/conversations/{conversation}")
    older = await ada.get(f"/api/conversations/{conversation}/messages", before=page["next_before"])
    turns = {turn["id"]: turn for turn in (*older["turns"], *page["turns"])}
    shown = []
    for round_ in (*older["rounds"], *page["rounds"]):
        turn = turns[round_["messages"][0]["turn_id"]]
        shown.append((turn["mode"], turn["visibility"]))
        assert (turn["state"], len(turn["table"])) == ("complete", 2 if turn["mode"] == "parallel" else 1)
    assert shown == given
