"""A retry starts at once, in parallel to voices that still write, and loses or mixes up nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tertulia.app import new_id
from tests.patience import soon
from tests.stories.waiting import Item, final_state, is_reply, stored_rounds, wait_for_item, wait_for_text
from tests.upstream.scripted import Cut, Finish, Hold, Say, Upstream, refuses, says
from tests.world import Person

GAMMA = {"model": "voices:gamma"}


def held_reply(text: str) -> tuple[tuple[Any, ...], asyncio.Event]:
    """A reply that pauses after its first text, and the event that lets it continue."""
    release = asyncio.Event()
    return (Say(text), Hold(release), Say(" Done."), Finish()), release


async def repeat(person: Person, action: str, reply: dict[str, Any], expect: int = 202, **more: Any) -> Any:
    return await person.post(f"/api/messages/{reply['id']}/{action}", {"id": new_id()} | more, expect)


async def wait_for_reply(person: Person, conversation_id: str, name: str, **fields: Any) -> dict[str, Any]:
    """Waits for the first stored reply of a voice with these fields."""

    def fits(item: Item) -> bool:
        if not is_reply(item) or item["value"]["voice"]["name"] != name:
            return False
        return fields.items() <= item["value"].items()

    async with person.live() as tab:
        return (await wait_for_item(tab, f"conversation:{conversation_id}", fits))["value"]


async def newest_replies(person: Person, conversation_id: str, number: int = 1) -> list[tuple[str, str, str]]:
    """The newest version of each reply of a round: name, step and text."""
    replies = await person.replies(conversation_id, number)
    replaced = {reply["replaces_id"] for reply in replies}
    assert len(replaced - {None}) == sum(reply["replaces_id"] is not None for reply in replies)
    newest = [reply for reply in replies if reply["id"] not in replaced and reply["step"] != "outline"]
    return sorted((reply["voice"]["name"], reply["step"], reply["content"]) for reply in newest)


def prompt(upstream: Upstream, nth: int, model: str) -> str:
    """The prompt of the n-th request to a model."""
    requests = [request for request in upstream.requests if request.model == model]
    return "\n".join(str(message["content"]) for message in requests[nth].body["messages"])


async def open_with_failed_alpha(
    ada: Person, upstream: Upstream, mode: str = "parallel", *others: str, **more: Any
) -> tuple[dict[str, Any], asyncio.Event]:
    """Opens a round in which Alpha has failed while Beta still writes."""
    script, release = held_reply("Beta begins.")
    upstream.plays(refuses(401), says("Alpha after all."), says("The sum."), model="alpha")
    upstream.plays(script, says("Beta later."), model="beta")
    opened = await ada.ask("Well?", "alpha", "beta", *others, mode=mode, **more)
    await wait_for_text(ada, opened["turn"]["id"], "Beta begins.")
    return opened, release


# ── starting at once


@pytest.mark.parametrize("model", [None, "voices:gamma"], ids=["the same model", "another model"])
async def test_a_retry_is_answered_while_another_voice_still_writes(ada, upstream, model):
    upstream.says("Gamma instead.", model="gamma")
    opened, release = await open_with_failed_alpha(ada, upstream)
    conversation = opened["conversation"]["id"]
    failed = await wait_for_reply(ada, conversation, "Alpha", status="failed")
    retried = await repeat(ada, "retry", failed, **({"model": model} if model else {}))
    assert retried["turn"]["state"] == "running"
    assert await final_state(ada, retried["turn"]["id"]) == "complete"
    assert (await ada.get(f"/api/turns/{opened['turn']['id']}"))["state"] == "running"
    release.set()
    assert await final_state(ada, opened["turn"]["id"]) == "complete"
    first = ("Gamma", "answer", "Gamma instead.") if model else ("Alpha", "answer", "Alpha after all.")
    assert await newest_replies(ada, conversation) == sorted(
        [first, ("Beta", "answer", "Beta begins. Done.")]
    )


async def test_a_complete_reply_is_regenerated_while_another_voice_still_writes(ada, upstream):
    script, release = held_reply("Beta begins.")
    upstream.plays(says("Once."), says("Twice."), model="alpha")
    upstream.plays(script, model="beta")
    opened = await ada.ask("Well?", "alpha", "beta")
    conversation = opened["conversation"]["id"]
    once = await wait_for_reply(ada, conversation, "Alpha", status="complete")
    retried = await repeat(ada, "retry", once, conversation_id=conversation)
    assert retried["conversation"]["id"] == conversation
    assert await final_state(ada, retried["turn"]["id"]) == "complete"
    release.set()
    await ada.wait_for_end(opened["turn"]["id"])
    assert await newest_replies(ada, conversation) == [
        ("Alpha", "answer", "Twice."),
        ("Beta", "answer", "Beta begins. Done."),
    ]


async def test_an_interrupted_reply_is_continued_while_another_voice_still_writes(ada, upstream):
    script, release = held_reply("Beta begins.")
    upstream.plays((Say("Once upon"), Cut()), says(" a time."), model="alpha")
    upstream.plays(script, model="beta")
    opened = await ada.ask("Well?", "alpha", "beta")
    broken = await wait_for_reply(ada, opened["conversation"]["id"], "Alpha", status="interrupted")
    continued = await repeat(ada, "continue", broken)
    assert await final_state(ada, continued["turn"]["id"]) == "complete"
    release.set()
    await ada.wait_for_end(opened["turn"]["id"])
    assert (await newest_replies(ada, opened["conversation"]["id"]))[0] == (
        "Alpha",
        "answer",
        "Once upon a time.",
    )


async def test_a_reply_of_an_earlier_round_is_retried_while_a_later_round_runs(ada, upstream):
    script, release = held_reply("Later.")
    upstream.plays(refuses(401), script, says("Mended."), model="alpha")
    [failed] = await ada.ask_and_wait("One", "alpha")
    second = await ada.ask("Two", "alpha", conversation_id=failed["conversation_id"])
    await wait_for_text(ada, second["turn"]["id"], "Later.")
    retried = await repeat(ada, "retry", failed)
    assert await final_state(ada, retried["turn"]["id"]) == "complete"
    release.set()
    await ada.wait_for_end(second["turn"]["id"])
    contents = [
        round_["messages"][-1]["content"] for round_ in await stored_rounds(ada, failed["conversation_id"])
    ]
    assert contents == ["Mended.", "Later. Done."]


async def test_a_branch_regenerates_a_reply_while_its_parent_still_answers_the_round(ada, upstream):
    """A question is queued already, so the new version of the earlier reply opens a branch."""
    script, release = held_reply("Beta begins.")
    upstream.plays(says("Once."), says("Twice."), says("Thrice."), model="alpha")
    upstream.plays(script, model="beta")
    opened = await ada.ask("Well?", "alpha", "beta")
    conversation = opened["conversation"]["id"]
    once = await wait_for_reply(ada, conversation, "Alpha", status="complete")
    waiting = await ada.ask("And then?", "alpha", conversation_id=conversation)
    assert waiting["turn"]["state"] == "queued"
    retried = await repeat(ada, "retry", once, conversation_id=conversation)
    assert retried["conversation"]["parent_id"] == conversation
    assert await final_state(ada, retried["turn"]["id"]) == "complete"
    assert (await ada.get(f"/api/turns/{waiting['turn']['id']}"))["state"] == "queued"
    release.set()
    await ada.wait_for_end(waiting["turn"]["id"])
    assert "Once." in prompt(upstream, -1, "alpha")
    assert "Twice." not in prompt(upstream, -1, "alpha")


async def test_a_device_that_connects_later_gets_the_drafts_of_both_turns(ada, upstream):
    script, release_retry = held_reply("Alpha again.")
    opened, release = await open_with_failed_alpha(ada, upstream)
    conversation = opened["conversation"]["id"]
    failed = await wait_for_reply(ada, conversation, "Alpha", status="failed")
    upstream.plays(script, model="alpha")
    retried = await repeat(ada, "retry", failed)
    await wait_for_text(ada, retried["turn"]["id"], "Alpha again.")
    async with ada.live() as tab:
        items = await tab.follow(f"conversation:{conversation}")
        drafts = {item["value"]["content"]: item["value"] for item in items if item["type"] == "draft"}
        assert set(drafts) == {"Alpha again.", "Beta begins."}
        assert drafts["Alpha again."]["replaces_id"] == failed["id"]
        assert {drafts[text]["turn_id"] for text in drafts} == {opened["turn"]["id"], retried["turn"]["id"]}
    for event in (release_retry, release):
        event.set()
    await ada.wait_for_end(opened["turn"]["id"])
    await ada.wait_for_end(retried["turn"]["id"])


# ── the later steps of the mode


async def test_the_chair_reads_an_advisor_that_was_retried_before_the_synthesis(ada, upstream):
    opened, release = await open_with_failed_alpha(ada, upstream, "brain_trust")
    conversation = opened["conversation"]["id"]
    failed = await wait_for_reply(ada, conversation, "Alpha", status="failed")
    retried = await repeat(ada, "retry", failed)
    assert await final_state(ada, retried["turn"]["id"]) == "complete"
    release.set()
    await ada.wait_for_end(opened["turn"]["id"])
    chair_prompt = prompt(upstream, 2, "alpha")
    assert "Alpha after all." in chair_prompt
    assert "Absent" not in chair_prompt
    assert [step for _, step, _ in await newest_replies(ada, conversation)].count("synthesis") == 1


async def test_the_chair_reads_the_model_that_took_over_a_seat(ada, upstream):
    upstream.plays(says("Gamma instead."), model="gamma")
    opened, release = await open_with_failed_alpha(ada, upstream, "brain_trust")
    failed = await wait_for_reply(ada, opened["conversation"]["id"], "Alpha", status="failed")
    retried = await repeat(ada, "retry", failed, model="voices:gamma")
    assert await final_state(ada, retried["turn"]["id"]) == "complete"
    release.set()
    await ada.wait_for_end(opened["turn"]["id"])
    chair_prompt = prompt(upstream, 1, "gamma")
    assert "[Beta]: Beta begins. Done." in chair_prompt
    assert "Absent" not in chair_prompt


async def test_the_chair_does_not_wait_for_a_retry_and_writes_one_synthesis(ada, upstream):
    script, release_retry = held_reply("Alpha again.")
    opened, release = await open_with_failed_alpha(ada, upstream, "brain_trust", chair=GAMMA)
    upstream.plays(says("The sum."), says("{}"), model="gamma")
    conversation = opened["conversation"]["id"]
    failed = await wait_for_reply(ada, conversation, "Alpha", status="failed")
    upstream.plays(script, model="alpha")
    retried = await repeat(ada, "retry", failed)
    await wait_for_text(ada, retried["turn"]["id"], "Alpha again.")
    release.set()
    assert await final_state(ada, opened["turn"]["id"]) == "complete"
    assert "no answer came: Alpha" in prompt(upstream, 0, "gamma")
    release_retry.set()
    assert await final_state(ada, retried["turn"]["id"]) == "complete"
    assert await newest_replies(ada, conversation) == [
        ("Alpha", "answer", "Alpha again. Done."),
        ("Beta", "answer", "Beta begins. Done."),
        ("Gamma", "synthesis", "The sum."),
    ]


@pytest.mark.parametrize("first", ["alpha", "beta"])
async def test_the_last_of_several_parallel_retries_adds_one_synthesis(ada, upstream, first):
    scripts = {name: held_reply(f"{name} again.") for name in ("alpha", "beta")}
    for name, (script, _) in scripts.items():
        upstream.plays(refuses(401), script, model=name)
    upstream.plays(says("The sum."), says("{}"), model="gamma")
    opened = await ada.ask("Well?", "alpha", "beta", mode="brain_trust", chair=GAMMA)
    assert await final_state(ada, opened["turn"]["id"]) == "failed"
    conversation = opened["conversation"]["id"]
    turns = {}
    for name, failed in zip(("alpha", "beta"), await ada.replies(conversation, 1), strict=True):
        turns[name] = (await repeat(ada, "retry", failed))["turn"]["id"]
        await wait_for_text(ada, turns[name], f"{name} again.")
    for name in sorted(scripts, key=lambda name: name != first):
        scripts[name][1].set()
        assert await final_state(ada, turns[name]) == "complete"
    assert [name for name, step, _ in await newest_replies(ada, conversation) if step == "synthesis"] == [
        "Gamma"
    ]
    chair_prompt = prompt(upstream, 0, "gamma")
    assert "alpha again. Done." in chair_prompt
    assert "beta again. Done." in chair_prompt


async def test_a_retry_continues_the_round_when_every_other_voice_failed(ada, upstream):
    """Beta fails during the retry of Alpha, so the chair is asked after Alpha's retry."""
    fail = asyncio.Event()
    script, release_retry = held_reply("Alpha again.")
    upstream.plays(refuses(401), script, says("The sum."), says("{}"), model="alpha")
    upstream.plays((Hold(fail), *refuses(401)), model="beta")
    opened = await ada.ask("Well?", "alpha", "beta", mode="brain_trust")
    conversation = opened["conversation"]["id"]
    failed = await wait_for_reply(ada, conversation, "Alpha", status="failed")
    retried = await repeat(ada, "retry", failed)
    await wait_for_text(ada, retried["turn"]["id"], "Alpha again.")
    fail.set()
    assert await final_state(ada, opened["turn"]["id"]) == "failed"
    release_retry.set()
    assert await final_state(ada, retried["turn"]["id"]) == "complete"
    assert ("Alpha", "synthesis", "The sum.") in await newest_replies(ada, conversation)


