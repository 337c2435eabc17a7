"""A reply can be retried with the same model or another, and an interrupted one can be continued."""

from __future__ import annotations

import asyncio

import pytest

from tertulia.app import new_id
from tests.stories.waiting import final_state, stored_rounds, wait_for_text
from tests.upstream.scripted import Cut, Finish, Hold, Say, Stall, refuses, says
from tests.world import Person


async def repeat(person: Person, action: str, message_id: str, expect: int = 202, **more):
    return await person.post(f"/api/messages/{message_id}/{action}", {"id": new_id()} | more, expect)


async def versions(person: Person, conversation_id: str, number: int = 1):
    """The replies of a round, in the order in which they were written."""
    return sorted(await person.replies(conversation_id, number), key=lambda reply: reply["created_at"])


async def test_a_retry_creates_a_version_with_the_id_of_the_one_it_replaces(ada, upstream):
    upstream.plays(refuses(401), says("Now it works."), model="alpha")
    upstream.says("I answered once.", model="beta")
    first = await ada.ask("Hello", "alpha", "beta")
    await ada.wait_for_end(first["turn"]["id"])
    conversation = first["conversation"]["id"]
    failed, _ = await ada.replies(conversation, 1)

    retried = await repeat(ada, "retry", failed["id"])
    assert (retried["turn"]["purpose"], retried["turn"]["message_id"]) == ("retry", failed["id"])
    assert (retried["turn"]["round_number"], retried["message"]) == (1, first["message"])
    assert await final_state(ada, retried["turn"]["id"]) == "complete"

    [round_] = await stored_rounds(ada, conversation)
    new = next(message for message in round_["messages"] if message["replaces_id"])
    assert (new["replaces_id"], new["content"], new["status"]) == (failed["id"], "Now it works.", "complete")
    assert new["voice"] == failed["voice"]
    assert [request.model for request in upstream.requests].count("beta") == 1


async def test_a_retry_sends_the_same_prompt_as_the_first_try(ada, upstream):
    [reply] = await ada.ask_and_wait("Hello", "alpha")
    retried = await repeat(ada, "retry", reply["id"])
    await ada.wait_for_end(retried["turn"]["id"])
    first, second = upstream.requests
    assert first.body["messages"] == second.body["messages"]


async def test_a_retry_can_use_another_model_at_the_same_seat(ada, upstream):
    upstream.plays(refuses(401), model="alpha")
    upstream.says("I can.", model="gamma")
    opened = await ada.ask("Who can?", "alpha", "beta")
    await ada.wait_for_end(opened["turn"]["id"])
    failed, _ = await ada.replies(opened["conversation"]["id"], 1)
    retried = await repeat(ada, "retry", failed["id"], model="voices:gamma")
    await ada.wait_for_end(retried["turn"]["id"])
    new = (await ada.get(f"/api/conversations/{opened['conversation']['id']}"))["rounds"][0]["messages"][-1]
    assert (new["replaces_id"], new["content"], new["speaker"]) == (failed["id"], "I can.", "agent:gamma")
    assert (new["voice"]["seat"], new["voice"]["name"]) == (failed["voice"]["seat"], "Gamma")


async def test_a_model_that_takes_over_a_second_seat_keeps_two_lanes(ada, upstream):
    upstream.plays(refuses(401), model="alpha")
    upstream.plays(says("From my own seat."), says("From the seat I took."), says("Later."), model="beta")
    opened = await ada.ask("Who can?", "alpha", "beta")
    await ada.wait_for_end(opened["turn"]["id"])
    failed, _ = await ada.replies(opened["conversation"]["id"], 1)
    retried = await repeat(ada, "retry", failed["id"], model="voices:beta")
    await ada.wait_for_end(retried["turn"]["id"])
    [voice] = retried["turn"]["table"]
    assert (voice["seat"], voice["name"], voice["id"]) == (1, "Beta 2", "voices:beta:1")
    await ada.ask_and_wait("And then?", "beta", conversation_id=opened["conversation"]["id"])
    own = [m["content"] for m in upstream.last.body["messages"] if m["role"] == "assistant"]
    assert own == ["From my own seat."]


