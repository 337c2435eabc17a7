"""A replay asks the questions of a conversation again at another table, with an estimate and a cost cap."""

from __future__ import annotations

import asyncio
from typing import Any

from tertulia.app import new_id
from tests.patience import soon
from tests.upstream.scripted import Finish, Hold, Say, says
from tests.world import Person, endpoints, running


async def test_a_replay_asks_another_table_the_same_questions_in_a_branch(ada, upstream):
    source = await create_conversation(ada, upstream)
    upstream.plays(says("Beta one."), says("Beta two."), model="beta")
    started = await start_replay(ada, source, voices=[{"model": "voices:beta"}])
    branch = started["conversation"]["id"]
    assert (started["conversation"]["parent_id"], started["conversation"]["branch_round"]) == (source, 0)
    replay = await wait_for_replay(ada, branch)
    assert (replay["state"], replay["done_round"]) == ("complete", 2)
    rounds = (await ada.get(f"/api/conversations/{branch}"))["rounds"]
    assert [[m["content"] for m in r["messages"]] for r in rounds] == [
        ["Tea?", "Beta one."],
        ["Sure?", "Beta two."],
    ]
    compared = await ada.get(f"/api/conversations/{source}/compare/{branch}")
    assert [(r["number"], bool(r["left"]), bool(r["right"])) for r in compared["rounds"]] == [
        (1, True, True),
        (2, True, True),
    ]


async def test_a_replay_from_a_later_round_inherits_the_earlier_rounds(ada, upstream):
    source = await create_conversation(ada, upstream)
    upstream.says("Anew.", model="beta")
    started = await start_replay(ada, source, from_round=2, voices=[{"model": "voices:beta"}])
    await wait_for_replay(ada, started["conversation"]["id"])
    last = upstream.requests[-1].body["messages"]
    assert "[Alpha]: Yes." in str(last)
    assert "Alpha two" not in str(last)


async def test_a_replay_keeps_the_settings_that_are_not_overridden(ada, upstream):
    first = await ada.ask_and_wait("Tea?", "alpha", "beta", mode="relay", visibility="own_lane")
    started = await start_replay(ada, first[0]["conversation_id"])
    branch = started["conversation"]["id"]
    await wait_for_replay(ada, branch)
    page = await ada.get(f"/api/conversations/{branch}")
    assert [(t["mode"], t["visibility"], len(t["table"])) for t in page["turns"]] == [
        ("relay", "own_lane", 2)
    ]


async def test_a_replay_keeps_the_attachments(ada, upstream):
    attachment = await ada.attach("notes.md", b"The number is 741.")
    [reply] = await ada.ask_and_wait("Which?", "alpha", attachments=[attachment["id"]])
    started = await start_replay(ada, reply["conversation_id"], voices=[{"model": "voices:beta"}])
    await wait_for_replay(ada, started["conversation"]["id"])
    assert "The number is 741." in str(upstream.requests[-1].body)


async def test_a_replay_has_an_estimate_and_stops_before_the_cost_cap(tmp_path, upstream):
    environ = {"OPENAI_API_KEY": "a key", "OPENAI_BASE_URL": f"{upstream.url}/v1"}
    async with running(tmp_path, environ) as world:
        ada = await world.set_up("Ada")
        first = await ada.ask_and_wait("Tea?", "openai:gpt-4o")
        source = first[0]["conversation_id"]
        await ada.ask_and_wait("Sure?", "openai:gpt-4o", conversation_id=source)
        body = {"id": new_id(), "voices": [{"model": "openai:gpt-4o"}]}
        price = await ada.post(f"/api/conversations/{source}/replay/estimate", body)
        assert price["rounds"] == 2
        assert price["cost_micros"] == sum(price["per_round"]) > 0
        started = await start_replay(ada, source, **(body | {"cap_micros": 1}))
        replay = await wait_for_replay(ada, started["conversation"]["id"])
        assert (replay["state"], replay["reason"]) == ("stopped", "Round 1 would have gone over the cap.")
        assert sum(request.model == "gpt-4o" for request in upstream.requests) == 2


async def test_a_replay_with_a_cap_and_unknown_prices_sends_no_request(ada, upstream):
    source = await create_conversation(ada, upstream)
    before = len(upstream.requests)
    started = await start_replay(ada, source, cap_micros=1_000_000)
    replay = await wait_for_replay(ada, started["conversation"]["id"])
    assert replay["reason"] == "The price of round 1 is not known, so the cap could not be kept."
    assert len(upstream.requests) == before


