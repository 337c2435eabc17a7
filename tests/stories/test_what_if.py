"""What if: a conversation is asked once more at another table, its price told first and its cap kept."""

from __future__ import annotations

import asyncio
from typing import Any

from tertulia.app import new_id
from tests.patience import soon
from tests.upstream.scripted import Finish, Hold, Say, says
from tests.world import Person, endpoints, running


async def test_the_same_questions_are_asked_of_another_table_in_a_branch(ada, upstream):
    source = await talked(ada, upstream)
    upstream.plays(says("Beta one."), says("Beta two."), model="beta")
    begun = await replayed(ada, source, voices=[{"model": "voices:beta"}])
    branch = begun["conversation"]["id"]
    assert (begun["conversation"]["parent_id"], begun["conversation"]["branch_round"]) == (source, 0)
    replay = await over(ada, branch)
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


async def test_a_replay_may_begin_later_and_sees_what_came_before(ada, upstream):
    source = await talked(ada, upstream)
    upstream.says("Anew.", model="beta")
    begun = await replayed(ada, source, from_round=2, voices=[{"model": "voices:beta"}])
    await over(ada, begun["conversation"]["id"])
    last = upstream.requests[-1].body["messages"]
    assert "[Alpha]: Yes." in str(last)
    assert "Alpha two" not in str(last)


async def test_what_is_not_named_stays_as_it_was_asked(ada, upstream):
    first = await ada.hear("Tea?", "alpha", "beta", mode="relay", visibility="own_lane")
    begun = await replayed(ada, first[0]["conversation_id"])
    branch = begun["conversation"]["id"]
    await over(ada, branch)
    page = await ada.get(f"/api/conversations/{branch}")
    assert [(t["mode"], t["visibility"], len(t["table"])) for t in page["turns"]] == [
        ("relay", "own_lane", 2)
    ]


async def test_what_was_attached_comes_along(ada, upstream):
    attachment = await ada.attach("notes.md", b"The number is 741.")
    [reply] = await ada.hear("Which?", "alpha", attachments=[attachment["id"]])
    begun = await replayed(ada, reply["conversation_id"], voices=[{"model": "voices:beta"}])
    await over(ada, begun["conversation"]["id"])
    assert "The number is 741." in str(upstream.requests[-1].body)


async def test_the_price_is_told_first_and_a_cap_is_kept(tmp_path, upstream):
    environ = {"OPENAI_API_KEY": "a key", "OPENAI_BASE_URL": f"{upstream.url}/v1"}
    async with running(tmp_path, environ) as world:
        ada = await world.first("Ada")
        first = await ada.hear("Tea?", "openai:gpt-4o")
        source = first[0]["conversation_id"]
        await ada.hear("Sure?", "openai:gpt-4o", conversation_id=source)
        asked = {"id": new_id(), "voices": [{"model": "openai:gpt-4o"}]}
        price = await ada.post(f"/api/conversations/{source}/replay/estimate", asked)
        assert price["rounds"] == 2
        assert price["cost_micros"] == sum(price["per_round"]) > 0
        begun = await replayed(ada, source, **(asked | {"cap_micros": 1}))
        replay = await over(ada, begun["conversation"]["id"])
        assert (replay["state"], replay["reason"]) == ("stopped", "Round 1 would have gone over the cap.")
        assert sum(seen.model == "gpt-4o" for seen in upstream.requests) == 2


async def test_a_cap_that_cannot_be_kept_asks_nothing(ada, upstream):
    source = await talked(ada, upstream)
    before = len(upstream.requests)
    begun = await replayed(ada, source, cap_micros=1_000_000)
    replay = await over(ada, begun["conversation"]["id"])
    assert replay["reason"] == "The price of round 1 is not known, so the cap could not be kept."
    assert len(upstream.requests) == before


async def test_a_stop_ends_the_replay_and_what_is_being_said(ada, upstream):
    source = await talked(ada, upstream)
    held = asyncio.Event()
    upstream.plays((Say("Half"), Hold(held), Finish()), model="beta")
    before = len(upstream.requests)
    begun = await replayed(ada, source, voices=[{"model": "voices:beta"}])
    branch = begun["conversation"]["id"]
    await upstream.heard(before + 1)
    stopped = await ada.post(f"/api/conversations/{branch}/replay/stop")
    assert (stopped["replay"]["state"], stopped["replay"]["reason"]) == ("stopped", "Stopped by a person.")
    await over(ada, branch)
    page = await ada.get(f"/api/conversations/{branch}")
    assert page["conversation"]["round_count"] == 1


