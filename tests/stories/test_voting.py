"""A vote marks the best reply, which decides what later prompts contain and who leads the leaderboard."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import aclosing
from typing import Any

import pytest

from tertulia.app import new_id
from tests.patience import soon
from tests.server.cast import at_rest
from tests.upstream.scripted import Finish, Hold, Say, Upstream, refuses, says
from tests.world import Person, turn

TABLE = ("alpha", "beta", "gamma")
SEES = {
    "open": {"alpha": {"alpha", "beta", "gamma"}, "beta": {"alpha", "beta", "gamma"}},
    "own_lane": {"alpha": {"alpha"}, "beta": {"beta"}},
    "chosen": {"alpha": {"beta"}, "beta": {"beta"}},
}
"""The voices whose canary each voice sees, by visibility, after a round in which Beta was voted best."""
"""The names of the visibilities in the interface."""


# ── visibility


@pytest.mark.parametrize("visibility", SEES)
async def test_each_voice_sees_exactly_the_replies_that_the_visibility_allows(ada, upstream, visibility):
    first = await ask_with_canaries(ada, upstream, 1)
    await ada.post(f"/api/messages/{reply_by(first, 'beta')['id']}/vote", {"verdict": "best"})
    second = await ask_with_canaries(ada, upstream, 2, conversation_id=first[0]["conversation_id"])
    await ada.post(f"/api/messages/{reply_by(second, 'beta')['id']}/vote", {"verdict": "best"})
    third = await ada.ask_and_wait(
        "Three", *TABLE, conversation_id=first[0]["conversation_id"], visibility=visibility
    )
    for name, may_see in SEES[visibility].items():
        prompt = json.dumps(last_prompt(upstream, name))
        for number in (1, 2):
            visible = {voice for voice in TABLE if canary(number, voice) in prompt}
            assert visible == may_see, f"{name} in round {number}"
        assert [message["role"] for message in last_prompt(upstream, name)[1:]][::2] == ["user"] * (
            len(last_prompt(upstream, name)) // 2
        )
        receipt = await ada.get(f"/api/messages/{reply_by(third, name)['id']}/receipt")
        hidden = [omitted for omitted in receipt["left_out"] if omitted["reason"].startswith("hidden_by_")]
        assert len(hidden) == 2 * (3 - len(may_see))
        assert {omitted["reason"] for omitted in hidden} == ({f"hidden_by_{visibility}"} if hidden else set())


async def test_the_best_reply_stays_an_assistant_message_for_its_own_voice(ada, upstream):
    first = await ask_with_canaries(ada, upstream, 1)
    await ada.post(f"/api/messages/{reply_by(first, 'beta')['id']}/vote", {"verdict": "best"})
    await ada.ask_and_wait("Two", *TABLE, conversation_id=first[0]["conversation_id"], visibility="chosen")
    assert last_prompt(upstream, "beta")[2] == {"role": "assistant", "content": canary(1, "beta")}
    assert f"[Beta]: {canary(1, 'beta')}" in last_prompt(upstream, "alpha")[1]["content"]


async def test_best_replies_only_shows_every_reply_of_a_round_without_votes(ada, upstream):
    first = await ask_with_canaries(ada, upstream, 1)
    second = await ask_with_canaries(
        ada, upstream, 2, conversation_id=first[0]["conversation_id"], visibility="chosen"
    )
    await ada.post(f"/api/messages/{reply_by(second, 'gamma')['id']}/vote", {"verdict": "best"})
    await ada.ask_and_wait("Three", *TABLE, conversation_id=first[0]["conversation_id"], visibility="chosen")
    prompt = json.dumps(last_prompt(upstream, "alpha"))
    assert {voice for voice in TABLE if canary(1, voice) in prompt} == set(TABLE)
    assert {voice for voice in TABLE if canary(2, voice) in prompt} == {"gamma"}


async def test_the_newest_vote_counts_and_a_withdrawn_one_does_not(ada, upstream):
    first = await ask_with_canaries(ada, upstream, 1)
    conversation = first[0]["conversation_id"]
    for name, verdict, visible in [
        ("beta", "best", {"beta"}),
        ("gamma", "best", {"gamma"}),
        ("gamma", "none", set(TABLE)),
    ]:
        await ada.post(f"/api/messages/{reply_by(first, name)['id']}/vote", {"verdict": verdict})
        await ada.ask_and_wait("Well?", *TABLE, conversation_id=conversation, visibility="chosen")
        prompt = json.dumps(last_prompt(upstream, "alpha"))
        assert {voice for voice in TABLE if canary(1, voice) in prompt} == visible


async def test_a_retry_uses_the_visibility_of_its_own_round(ada, upstream):
    first = await ask_with_canaries(ada, upstream, 1)
    conversation = first[0]["conversation_id"]
    upstream.plays(refuses(401), says("Noted."), model="beta")
    second = await ada.ask_and_wait("Two", *TABLE, conversation_id=conversation, visibility="own_lane")
    await ada.ask_and_wait("Three", *TABLE, conversation_id=conversation, visibility="open")
    opened = await ada.post(
        f"/api/messages/{reply_by(second, 'beta')['id']}/retry", {"id": new_id()}, expect=202
    )
    await ada.wait_for_end(opened["turn"]["id"])
    prompt = json.dumps(last_prompt(upstream, "beta"))
    assert {voice for voice in TABLE if canary(1, voice) in prompt} == {"beta"}


async def test_the_visibility_is_stored_with_the_turn(ada):
    opened = await ada.ask("One", "alpha", visibility="chosen")
    turn_ = await ada.get(f"/api/turns/{opened['turn']['id']}")
    assert (turn_["visibility"], opened["conversation"]["visibility"]) == ("chosen", "chosen")


# ── voting


async def test_a_vote_is_sent_as_an_event_and_is_in_the_conversation_page(ada, upstream):
    replies = await ada.ask_and_wait("Tea?", *TABLE)
    conversation = replies[0]["conversation_id"]
    page = await ada.get(f"/api/conversations/{conversation}")
    async with ada.live() as tab:
        await tab.follow(f"conversation:{conversation}", page["cursor"])
        vote = await ada.post(f"/api/messages/{replies[1]['id']}/vote", {"verdict": "best"})
        [*_, item_] = await tab.until(lambda item: item.get("noun") == "vote")
    assert item_["value"] == vote
    assert (await ada.get(f"/api/conversations/{conversation}"))["votes"] == [vote]
    assert (await ada.get(f"/api/conversations/{conversation}/messages"))["votes"] == [vote]
    assert [contender["name"] for contender in vote["contenders"]] == ["Alpha", "Beta", "Gamma"]


async def test_only_the_first_vote_of_a_blind_round_is_blind(ada, upstream):
    replies = await ada.ask_and_wait("Tea?", "alpha", "beta", is_blind=True)
    vote = await ada.post(f"/api/messages/{replies[0]['id']}/vote", {"verdict": "tie"})
    assert (vote["is_blind"], vote["message_id"], vote["verdict"]) == (True, None, "tie")
    second_vote = await ada.post(f"/api/messages/{replies[0]['id']}/vote", {"verdict": "best"})
    assert not second_vote["is_blind"], "the first vote has revealed the names"


async def test_no_response_reveals_the_names_of_a_blind_round(world, ada, upstream):
    followed, release = asyncio.Event(), asyncio.Event()
    upstream.plays((Hold(followed), Say("Tea."), Hold(release), Finish()), model="alpha")
    upstream.plays(refuses(401), model="beta")
    conversation = new_id()
    body = turn("Tea?", "alpha", "beta", conversation_id=conversation, project_id=ada.home, is_blind=True)
    async with ada.live() as tab:
        opened = await ada.post("/api/turn", body, expect=202)
        items = await tab.follow(f"conversation:{conversation}")
        followed.set()
        turn_id = opened["turn"]["id"]
        items += await tab.until(lambda item: item["type"] == "delta")
        page = await ada.get(f"/api/conversations/{conversation}")
        release.set()
        events = await ada.wait_for_end(turn_id)
        items += await tab.until(lambda item: is_over(item, turn_id))
        failed, tea = sorted(await ada.replies(conversation, 1), key=lambda reply: reply["content"])
        retry = await ada.post(f"/api/messages/{failed['id']}/retry", {"id": new_id()}, expect=202)
        items += await tab.until(lambda item: is_over(item, retry["turn"]["id"]))
    lines = await ada.client.get(f"/api/turns/{turn_id}/events", headers={"Accept": "application/x-ndjson"})
    stale_headers = {"Last-Event-ID": "another.1"}
    snapshot = await ada.client.get(f"/api/turns/{turn_id}/events", headers=stale_headers)
    branch = await ada.post(f"/api/conversations/{conversation}/branches", {"at_round": 0}, expect=201)
    await at_rest(world.tertulia)
    responses = [
        opened["turn"],
        items,
        {part: page[part] for part in ("rounds", "turns", "drafts")},
        [event.data for event in events],
        retry["turn"],
        lines.text,
        snapshot.text,
        await ada.get(f"/api/turns/{turn_id}"),
        await ada.get(f"/api/conversations/{conversation}/messages"),
        await ada.get(f"/api/conversations/{branch['id']}/compare/{conversation}"),
    ]
    for response in responses:
        assert "Voice " in json.dumps(response), response
        assert not re.search("alpha|beta|voices", json.dumps(response), re.IGNORECASE), response
    refused = await ada.get(f"/api/messages/{tea['id']}/receipt", expect=409)
    assert refused["message"].startswith("In round 1 the names are hidden")
    search_result = await ada.post(f"/api/projects/{ada.home}/search", {"query": "tea"})
    assert {hit["location"]["speaker"] for hit in search_result["hits"]} == {"user", "agent:"}
    assert not re.search("alpha|beta|voices", json.dumps(search_result), re.IGNORECASE)
    for name in ("agent:alpha", "Alpha"):
        by_name = {"query": "tea", "filters": {"speaker": name}}
        assert (await ada.post(f"/api/projects/{ada.home}/search", by_name))["hits"] == []


async def test_the_first_vote_reveals_the_names_to_every_window(world, ada, upstream):
    upstream.says("Tea.", model="alpha")
    replies = await ada.ask_and_wait("Tea?", "alpha", "beta", is_blind=True)
    conversation = replies[0]["conversation_id"]
    tea = next(reply for reply in replies if reply["content"] == "Tea.")
    page = await ada.get(f"/api/conversations/{conversation}")
    async with ada.live() as tab:
        await tab.follow(f"conversation:{conversation}", page["cursor"])
        await ada.post(f"/api/messages/{tea['id']}/vote", {"verdict": "best"})
        items = await tab.until(lambda item: item.get("noun") == "vote")
    messages = {item["id"]: item["value"] for item in items if item.get("noun") == "message"}
    assert messages[tea["id"]]["voice"]["name"] == "Alpha"
    assert {message["voice"]["model"] for message in messages.values()} == {"voices:alpha", "voices:beta"}
    [turn_] = [item["value"] for item in items if item.get("noun") == "turn"]
    assert (turn_["is_blind"], {voice["name"] for voice in turn_["table"]}) == (False, {"Alpha", "Beta"})
    reloaded_page = await ada.get(f"/api/conversations/{conversation}")
    assert {m["id"]: m for m in reloaded_page["rounds"][0]["messages"] if m["voice"]} == messages
    assert (await ada.get(f"/api/messages/{tea['id']}/receipt"))["model"] == "voices:alpha"
    await at_rest(world.tertulia)
    search_result = await ada.post(f"/api/projects/{ada.home}/search", {"query": "tea"})
    assert "agent:alpha" in {hit["location"]["speaker"] for hit in search_result["hits"]}


async def test_voting_on_a_blind_round_is_refused_until_all_replies_are_finished(ada, upstream):
    release = asyncio.Event()
    upstream.says("Tea.", model="alpha")
    upstream.plays((Say("Cof"), Hold(release), Finish()), model="beta")
    opened = await ada.ask("Tea?", "alpha", "beta", is_blind=True)
    async with soon(), aclosing(ada.follow(opened["turn"]["id"])) as events:
        reply_id = await anext(event.data["id"] async for event in events if event.name == "finished")
    refused = await ada.post(f"/api/messages/{reply_id}/vote", {"verdict": "best"}, expect=409)
    assert "wait until all have finished" in refused["message"]
    release.set()
    await ada.wait_for_end(opened["turn"]["id"])
    await ada.post(f"/api/messages/{reply_id}/vote", {"verdict": "best"})


def is_over(item: dict[str, Any], turn_id: str) -> bool:
    return item.get("id") == turn_id and item["value"]["state"] not in ("queued", "running")


async def test_an_invalid_vote_is_refused(ada, upstream):
    [only_reply] = await ada.ask_and_wait("Tea?", "alpha")
    page = await ada.get(f"/api/conversations/{only_reply['conversation_id']}")
    question = page["rounds"][0]["messages"][0]
    for message_id, verdict, status in [
        (question["id"], "best", 409),
        (only_reply["id"], "tie", 422),
        (only_reply["id"], "none", 409),
        (only_reply["id"], "splendid", 422),
        (new_id(), "best", 404),
    ]:
        await ada.post(f"/api/messages/{message_id}/vote", {"verdict": verdict}, expect=status)


# ── the leaderboard


async def test_the_leaderboard_lists_rating_wins_cost_and_latency(ada, upstream):
    assert await ada.get(f"/api/projects/{ada.home}/leaderboard") == {"items": [], "votes": 0}
    sage = ada.me["personas"][0]
    for number in range(3):
        replies = await ada.ask_and_wait(
            f"Question {number}",
            voices=[{"persona_id": sage["id"]}, {"model": "voices:beta"}, {"model": "voices:beta"}],
        )
        best = next(reply for reply in replies if reply["voice"]["persona_id"])
        await ada.post(f"/api/messages/{best['id']}/vote", {"verdict": "both_bad" if number == 2 else "best"})
    board = await ada.get(f"/api/projects/{ada.home}/leaderboard")
    assert board["votes"] == 3
    first, second = board["items"]
    assert [first["name"], first["persona_id"], first["model"]] == ["The Sage", sage["id"], "voices:alpha"]
    assert [second["name"], second["persona_id"], second["model"]] == ["Beta", None, "voices:beta"]
    assert [first["wins"], first["losses"], first["ties"], first["rounds"]] == [2, 0, 1, 3]
    assert [second["wins"], second["losses"], second["ties"], second["rounds"]] == [0, 2, 1, 3]
    assert first["low"] < first["rating"] < first["high"]
    assert second["rating"] < 1000 < first["rating"]
    assert first["cost_micros"] is None, "the price of these models is unknown"
    assert first["latency_ms"] >= first["first_token_ms"] >= 0


async def test_a_persona_is_one_contender_under_any_name_and_model(ada, upstream):
    sage = ada.me["personas"][0]
    for model in ("alpha", "gamma"):
        replies = await ada.ask_and_wait(
            "Well?", voices=[{"persona_id": sage["id"], "model": f"voices:{model}"}, {"model": "voices:beta"}]
        )
        await ada.post(f"/api/messages/{replies[0]['id']}/vote", {"verdict": "best"})
        renamed = sage["character"] | {"name": f"The Sage of {model}"}
        await ada.put(f"/api/personas/{sage['id']}", {"character": renamed})
    [first, _] = (await ada.get(f"/api/projects/{ada.home}/leaderboard"))["items"]
    assert (first["name"], first["wins"], first["model"]) == ("The Sage of gamma", 2, "voices:gamma")


async def ask_with_canaries(
    person: Person, upstream: Upstream, number: int, **more: Any
) -> list[dict[str, Any]]:
    """Asks a question to which each voice replies with a unique number."""
    for name in TABLE:
        upstream.plays(says(canary(number, name)), says("Noted."), model=name)
    return await person.ask_and_wait(f"Question {number}", *TABLE, **more)


def canary(number: int, name: str) -> str:
    return f"{4_711_000 + 1_009 * number + 131 * TABLE.index(name)}"


def reply_by(replies: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(reply for reply in replies if reply["voice"]["model"] == f"voices:{name}")


def last_prompt(upstream: Upstream, name: str) -> list[dict[str, Any]]:
    """The messages of the last request to a voice."""
    return [list(request.body["messages"]) for request in upstream.requests if request.model == name][-1]


async def test_a_blind_round_needs_the_parallel_mode(ada, upstream):
    refused = await ada.ask("Who?", "alpha", "beta", mode="brain_trust", is_blind=True, expect=422)
    assert refused["message"].startswith("A blind test needs the mode Parallel")
    assert upstream.requests == []