async def test_stopping_a_replay_stops_its_running_turn(ada, upstream):
    source = await create_conversation(ada, upstream)
    release = asyncio.Event()
    upstream.plays((Say("Half"), Hold(release), Finish()), model="beta")
    before = len(upstream.requests)
    started = await start_replay(ada, source, voices=[{"model": "voices:beta"}])
    branch = started["conversation"]["id"]
    await upstream.wait_for_request(before + 1)
    stopped = await ada.post(f"/api/conversations/{branch}/replay/stop")
    assert (stopped["replay"]["state"], stopped["replay"]["reason"]) == ("stopped", "Stopped by a person.")
    await wait_for_replay(ada, branch)
    page = await ada.get(f"/api/conversations/{branch}")
    assert page["conversation"]["round_count"] == 1


async def test_sending_a_replay_twice_creates_one_replay(ada, upstream):
    source = await create_conversation(ada, upstream)
    body = {"id": new_id(), "voices": [{"model": "voices:beta"}]}
    first = await start_replay(ada, source, **body)
    second = await start_replay(ada, source, **body)
    assert first["conversation"]["id"] == second["conversation"]["id"]
    await wait_for_replay(ada, body["id"])
    assert sum(request.model == "beta" for request in upstream.requests) == 2


async def test_replaying_from_a_missing_round_is_refused(ada, upstream):
    source = await create_conversation(ada, upstream)
    refused = await ada.post(
        f"/api/conversations/{source}/replay", {"id": new_id(), "from_round": 3}, expect=422
    )
    assert refused["message"] == "Choose a round of this conversation to begin at."


async def test_a_replay_keeps_the_references_that_its_branch_inherits(ada, upstream):
    source = await create_conversation(ada, upstream)
    [first_reply] = await ada.replies(source, 1)
    references = {
        "reply_to_id": first_reply["id"],
        "quotes": [{"message_id": first_reply["id"], "text": "Yes."}],
    }
    await ada.ask_and_wait("Why?", "alpha", conversation_id=source, **references)
    from_round_3 = await start_replay(ada, source, from_round=3)
    await wait_for_replay(ada, from_round_3["conversation"]["id"])
    assert '[Replying to Alpha: "Yes."]' in str(upstream.requests[-1].body)
    assert '[Quoting Alpha: "Yes."]' in str(upstream.requests[-1].body)
    from_start = await start_replay(ada, source)
    replay = await wait_for_replay(ada, from_start["conversation"]["id"])
    assert (replay["state"], replay["done_round"]) == ("complete", 3)
    assert "Replying to" not in str(upstream.requests[-1].body)


async def test_a_replayed_persona_speaks_through_the_same_model(ada, upstream):
    sage = (await ada.get("/api/personas"))["items"][0]["id"]
    opened = await ada.ask("Tea?", voices=[{"persona_id": sage, "model": "voices:gamma"}])
    await ada.wait_for_end(opened["turn"]["id"])
    started = await start_replay(ada, opened["conversation"]["id"])
    await wait_for_replay(ada, started["conversation"]["id"])
    [reply] = await ada.replies(started["conversation"]["id"], 1)
    assert (reply["voice"]["persona_id"], reply["voice"]["model"]) == (sage, "voices:gamma")


async def test_a_replay_skips_deleted_rounds(ada, upstream):
    source = await create_conversation(ada, upstream)
    await ada.ask_and_wait("Why?", "alpha", conversation_id=source)
    rounds = (await ada.get(f"/api/conversations/{source}"))["rounds"]
    await ada.delete(f"/api/messages/{rounds[1]['messages'][0]['id']}")
    price = await ada.post(f"/api/conversations/{source}/replay/estimate", {"id": new_id()})
    assert price["rounds"] == 2
    started = await start_replay(ada, source, voices=[{"model": "voices:beta"}])
    replay = await wait_for_replay(ada, started["conversation"]["id"])
    assert (replay["state"], replay["done_round"]) == ("complete", 3)
    branch = await ada.get(f"/api/conversations/{started['conversation']['id']}")
    assert [(r["number"], r["messages"][0]["content"]) for r in branch["rounds"]] == [
        (1, "Tea?"),
        (3, "Why?"),
    ]


async def test_a_replay_stops_when_its_source_is_deleted(ada, upstream):
    root = await create_conversation(ada, upstream)
    source = (await ada.post(f"/api/conversations/{root}/branches", {"at_round": 2}, expect=201))["id"]
    await ada.ask_and_wait("Why?", "alpha", conversation_id=source)
    release = asyncio.Event()
    upstream.plays((Say("Half"), Hold(release), Finish()), model="beta")
    before = len(upstream.requests)
    started = await start_replay(ada, source, voices=[{"model": "voices:beta"}])
    await upstream.wait_for_request(before + 1)
    await ada.delete(f"/api/conversations/{source}")
    release.set()
    replay = await wait_for_replay(ada, started["conversation"]["id"])
    reason = "The conversation whose questions were asked again is gone."
    assert (replay["state"], replay["done_round"], replay["reason"]) == ("stopped", 1, reason)