async def test_a_retry_with_an_unknown_model_is_refused(ada, upstream):
    [reply] = await ada.ask_and_wait("Hello", "alpha")
    refusal = await repeat(ada, "retry", reply["id"], model="voices:delta", expect=422)
    assert refusal["code"] == "unknown_model"


async def test_a_retry_of_an_old_version_replaces_the_newest(ada, upstream):
    [first] = await ada.ask_and_wait("Hello", "alpha")
    for _ in range(2):
        retried = await repeat(ada, "retry", first["id"])
        await ada.wait_for_end(retried["turn"]["id"])
    oldest, middle, newest = await versions(ada, first["conversation_id"])
    assert [oldest["replaces_id"], middle["replaces_id"], newest["replaces_id"]] == [
        None,
        oldest["id"],
        middle["id"],
    ]


async def test_the_next_prompt_contains_only_the_newest_version(ada, upstream):
    upstream.plays(says("Old."), says("New."), says("Later."), model="alpha")
    [first] = await ada.ask_and_wait("Hello", "alpha")
    retried = await repeat(ada, "retry", first["id"])
    await ada.wait_for_end(retried["turn"]["id"])
    await ada.ask_and_wait("Go on", "alpha", conversation_id=first["conversation_id"])
    own = [m["content"] for m in upstream.last.body["messages"] if m["role"] == "assistant"]
    assert own == ["New."]


async def test_an_interrupted_reply_is_continued_where_it_stopped(ada, upstream):
    upstream.plays((Say("Once upon"), Cut()), says(" a time."))
    [broken] = await ada.ask_and_wait("Tell a story", "alpha")
    continued = await repeat(ada, "continue", broken["id"])
    assert continued["turn"]["purpose"] == "continue"
    assert await final_state(ada, continued["turn"]["id"]) == "complete"
    _, complete = await versions(ada, broken["conversation_id"])
    assert (complete["content"], complete["status"]) == ("Once upon a time.", "complete")
    assert complete["replaces_id"] == broken["id"]


async def test_a_continue_request_contains_the_beginning_of_the_reply(ada, upstream):
    upstream.plays((Say("Once upon"), Cut()), says(" a time."))
    [broken] = await ada.ask_and_wait("Tell a story", "alpha")
    continued = await repeat(ada, "continue", broken["id"])
    await ada.wait_for_end(continued["turn"]["id"])
    *_, question, beginning, instruction = upstream.last.body["messages"]
    assert question == {"role": "user", "content": "Tell a story"}
    assert beginning == {"role": "assistant", "content": "Once upon"}
    assert instruction["role"] == "user"


async def test_a_continued_reply_keeps_the_sources_that_were_left_out(ada, upstream):
    upstream.plays(says("With it."), (Say("Once upon"), Cut()), (Say(" a"), Cut()), says(" time."))
    notes = await ada.attach("notes.md", b"the canary sings")
    [first] = await ada.ask_and_wait("Tell a story", "alpha", attachments=[notes["id"]])
    await ada.wait_for_end((await repeat(ada, "retry", first["id"], without=[notes["id"]]))["turn"]["id"])
    for _ in range(2):
        newest = (await versions(ada, first["conversation_id"]))[-1]
        await ada.wait_for_end((await repeat(ada, "continue", newest["id"]))["turn"]["id"])
    newest = (await versions(ada, first["conversation_id"]))[-1]
    assert newest["content"] == "Once upon a time."
    assert ["canary" in str(request.body) for request in upstream.requests] == [True, False, False, False]


async def test_the_draft_of_a_continued_reply_starts_with_the_old_text(ada, upstream):
    release = asyncio.Event()
    upstream.plays((Say("Once upon"), Cut()), (Hold(release), Say(" a time."), Finish()))
    [broken] = await ada.ask_and_wait("Tell a story", "alpha")
    continued = await repeat(ada, "continue", broken["id"])
    await upstream.wait_for_request(2)
    async with ada.live() as tab:
        items = await tab.follow(f"conversation:{broken['conversation_id']}")
        draft = next(item["value"] for item in items if item["type"] == "draft")
        assert (draft["content"], draft["number"]) == ("Once upon", 0)
        assert draft["replaces_id"] == broken["id"]
    release.set()
    await ada.wait_for_end(continued["turn"]["id"])