async def test_sent_twice_it_is_the_same_replay(ada, upstream):
    source = await talked(ada, upstream)
    wanted = {"id": new_id(), "voices": [{"model": "voices:beta"}]}
    first = await replayed(ada, source, **wanted)
    second = await replayed(ada, source, **wanted)
    assert first["conversation"]["id"] == second["conversation"]["id"]
    await over(ada, wanted["id"])
    assert sum(seen.model == "beta" for seen in upstream.requests) == 2


async def test_a_round_that_is_not_there_cannot_be_replayed(ada, upstream):
    source = await talked(ada, upstream)
    refused = await ada.post(
        f"/api/conversations/{source}/replay", {"id": new_id(), "from_round": 3}, expect=422
    )
    assert refused["message"] == "Choose a round of this conversation to begin at."


async def test_what_a_question_replied_to_and_quoted_comes_along_where_the_branch_has_it(ada, upstream):
    source = await talked(ada, upstream)
    [yes] = await ada.replies(source, 1)
    about = {"reply_to_id": yes["id"], "quotes": [{"message_id": yes["id"], "text": "Yes."}]}
    await ada.hear("Why?", "alpha", conversation_id=source, **about)
    later = await replayed(ada, source, from_round=3)
    await over(ada, later["conversation"]["id"])
    assert '[Replying to Alpha: "Yes."]' in str(upstream.requests[-1].body)
    assert '[Quoting Alpha: "Yes."]' in str(upstream.requests[-1].body)
    anew = await replayed(ada, source)
    replay = await over(ada, anew["conversation"]["id"])
    assert (replay["state"], replay["done_round"]) == ("complete", 3)
    assert "Replying to" not in str(upstream.requests[-1].body)


async def test_a_persona_speaks_through_the_model_it_spoke_through(ada, upstream):
    sage = (await ada.get("/api/personas"))["items"][0]["id"]
    opened = await ada.ask("Tea?", voices=[{"persona_id": sage, "model": "voices:gamma"}])
    await ada.ended(opened["turn"]["id"])
    begun = await replayed(ada, opened["conversation"]["id"])
    await over(ada, begun["conversation"]["id"])
    [reply] = await ada.replies(begun["conversation"]["id"], 1)
    assert (reply["voice"]["persona_id"], reply["voice"]["model"]) == (sage, "voices:gamma")


async def test_a_round_that_was_deleted_is_missing_in_the_replay_too(ada, upstream):
    source = await talked(ada, upstream)
    await ada.hear("Why?", "alpha", conversation_id=source)
    rounds = (await ada.get(f"/api/conversations/{source}"))["rounds"]
    await ada.delete(f"/api/messages/{rounds[1]['messages'][0]['id']}")
    price = await ada.post(f"/api/conversations/{source}/replay/estimate", {"id": new_id()})
    assert price["rounds"] == 2
    begun = await replayed(ada, source, voices=[{"model": "voices:beta"}])
    replay = await over(ada, begun["conversation"]["id"])
    assert (replay["state"], replay["done_round"]) == ("complete", 3)
    branch = await ada.get(f"/api/conversations/{begun['conversation']['id']}")
    assert [(r["number"], r["messages"][0]["content"]) for r in branch["rounds"]] == [
        (1, "Tea?"),
        (3, "Why?"),
    ]


async def test_a_replay_ends_when_the_conversation_it_asks_again_is_deleted(ada, upstream):
    root = await talked(ada, upstream)
    source = (await ada.post(f"/api/conversations/{root}/branches", {"at_round": 2}, expect=201))["id"]
    await ada.hear("Why?", "alpha", conversation_id=source)
    held = asyncio.Event()
    upstream.plays((Say("Half"), Hold(held), Finish()), model="beta")
    before = len(upstream.requests)
    begun = await replayed(ada, source, voices=[{"model": "voices:beta"}])
    await upstream.heard(before + 1)
    await ada.delete(f"/api/conversations/{source}")
    held.set()
    replay = await over(ada, begun["conversation"]["id"])
    gone = "The conversation whose questions were asked again is gone."
    assert (replay["state"], replay["done_round"], replay["reason"]) == ("stopped", 1, gone)