async def test_the_next_voice_of_a_relay_reads_the_retried_reply(ada, upstream):
    upstream.says("Gamma ends.", model="gamma")
    opened, release = await open_with_failed_alpha(ada, upstream, "relay", "gamma")
    failed = await wait_for_reply(ada, opened["conversation"]["id"], "Alpha", status="failed")
    retried = await repeat(ada, "retry", failed)
    assert await final_state(ada, retried["turn"]["id"]) == "complete"
    assert [request.model for request in upstream.requests].count("gamma") == 0
    release.set()
    await ada.wait_for_end(opened["turn"]["id"])
    assert "[Alpha]: Alpha after all." in prompt(upstream, 0, "gamma")
    assert [request.model for request in upstream.requests] == ["alpha", "beta", "alpha", "gamma"]


async def test_a_retried_voice_takes_part_in_the_rebuttals_of_a_debate(ada, upstream):
    opened, release = await open_with_failed_alpha(ada, upstream, "debate", chair=GAMMA)
    upstream.plays(says("Gamma closes."), says("{}"), model="gamma")
    conversation = opened["conversation"]["id"]
    failed = await wait_for_reply(ada, conversation, "Alpha", status="failed")
    retried = await repeat(ada, "retry", failed)
    assert await final_state(ada, retried["turn"]["id"]) == "complete"
    release.set()
    await ada.wait_for_end(opened["turn"]["id"])
    assert [(name, step) for name, step, _ in await newest_replies(ada, conversation)] == [
        ("Alpha", "answer"),
        ("Alpha", "rebuttal"),
        ("Beta", "answer"),
        ("Beta", "rebuttal"),
        ("Gamma", "synthesis"),
    ]


