"""A vote says which reply was best: it decides what the table goes on with, and who leads the board."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from tertulia.app import new_id
from tests.server.cast import at_rest
from tests.upstream.scripted import Finish, Hold, Say, Upstream, refuses, says
from tests.world import Person, turn

TABLE = ("alpha", "beta", "gamma")
SEES = {
    "open": {"alpha": {"alpha", "beta", "gamma"}, "beta": {"alpha", "beta", "gamma"}},
    "own_lane": {"alpha": {"alpha"}, "beta": {"beta"}},
    "chosen": {"alpha": {"beta"}, "beta": {"beta"}},
}
"""Whose canary of a round in which Beta was marked best each voice is shown, under each visibility."""
"""A visibility as the interface calls it."""


# ── what each voice may see


@pytest.mark.parametrize("visibility", SEES)
async def test_under_every_visibility_each_voice_sees_what_it_may_and_nothing_else(ada, upstream, visibility):
    first = await canaries(ada, upstream, 1)
    await ada.post(f"/api/messages/{by(first, 'beta')['id']}/vote", {"verdict": "best"})
    second = await canaries(ada, upstream, 2, conversation_id=first[0]["conversation_id"])
    await ada.post(f"/api/messages/{by(second, 'beta')['id']}/vote", {"verdict": "best"})
    third = await ada.hear(
        "Three", *TABLE, conversation_id=first[0]["conversation_id"], visibility=visibility
    )
    for name, may_see in SEES[visibility].items():
        shown = json.dumps(last(upstream, name))
        for number in (1, 2):
            seen = {who for who in TABLE if canary(number, who) in shown}
            assert seen == may_see, f"{name} in round {number}"
        assert [message["role"] for message in last(upstream, name)[1:]][::2] == ["user"] * (
            len(last(upstream, name)) // 2
        )
        receipt = await ada.get(f"/api/messages/{by(third, name)['id']}/receipt")
        hidden = [left for left in receipt["left_out"] if left["reason"].startswith("hidden_by_")]
        assert len(hidden) == 2 * (3 - len(may_see))
        assert {left["reason"] for left in hidden} == ({f"hidden_by_{visibility}"} if hidden else set())


async def test_a_reply_of_ones_own_that_was_marked_best_stays_ones_own(ada, upstream):
    first = await canaries(ada, upstream, 1)
    await ada.post(f"/api/messages/{by(first, 'beta')['id']}/vote", {"verdict": "best"})
    await ada.hear("Two", *TABLE, conversation_id=first[0]["conversation_id"], visibility="chosen")
    assert last(upstream, "beta")[2] == {"role": "assistant", "content": canary(1, "beta")}
    assert f"[Beta]: {canary(1, 'beta')}" in last(upstream, "alpha")[1]["content"]


async def test_where_nobody_has_chosen_everything_is_seen(ada, upstream):
    first = await canaries(ada, upstream, 1)
    second = await canaries(
        ada, upstream, 2, conversation_id=first[0]["conversation_id"], visibility="chosen"
    )
    await ada.post(f"/api/messages/{by(second, 'gamma')['id']}/vote", {"verdict": "best"})
    await ada.hear("Three", *TABLE, conversation_id=first[0]["conversation_id"], visibility="chosen")
    shown = json.dumps(last(upstream, "alpha"))
    assert {who for who in TABLE if canary(1, who) in shown} == set(TABLE)
    assert {who for who in TABLE if canary(2, who) in shown} == {"gamma"}


async def test_the_newest_mark_counts_and_one_taken_back_does_not(ada, upstream):
    first = await canaries(ada, upstream, 1)
    conversation = first[0]["conversation_id"]
    for name, verdict, seen in [
        ("beta", "best", {"beta"}),
        ("gamma", "best", {"gamma"}),
        ("gamma", "none", set(TABLE)),
    ]:
        await ada.post(f"/api/messages/{by(first, name)['id']}/vote", {"verdict": verdict})
        await ada.hear("Well?", *TABLE, conversation_id=conversation, visibility="chosen")
        shown = json.dumps(last(upstream, "alpha"))
        assert {who for who in TABLE if canary(1, who) in shown} == seen


async def test_a_reply_tried_again_sees_what_its_own_round_allowed(ada, upstream):
    first = await canaries(ada, upstream, 1)
    conversation = first[0]["conversation_id"]
    upstream.plays(refuses(401), says("Noted."), model="beta")
    second = await ada.hear("Two", *TABLE, conversation_id=conversation, visibility="own_lane")
    await ada.hear("Three", *TABLE, conversation_id=conversation, visibility="open")
    opened = await ada.post(f"/api/messages/{by(second, 'beta')['id']}/retry", {"id": new_id()}, expect=202)
    await ada.ended(opened["turn"]["id"])
    shown = json.dumps(last(upstream, "beta"))
    assert {who for who in TABLE if canary(1, who) in shown} == {"beta"}


async def test_the_visibility_is_kept_with_its_turn(ada):
    opened = await ada.ask("One", "alpha", visibility="chosen")
    kept = await ada.get(f"/api/turns/{opened['turn']['id']}")
    assert (kept["visibility"], opened["conversation"]["visibility"]) == ("chosen", "chosen")


# ── voting


async def test_a_vote_is_seen_by_every_window_at_once_and_on_the_next_visit(ada, upstream):
    replies = await ada.hear("Tea?", *TABLE)
    conversation = replies[0]["conversation_id"]
    page = await ada.get(f"/api/conversations/{conversation}")
    async with ada.live() as tab:
        await tab.follow(f"conversation:{conversation}", page["cursor"])
        vote = await ada.post(f"/api/messages/{replies[1]['id']}/vote", {"verdict": "best"})
        [*_, heard] = await tab.until(lambda item: item.get("noun") == "vote")
    assert heard["value"] == vote
    assert (await ada.get(f"/api/conversations/{conversation}"))["votes"] == [vote]
    assert (await ada.get(f"/api/conversations/{conversation}/messages"))["votes"] == [vote]
    assert [one["name"] for one in vote["contenders"]] == ["Alpha", "Beta", "Gamma"]


async def test_a_blind_round_is_voted_on_blind(ada, upstream):
    replies = await ada.hear("Tea?", "alpha", "beta", is_blind=True)
    vote = await ada.post(f"/api/messages/{replies[0]['id']}/vote", {"verdict": "tie"})
    assert (vote["is_blind"], vote["message_id"], vote["verdict"]) == (True, None, "tie")
    again = await ada.post(f"/api/messages/{replies[0]['id']}/vote", {"verdict": "best"})
    assert not again["is_blind"], "by now the names are known"


async def test_nothing_that_leaves_the_house_says_who_is_who_in_a_blind_round(world, ada, upstream):
    followed, held = asyncio.Event(), asyncio.Event()
    upstream.plays((Hold(followed), Say("Tea."), Hold(held), Finish()), model="alpha")
    upstream.plays(refuses(401), model="beta")
    conversation = new_id()
    asked = turn("Tea?", "alpha", "beta", conversation_id=conversation, project_id=ada.home, is_blind=True)
    async with ada.live() as tab:
        opened = await ada.post("/api/turn", asked, expect=202)
        heard = await tab.follow(f"conversation:{conversation}")
        followed.set()
        turn_id = opened["turn"]["id"]
        heard += await tab.until(lambda item: item["type"] == "delta")
        during = await ada.get(f"/api/conversations/{conversation}")
        held.set()
        events = await ada.ended(turn_id)
        heard += await tab.until(lambda item: is_over(item, turn_id))
        failed, tea = sorted(await ada.replies(conversation, 1), key=lambda reply: reply["content"])
        again = await ada.post(f"/api/messages/{failed['id']}/retry", {"id": new_id()}, expect=202)
        heard += await tab.until(lambda item: is_over(item, again["turn"]["id"]))
    lines = await ada.client.get(f"/api/turns/{turn_id}/events", headers={"Accept": "application/x-ndjson"})
    stale = {"Last-Event-ID": "another.1"}
    snapshot = await ada.client.get(f"/api/turns/{turn_id}/events", headers=stale)
    branch = await ada.post(f"/api/conversations/{conversation}/branches", {"at_round": 0}, expect=201)
    await at_rest(world.tertulia)
    told = [
        opened["turn"],
        heard,
        {part: during[part] for part in ("rounds", "turns", "drafts")},
        [event.data for event in events],
        again["turn"],
        lines.text,
        snapshot.text,
        await ada.get(f"/api/turns/{turn_id}"),
        await ada.get(f"/api/conversations/{conversation}/messages"),
        await ada.get(f"/api/conversations/{branch['id']}/compare/{conversation}"),
    ]
    for one in told:
        assert "Voice " in json.dumps(one), one
        assert not re.search("alpha|beta|voices", json.dumps(one), re.IGNORECASE), one
    refused = await ada.get(f"/api/messages/{tea['id']}/receipt", expect=409)
    assert refused["message"].startswith("In round 1 the names are hidden")
    found = await ada.post(f"/api/projects/{ada.home}/search", {"query": "tea"})
    assert {hit["location"]["speaker"] for hit in found["hits"]} == {"user", "agent:"}
    assert not re.search("alpha|beta|voices", json.dumps(found), re.IGNORECASE)
    for name in ("agent:alpha", "Alpha"):
        by_name = {"query": "tea", "filters": {"speaker": name}}
        assert (await ada.post(f"/api/projects/{ada.home}/search", by_name))["hits"] == []


async def test_with_the_first_vote_every_window_learns_who_said_what(world, ada, upstream):
    upstream.says("Tea.", model="alpha")
    replies = await ada.hear("Tea?", "alpha", "beta", is_blind=True)
    conversation = replies[0]["conversation_id"]
    tea = next(reply for reply in replies if reply["content"] == "Tea.")
    page = await ada.get(f"/api/conversations/{conversation}")
    async with ada.live() as tab:
        await tab.follow(f"conversation:{conversation}", page["cursor"])
        await ada.post(f"/api/messages/{tea['id']}/vote", {"verdict": "best"})
        heard = await tab.until(lambda item: item.get("noun") == "vote")
    told = {item["id"]: item["value"] for item in heard if item.get("noun") == "message"}
    assert told[tea["id"]]["voice"]["name"] == "Alpha"
    assert {message["voice"]["model"] for message in told.values()} == {"voices:alpha", "voices:beta"}
    [known] = [item["value"] for item in heard if item.get("noun") == "turn"]
    assert (known["is_blind"], {voice["name"] for voice in known["table"]}) == (False, {"Alpha", "Beta"})
    fresh = await ada.get(f"/api/conversations/{conversation}")
    assert {m["id"]: m for m in fresh["rounds"][0]["messages"] if m["voice"]} == told
    assert (await ada.get(f"/api/messages/{tea['id']}/receipt"))["model"] == "voices:alpha"
    await at_rest(world.tertulia)
    found = await ada.post(f"/api/projects/{ada.home}/search", {"query": "tea"})
    assert "agent:alpha" in {hit["location"]["speaker"] for hit in found["hits"]}


async def test_a_blind_round_is_not_voted_on_before_all_have_spoken(ada, upstream):
    held = asyncio.Event()
    upstream.says("Tea.", model="alpha")
    upstream.plays((Say("Cof"), Hold(held), Finish()), model="beta")
    opened = await ada.ask("Tea?", "alpha", "beta", is_blind=True)
    done = None
    async for event in ada.follow(opened["turn"]["id"]):
        if event.name == "finished":
            done = event.data["id"]
            refused = await ada.post(f"/api/messages/{done}/vote", {"verdict": "best"}, expect=409)
            assert "wait until all have finished" in refused["message"]
            held.set()
            break
    await ada.ended(opened["turn"]["id"])
    await ada.post(f"/api/messages/{done}/vote", {"verdict": "best"})


def is_over(item: dict[str, Any], turn_id: str) -> bool:
    return item.get("id") == turn_id and item["value"]["state"] not in ("queued", "running")


async def test_what_cannot_be_voted_on_says_why(ada, upstream):
    [alone] = await ada.hear("Tea?", "alpha")
    page = await ada.get(f"/api/conversations/{alone['conversation_id']}")
    question = page["rounds"][0]["messages"][0]
    for message_id, verdict, status in [
        (question["id"], "best", 409),
        (alone["id"], "tie", 422),
        (alone["id"], "none", 409),
        (alone["id"], "splendid", 422),
        (new_id(), "best", 404),
    ]:
        await ada.post(f"/api/messages/{message_id}/vote", {"verdict": verdict}, expect=status)


# ── the board


async def test_the_board_ranks_whoever_was_voted_on_beside_cost_and_time(ada, upstream):
    assert await ada.get(f"/api/projects/{ada.home}/leaderboard") == {"items": [], "votes": 0}
    sage = ada.me["personas"][0]
    for number in range(3):
        replies = await ada.hear(
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
    assert first["cost_micros"] is None, "nobody knows the price of these models"
    assert first["latency_ms"] >= first["first_token_ms"] >= 0


async def test_a_persona_is_one_contender_whatever_it_is_called_and_speaks_through(ada, upstream):
    sage = ada.me["personas"][0]
    for model in ("alpha", "gamma"):
        replies = await ada.hear(
            "Well?", voices=[{"persona_id": sage["id"], "model": f"voices:{model}"}, {"model": "voices:beta"}]
        )
        await ada.post(f"/api/messages/{replies[0]['id']}/vote", {"verdict": "best"})
        renamed = sage["character"] | {"name": f"The Sage of {model}"}
        await ada.put(f"/api/personas/{sage['id']}", {"character": renamed})
    [first, _] = (await ada.get(f"/api/projects/{ada.home}/leaderboard"))["items"]
    assert (first["name"], first["wins"], first["model"]) == ("The Sage of gamma", 2, "voices:gamma")


async def canaries(person: Person, upstream: Upstream, number: int, **more: Any) -> list[dict[str, Any]]:
    """A round in which each voice says a number of its own that nobody could guess."""
    for name in TABLE:
        upstream.plays(says(canary(number, name)), says("Noted."), model=name)
    return await person.hear(f"Question {number}", *TABLE, **more)


def canary(number: int, name: str) -> str:
    return f"{4_711_000 + 1_009 * number + 131 * TABLE.index(name)}"


def by(replies: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(reply for reply in replies if reply["voice"]["model"] == f"voices:{name}")


def last(upstream: Upstream, name: str) -> list[dict[str, Any]]:
    """What a voice was sent last."""
    return [list(seen.body["messages"]) for seen in upstream.requests if seen.model == name][-1]


async def test_a_round_in_which_names_are_spoken_cannot_be_blind(ada, upstream):
    refused = await ada.ask("Who?", "alpha", "beta", mode="brain_trust", is_blind=True, expect=422)
    assert refused["message"].startswith("A blind test needs the mode Parallel")
    assert upstream.requests == []