async def test_a_person_who_goes_on_in_the_branch_ends_the_replay(ada, upstream):
    source = await talked(ada, upstream)
    held = asyncio.Event()
    upstream.plays((Say("Half"), Hold(held), Finish()), model="beta")
    before = len(upstream.requests)
    begun = await replayed(ada, source, voices=[{"model": "voices:beta"}])
    branch = begun["conversation"]["id"]
    await upstream.heard(before + 1)
    await ada.ask("Or coffee?", "alpha", conversation_id=branch)
    held.set()
    replay = await over(ada, branch)
    assert (replay["state"], replay["done_round"]) == ("stopped", 1)
    assert replay["reason"] == "Somebody continued this branch. Ask again for the other rounds."
    rounds = (await ada.get(f"/api/conversations/{branch}"))["rounds"]
    assert [r["messages"][0]["content"] for r in rounds] == ["Tea?", "Or coffee?"]


async def test_stopping_what_is_being_said_ends_the_replay(ada, upstream):
    source = await talked(ada, upstream)
    held = asyncio.Event()
    upstream.plays((Say("Half"), Hold(held), Finish()), model="beta")
    before = len(upstream.requests)
    begun = await replayed(ada, source, voices=[{"model": "voices:beta"}])
    branch = begun["conversation"]["id"]
    await upstream.heard(before + 1)
    [turn] = (await ada.get(f"/api/conversations/{branch}"))["turns"]
    await ada.post(f"/api/turns/{turn['id']}/stop", expect=202)
    replay = await over(ada, branch)
    assert (replay["state"], replay["reason"]) == ("stopped", "Stopped by a person.")
    assert len(upstream.requests) == before + 1


async def test_an_id_that_named_one_replay_cannot_name_another(ada, upstream):
    source = await talked(ada, upstream)
    wanted = {"id": new_id(), "voices": [{"model": "voices:beta"}]}
    await replayed(ada, source, **wanted)
    other = wanted | {"voices": [{"model": "voices:gamma"}]}
    refused = await ada.post(f"/api/conversations/{source}/replay", other, expect=409)
    assert refused["message"] == "This id was already used for another replay. Make a new id and try again."
    await over(ada, wanted["id"])


async def test_no_price_is_told_of_a_replay_that_could_not_be(ada, upstream):
    source = await talked(ada, upstream)
    for impossible in ({"mode": "brain_trust"}, {"cap_micros": 10**20}):
        asked = {"id": new_id()} | impossible
        await ada.post(f"/api/conversations/{source}/replay/estimate", asked, expect=422)
        await ada.post(f"/api/conversations/{source}/replay", asked, expect=422)


async def test_the_price_is_that_of_each_round_where_it_stood_with_what_was_attached(tmp_path, upstream):
    environ = {"OPENAI_API_KEY": "a key", "OPENAI_BASE_URL": f"{upstream.url}/v1"}
    async with running(tmp_path, environ) as world:
        ada = await world.first("Ada")
        [first] = await ada.hear("Tea?", "openai:gpt-4o")
        source = first["conversation_id"]
        attachment = await ada.attach("notes.md", b"The number is seven hundred. " * 500)
        await ada.hear("Which?", "openai:gpt-4o", conversation_id=source, attachments=[attachment["id"]])
        price = await ada.post(f"/api/conversations/{source}/replay/estimate", {"id": new_id()})
        light, heavy = price["per_round"]
        assert heavy > light + 5_000
        begun = await replayed(ada, source, cap_micros=light + 5_000)
        replay = await over(ada, begun["conversation"]["id"])
        assert (replay["done_round"], replay["reason"]) == (1, "Round 2 would have gone over the cap.")


async def test_a_blind_round_is_asked_again_blind_or_in_a_mode_that_has_names(ada, upstream):
    replies = await ada.hear("Tea?", "alpha", "beta", is_blind=True)
    await ada.post(f"/api/messages/{replies[0]['id']}/vote", {"verdict": "tie"})
    for wanted, is_blind in (({}, True), ({"mode": "relay"}, False)):
        begun = await replayed(ada, replies[0]["conversation_id"], **wanted)
        branch = begun["conversation"]["id"]
        assert (await over(ada, branch))["state"] == "complete"
        page = await ada.get(f"/api/conversations/{branch}")
        assert [turn["is_blind"] for turn in page["turns"]] == [is_blind]
        assert [voice["name"] for voice in page["conversation"]["table"]] == ["Alpha", "Beta"]