async def test_a_replay_stops_when_a_person_asks_in_its_branch(ada, upstream):
    source = await create_conversation(ada, upstream)
    release = asyncio.Event()
    upstream.plays((Say("Half"), Hold(release), Finish()), model="beta")
    before = len(upstream.requests)
    started = await start_replay(ada, source, voices=[{"model": "voices:beta"}])
    branch = started["conversation"]["id"]
    await upstream.wait_for_request(before + 1)
    await ada.ask("Or coffee?", "alpha", conversation_id=branch)
    release.set()
    replay = await wait_for_replay(ada, branch)
    assert (replay["state"], replay["done_round"]) == ("stopped", 1)
    assert replay["reason"] == "Somebody continued this branch. Ask again for the other rounds."
    rounds = (await ada.get(f"/api/conversations/{branch}"))["rounds"]
    assert [r["messages"][0]["content"] for r in rounds] == ["Tea?", "Or coffee?"]


async def test_stopping_the_running_turn_stops_the_replay(ada, upstream):
    source = await create_conversation(ada, upstream)
    release = asyncio.Event()
    upstream.plays((Say("Half"), Hold(release), Finish()), model="beta")
    before = len(upstream.requests)
    started = await start_replay(ada, source, voices=[{"model": "voices:beta"}])
    branch = started["conversation"]["id"]
    await upstream.wait_for_request(before + 1)
    [turn] = (await ada.get(f"/api/conversations/{branch}"))["turns"]
    await ada.post(f"/api/turns/{turn['id']}/stop", expect=202)
    replay = await wait_for_replay(ada, branch)
    assert (replay["state"], replay["reason"]) == ("stopped", "Stopped by a person.")
    assert len(upstream.requests) == before + 1


async def test_the_id_of_another_replay_is_refused(ada, upstream):
    source = await create_conversation(ada, upstream)
    body = {"id": new_id(), "voices": [{"model": "voices:beta"}]}
    await start_replay(ada, source, **body)
    other_body = body | {"voices": [{"model": "voices:gamma"}]}
    refused = await ada.post(f"/api/conversations/{source}/replay", other_body, expect=409)
    assert refused["message"] == "This id was already used for another replay. Make a new id and try again."
    await wait_for_replay(ada, body["id"])


async def test_the_estimate_of_an_invalid_replay_is_refused(ada, upstream):
    source = await create_conversation(ada, upstream)
    for impossible in ({"mode": "brain_trust"}, {"cap_micros": 10**20}):
        body = {"id": new_id()} | impossible
        await ada.post(f"/api/conversations/{source}/replay/estimate", body, expect=422)
        await ada.post(f"/api/conversations/{source}/replay", body, expect=422)


async def test_the_estimate_of_a_replay_counts_attachments_in_their_rounds(tmp_path, upstream):
    environ = {"OPENAI_API_KEY": "a key", "OPENAI_BASE_URL": f"{upstream.url}/v1"}
    async with running(tmp_path, environ) as world:
        ada = await world.set_up("Ada")
        [first] = await ada.ask_and_wait("Tea?", "openai:gpt-4o")
        source = first["conversation_id"]
        attachment = await ada.attach("notes.md", b"The number is seven hundred. " * 500)
        await ada.ask_and_wait(
            "Which?", "openai:gpt-4o", conversation_id=source, attachments=[attachment["id"]]
        )
        price = await ada.post(f"/api/conversations/{source}/replay/estimate", {"id": new_id()})
        light, heavy = price["per_round"]
        assert heavy > light + 5_000
        started = await start_replay(ada, source, cap_micros=light + 5_000)
        replay = await wait_for_replay(ada, started["conversation"]["id"])
        assert (replay["done_round"], replay["reason"]) == (1, "Round 2 would have gone over the cap.")


async def test_a_replay_of_a_blind_round_is_blind_unless_its_mode_shows_names(ada, upstream):
    replies = await ada.ask_and_wait("Tea?", "alpha", "beta", is_blind=True)
    await ada.post(f"/api/messages/{replies[0]['id']}/vote", {"verdict": "tie"})
    for settings_, is_blind in (({}, True), ({"mode": "relay"}, False)):
        started = await start_replay(ada, replies[0]["conversation_id"], **settings_)
        branch = started["conversation"]["id"]
        assert (await wait_for_replay(ada, branch))["state"] == "complete"
        page = await ada.get(f"/api/conversations/{branch}")
        assert [turn["is_blind"] for turn in page["turns"]] == [is_blind]
        assert [voice["name"] for voice in page["conversation"]["table"]] == ["Alpha", "Beta"]