async def test_a_stopped_reply_can_be_continued_twice(ada, upstream):
    upstream.plays((Say("One"), Stall()), (Say(", two"), Cut()), says(", three."))
    opened = await ada.ask("Count", "alpha")
    await wait_for_text(ada, opened["turn"]["id"], "One")
    await ada.post(f"/api/turns/{opened['turn']['id']}/stop", {}, expect=202)
    await ada.wait_for_end(opened["turn"]["id"])
    for _ in range(2):
        newest = (await versions(ada, opened["conversation"]["id"]))[-1]
        continued = await repeat(ada, "continue", newest["id"])
        await ada.wait_for_end(continued["turn"]["id"])
    newest = (await versions(ada, opened["conversation"]["id"]))[-1]
    assert (newest["content"], newest["status"]) == ("One, two, three.", "complete")


@pytest.mark.parametrize("script", [says("All of it."), refuses(401)], ids=["complete", "failed"])
async def test_continuing_a_reply_that_was_not_interrupted_is_refused(ada, upstream, script):
    upstream.plays(script)
    [reply] = await ada.ask_and_wait("Hello", "alpha")
    refusal = await repeat(ada, "continue", reply["id"], expect=409)
    assert refusal["code"] == "nothing_to_continue"
    assert len(upstream.requests) == 1


async def test_continuing_a_reply_after_a_successful_retry_is_refused(ada, upstream):
    upstream.plays((Say("Once upon"), Cut()), says("A whole story."))
    [broken] = await ada.ask_and_wait("Tell a story", "alpha")
    retried = await repeat(ada, "retry", broken["id"])
    await ada.wait_for_end(retried["turn"]["id"])
    refusal = await repeat(ada, "continue", broken["id"], expect=409)
    assert refusal["code"] == "nothing_to_continue"


async def test_a_second_retry_of_a_reply_is_refused_while_the_first_runs(ada, upstream):
    upstream.plays((Say("Once upon"), Cut()), (Say("Again"), Stall()))
    [broken] = await ada.ask_and_wait("Tell a story", "alpha")
    retried = await repeat(ada, "retry", broken["id"])
    await wait_for_text(ada, retried["turn"]["id"], "Again")
    for action in ("retry", "continue"):
        refusal = await repeat(ada, action, broken["id"], expect=409)
        assert refusal["message"] == "This reply is being tried again already. Wait for it, or stop it."
    await ada.post(f"/api/turns/{retried['turn']['id']}/stop", {}, expect=202)
    await ada.wait_for_end(retried["turn"]["id"])


async def test_retrying_a_question_is_refused(ada, upstream):
    opened = await ada.ask("Hello", "alpha")
    await ada.wait_for_end(opened["turn"]["id"])
    refusal = await repeat(ada, "retry", opened["message"]["id"], expect=422)
    assert refusal["message"] == "Only a reply can be tried again; edit the question instead."


async def test_sending_a_retry_twice_creates_one_retry(ada, upstream):
    [reply] = await ada.ask_and_wait("Hello", "alpha")
    body = {"id": new_id()}
    first = await ada.post(f"/api/messages/{reply['id']}/retry", body, expect=202)
    await ada.wait_for_end(body["id"])
    second = await ada.post(f"/api/messages/{reply['id']}/retry", body, expect=202)
    assert second["turn"]["id"] == first["turn"]["id"]
    await ada.post(f"/api/messages/{reply['id']}/continue", body, expect=409)
    assert len(upstream.requests) == 2


async def test_a_stranger_cannot_retry_or_continue(ada, bob, upstream):
    upstream.plays((Say("Mine"), Cut()))
    [reply] = await ada.ask_and_wait("Private", "alpha")
    await repeat(bob, "retry", reply["id"], expect=404)
    await repeat(bob, "continue", reply["id"], expect=404)
    assert len(upstream.requests) == 1