async def test_two_seats_taken_over_by_one_model_are_two_voices(ada, upstream):
    scripts = [held_reply("One."), held_reply("Two.")]
    for name in ("alpha", "beta"):
        upstream.plays(refuses(401), model=name)
    upstream.plays(*(script for script, _ in scripts), model="gamma")
    opened = await ada.ask("Well?", "alpha", "beta")
    await ada.wait_for_end(opened["turn"]["id"])
    retried = [
        (await repeat(ada, "retry", failed, model="voices:gamma"))["turn"]
        for failed in await ada.replies(opened["conversation"]["id"], 1)
    ]
    assert [turn["table"][0]["name"] for turn in retried] == ["Gamma", "Gamma 2"]
    assert len({turn["table"][0]["id"] for turn in retried}) == 2
    for _, release in scripts:
        release.set()
    for turn in retried:
        await ada.wait_for_end(turn["id"])


# ── order, stops, limits


async def test_the_next_question_waits_for_the_retry_and_its_prompt_has_the_new_reply(ada, upstream):
    script, release_retry = held_reply("Alpha again.")
    upstream.plays(refuses(401), script, says("Next."), model="alpha")
    [failed] = await ada.ask_and_wait("One", "alpha")
    retried = await repeat(ada, "retry", failed)
    await wait_for_text(ada, retried["turn"]["id"], "Alpha again.")
    queued = [
        await ada.ask(text, "alpha", conversation_id=failed["conversation_id"]) for text in ("Two", "Three")
    ]
    assert [opened["turn"]["state"] for opened in queued] == ["queued", "queued"]
    assert len(upstream.requests) == 2
    release_retry.set()
    for opened in queued:
        assert await final_state(ada, opened["turn"]["id"]) == "complete"
    assert "Alpha again. Done." in prompt(upstream, 2, "alpha")
    questions = [request.body["messages"][-1]["content"] for request in upstream.requests[2:]]
    assert [text.split()[-1] for text in questions] == ["Two", "Three"]