async def test_a_replay_continues_after_a_restart_and_retries_the_interrupted_turn(tmp_path, upstream):
    environ = {"TERTULIA_ENDPOINTS": endpoints(upstream)}
    release = asyncio.Event()
    async with running(tmp_path, environ) as world:
        ada = await world.set_up("Ada")
        source = await create_conversation(ada, upstream)
        upstream.plays(
            (Say("Half"), Hold(release), Finish()), says("Whole."), says("Beta two."), model="beta"
        )
        before = len(upstream.requests)
        started = await start_replay(ada, source, voices=[{"model": "voices:beta"}])
        branch = started["conversation"]["id"]
        await upstream.wait_for_request(before + 1)
    async with running(tmp_path, environ) as world:
        ada = await world.sign_in("ada@example.org")
        replay = await wait_for_replay(ada, branch)
        assert (replay["state"], replay["done_round"], replay["reason"]) == ("complete", 2, "")
        rounds = (await ada.get(f"/api/conversations/{branch}"))["rounds"]
        newest = [round_["messages"][-1] for round_ in rounds]
        assert [(reply["content"], reply["status"]) for reply in newest] == [
            ("Whole.", "complete"),
            ("Beta two.", "complete"),
        ]
    release.set()


async def test_a_replay_of_a_suspended_person_does_not_continue_after_a_restart(tmp_path, upstream):
    environ = {"TERTULIA_ENDPOINTS": endpoints(upstream)}
    release = asyncio.Event()
    async with running(tmp_path, environ) as world:
        ada = await world.set_up("Ada")
        bob = await world.create_account(ada, "Bob")
        source = await create_conversation(bob, upstream)
        upstream.plays((Say("Half"), Hold(release), Finish()), model="beta")
        before = len(upstream.requests)
        started = await start_replay(bob, source, voices=[{"model": "voices:beta"}])
        branch = started["conversation"]["id"]
        await upstream.wait_for_request(before + 1)
        await ada.put(f"/api/users/{bob.id}", {"suspended": True})
    async with running(tmp_path, environ) as world:
        ada = await world.sign_in("ada@example.org")
        await ada.put(f"/api/users/{bob.id}", {"suspended": False})
        bob = await world.sign_in("bob@example.org")
        assert (await wait_for_replay(bob, branch))["reason"].startswith(
            "The server was restarted, and the person"
        )
    assert len(upstream.requests) == before + 1
    release.set()


async def test_a_replay_repeats_the_summary_of_a_branch(ada, upstream):
    source = await create_conversation(ada, upstream)
    branch = await ada.post(f"/api/conversations/{source}/branches", {"at_round": 1}, expect=201)
    upstream.plays(says("Seven leagues."), says("It came to seven."), model="alpha")
    await ada.ask_and_wait("How far?", "alpha", conversation_id=branch["id"])
    body = {"id": new_id(), "voice": {"model": "voices:alpha"}}
    opened = await ada.post(f"/api/conversations/{branch['id']}/bring-back", body, expect=202)
    await ada.wait_for_end(opened["turn"]["id"])
    table = {"voices": [{"model": "voices:beta"}, {"model": "voices:gamma"}], "mode": "relay"}
    started = await start_replay(ada, source, from_round=3, **table)
    assert (await wait_for_replay(ada, started["conversation"]["id"]))["state"] == "complete"
    [round_] = (await ada.get(f"/api/conversations/{started['conversation']['id']}"))["rounds"][2:]
    assert round_["messages"][0]["brings_id"] == branch["id"]
    assert [(reply["voice"]["name"], reply["step"]) for reply in round_["messages"][1:]] == [
        ("Beta", "summary")
    ]
    assert "Seven leagues." in str(upstream.requests[-1].body)
    await ada.delete(f"/api/conversations/{branch['id']}")
    second_body = {"id": new_id(), "from_round": 3}
    refused = await ada.post(f"/api/conversations/{source}/replay", second_body, expect=422)
    assert refused["message"] == "Nothing is left of these rounds that could be asked again."


# ── helper functions


async def create_conversation(person: Person, upstream: Any) -> str:
    upstream.plays(says("Yes."), says("Alpha two."), model="alpha")
    [first] = await person.ask_and_wait("Tea?", "alpha")
    conversation: str = first["conversation_id"]
    await person.ask_and_wait("Sure?", "alpha", conversation_id=conversation)
    return conversation


async def start_replay(person: Person, source: str, **settings_: Any) -> Any:
    body = {"id": new_id()} | settings_
    return await person.post(f"/api/conversations/{source}/replay", body, expect=202)


async def wait_for_replay(person: Person, branch: str) -> Any:
    """Waits for the end of a replay and returns it."""
    async with person.live() as window, soon():
        await window.follow(f"conversation:{branch}")
        while True:
            replay = (await person.get(f"/api/conversations/{branch}/replay"))["replay"]
            page = await person.get(f"/api/conversations/{branch}")
            if replay["state"] != "running" and not page["conversation"]["is_answering"]:
                return replay
            await window.next()