async def test_a_replay_goes_on_after_a_restart_and_what_broke_off_is_heard_to_its_end(tmp_path, upstream):
    environ = {"TERTULIA_ENDPOINTS": endpoints(upstream)}
    held = asyncio.Event()
    async with running(tmp_path, environ) as world:
        ada = await world.first("Ada")
        source = await talked(ada, upstream)
        upstream.plays((Say("Half"), Hold(held), Finish()), says("Whole."), says("Beta two."), model="beta")
        before = len(upstream.requests)
        begun = await replayed(ada, source, voices=[{"model": "voices:beta"}])
        branch = begun["conversation"]["id"]
        await upstream.heard(before + 1)
    async with running(tmp_path, environ) as world:
        ada = await world.sign_in("ada@example.org")
        replay = await over(ada, branch)
        assert (replay["state"], replay["done_round"], replay["reason"]) == ("complete", 2, "")
        rounds = (await ada.get(f"/api/conversations/{branch}"))["rounds"]
        newest = [round_["messages"][-1] for round_ in rounds]
        assert [(reply["content"], reply["status"]) for reply in newest] == [
            ("Whole.", "complete"),
            ("Beta two.", "complete"),
        ]
    held.set()


async def test_a_replay_of_someone_suspended_meanwhile_does_not_go_on(tmp_path, upstream):
    environ = {"TERTULIA_ENDPOINTS": endpoints(upstream)}
    held = asyncio.Event()
    async with running(tmp_path, environ) as world:
        ada = await world.first("Ada")
        bob = await world.another(ada, "Bob")
        source = await talked(bob, upstream)
        upstream.plays((Say("Half"), Hold(held), Finish()), model="beta")
        before = len(upstream.requests)
        begun = await replayed(bob, source, voices=[{"model": "voices:beta"}])
        branch = begun["conversation"]["id"]
        await upstream.heard(before + 1)
        await ada.put(f"/api/users/{bob.id}", {"suspended": True})
    async with running(tmp_path, environ) as world:
        ada = await world.sign_in("ada@example.org")
        await ada.put(f"/api/users/{bob.id}", {"suspended": False})
        bob = await world.sign_in("bob@example.org")
        assert (await over(bob, branch))["reason"].startswith("The server was restarted, and the person")
    assert len(upstream.requests) == before + 1
    held.set()


async def test_a_round_that_brought_a_branch_back_brings_it_back_in_the_replay_too(ada, upstream):
    source = await talked(ada, upstream)
    branch = await ada.post(f"/api/conversations/{source}/branches", {"at_round": 1}, expect=201)
    upstream.plays(says("Seven leagues."), says("It came to seven."), model="alpha")
    await ada.hear("How far?", "alpha", conversation_id=branch["id"])
    told = {"id": new_id(), "voice": {"model": "voices:alpha"}}
    opened = await ada.post(f"/api/conversations/{branch['id']}/bring-back", told, expect=202)
    await ada.ended(opened["turn"]["id"])
    wanted = {"voices": [{"model": "voices:beta"}, {"model": "voices:gamma"}], "mode": "relay"}
    begun = await replayed(ada, source, from_round=3, **wanted)
    assert (await over(ada, begun["conversation"]["id"]))["state"] == "complete"
    [asked] = (await ada.get(f"/api/conversations/{begun['conversation']['id']}"))["rounds"][2:]
    assert asked["messages"][0]["brings_id"] == branch["id"]
    assert [(reply["voice"]["name"], reply["step"]) for reply in asked["messages"][1:]] == [
        ("Beta", "summary")
    ]
    assert "Seven leagues." in str(upstream.requests[-1].body)
    await ada.delete(f"/api/conversations/{branch['id']}")
    nothing = {"id": new_id(), "from_round": 3}
    refused = await ada.post(f"/api/conversations/{source}/replay", nothing, expect=422)
    assert refused["message"] == "Nothing is left of these rounds that could be asked again."


# ── aids


async def talked(person: Person, upstream: Any) -> str:
    upstream.plays(says("Yes."), says("Alpha two."), model="alpha")
    [first] = await person.hear("Tea?", "alpha")
    conversation: str = first["conversation_id"]
    await person.hear("Sure?", "alpha", conversation_id=conversation)
    return conversation


async def replayed(person: Person, source: str, **wanted: Any) -> Any:
    asked = {"id": new_id()} | wanted
    return await person.post(f"/api/conversations/{source}/replay", asked, expect=202)


async def over(person: Person, branch: str) -> Any:
    """The replay, once it has ended."""
    async with person.live() as window, soon():
        await window.follow(f"conversation:{branch}")
        while True:
            replay = (await person.get(f"/api/conversations/{branch}/replay"))["replay"]
            page = await person.get(f"/api/conversations/{branch}")
            if replay["state"] != "running" and not page["conversation"]["is_answering"]:
                return replay
            await window.next()