@pytest.mark.parametrize("stopped_turn", ["question", "retry"])
async def test_stopping_one_of_two_parallel_turns_leaves_the_other_running(ada, upstream, stopped_turn):
    script, release_retry = held_reply("Alpha again.")
    opened, release = await open_with_failed_alpha(ada, upstream, "brain_trust")
    conversation = opened["conversation"]["id"]
    failed = await wait_for_reply(ada, conversation, "Alpha", status="failed")
    upstream.plays(script, says("The sum."), model="alpha")
    retried = await repeat(ada, "retry", failed)
    await wait_for_text(ada, retried["turn"]["id"], "Alpha again.")
    stopped, running = (opened, retried) if stopped_turn == "question" else (retried, opened)
    await ada.post(f"/api/turns/{stopped['turn']['id']}/stop", {}, expect=202)
    assert await final_state(ada, stopped["turn"]["id"]) == "stopped"
    release_retry.set()
    release.set()
    assert await final_state(ada, running["turn"]["id"]) == "complete"
    steps = [step for _, step, _ in await newest_replies(ada, conversation)]
    assert steps.count("synthesis") == (0 if stopped_turn == "question" else 1)


async def test_simultaneous_retries_of_one_reply_create_one_version(world, ada, upstream):
    script, release_retry = held_reply("Alpha again.")
    upstream.plays(refuses(401), script, model="alpha")
    [failed] = await ada.ask_and_wait("One", "alpha")
    second_device = await world.sign_in("ada@example.org")
    posts = [
        device.client.post(f"/api/messages/{failed['id']}/retry", json={"id": new_id()})
        for device in (ada, second_device, ada, second_device)
    ]
    answers = await asyncio.gather(*posts)
    assert sorted(answer.status_code for answer in answers) == [202, 409, 409, 409]
    release_retry.set()
    [turn] = [answer.json()["turn"]["id"] for answer in answers if answer.status_code == 202]
    assert await final_state(ada, turn) == "complete"
    assert await newest_replies(ada, failed["conversation_id"]) == [("Alpha", "answer", "Alpha again. Done.")]
    assert len(upstream.requests) == 2


async def test_sending_a_running_retry_again_creates_no_second_one(ada, upstream):
    opened, release = await open_with_failed_alpha(ada, upstream)
    failed = await wait_for_reply(ada, opened["conversation"]["id"], "Alpha", status="failed")
    body = {"id": new_id()}
    path = f"/api/messages/{failed['id']}/retry"
    first, second = await asyncio.gather(*(ada.post(path, body, expect=202) for _ in range(2)))
    assert first["turn"]["id"] == second["turn"]["id"]
    assert await final_state(ada, body["id"]) == "complete"
    release.set()
    await ada.wait_for_end(opened["turn"]["id"])
    assert [request.model for request in upstream.requests].count("alpha") == 2


async def test_retries_count_towards_the_limit_of_running_turns(ada, upstream):
    release = asyncio.Event()
    upstream.plays(*[refuses(401)] * 9, (Say("Again."), Hold(release), Finish()), model="alpha")
    failed = [(await ada.ask_and_wait(f"Question {n}", "alpha"))[0] for n in range(9)]
    turn_ids = [(await repeat(ada, "retry", reply))["turn"]["id"] for reply in failed[:8]]
    refusal = await repeat(ada, "retry", failed[8], expect=429)
    assert refusal["code"] == "too_many_turns"
    release.set()
    for turn_id in turn_ids:
        await ada.wait_for_end(turn_id)
    assert (await repeat(ada, "retry", failed[8]))["turn"]["state"] == "running"


async def test_deleting_a_conversation_stops_a_running_retry(ada, upstream):
    opened, _ = await open_with_failed_alpha(ada, upstream)
    conversation = opened["conversation"]["id"]
    failed = await wait_for_reply(ada, conversation, "Alpha", status="failed")
    script, _ = held_reply("Alpha again.")
    upstream.plays(script, model="alpha")
    retried = await repeat(ada, "retry", failed)
    await wait_for_text(ada, retried["turn"]["id"], "Alpha again.")
    request_count = len(upstream.requests)
    await ada.delete(f"/api/conversations/{conversation}")
    async with soon():
        for request in upstream.requests[1:]:
            await request.closed.wait()
    await ada.get(f"/api/conversations/{conversation}", expect=404)
    assert len(upstream.requests) == request_count
