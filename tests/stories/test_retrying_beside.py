"""A retry starts at once, beside a voice that is still writing, and nothing is lost or mixed up by it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tertulia.app import new_id
from tests.patience import soon
from tests.stories.listening import Item, heard, is_reply, rounds, said, state_of
from tests.upstream.scripted import Cut, Finish, Hold, Say, Upstream, refuses, says
from tests.world import Person

GAMMA = {"model": "voices:gamma"}


def held(text: str) -> tuple[tuple[Any, ...], asyncio.Event]:
    """A reply that begins and goes on only when the test says so."""
    until = asyncio.Event()
    return (Say(text), Hold(until), Say(" Done."), Finish()), until


async def again(person: Person, what: str, reply: dict[str, Any], expect: int = 202, **more: Any) -> Any:
    return await person.post(f"/api/messages/{reply['id']}/{what}", {"id": new_id()} | more, expect)


async def reply_of(person: Person, conversation_id: str, name: str, **fields: Any) -> dict[str, Any]:
    """The first reply of a voice that is stored with these fields, as soon as it is."""

    def fits(item: Item) -> bool:
        if not is_reply(item) or item["value"]["voice"]["name"] != name:
            return False
        return fields.items() <= item["value"].items()

    async with person.live() as tab:
        return (await heard(tab, f"conversation:{conversation_id}", fits))["value"]


async def told(person: Person, conversation_id: str, number: int = 1) -> list[tuple[str, str, str]]:
    """What a round shows: the newest version of each reply, its step and its text."""
    replies = await person.replies(conversation_id, number)
    replaced = {reply["replaces_id"] for reply in replies}
    assert len(replaced - {None}) == sum(reply["replaces_id"] is not None for reply in replies)
    shown = [reply for reply in replies if reply["id"] not in replaced and reply["step"] != "outline"]
    return sorted((reply["voice"]["name"], reply["step"], reply["content"]) for reply in shown)


def prompt(upstream: Upstream, nth: int, model: str) -> str:
    """All that a model was shown in its n-th request."""
    asked = [seen for seen in upstream.requests if seen.model == model]
    return "\n".join(str(message["content"]) for message in asked[nth].body["messages"])


async def stalled(
    ada: Person, upstream: Upstream, mode: str = "parallel", *others: str, **more: Any
) -> tuple[dict[str, Any], asyncio.Event]:
    """A round in which Alpha has failed while Beta still writes."""
    script, go_on = held("Beta begins.")
    upstream.plays(refuses(401), says("Alpha after all."), says("The sum."), model="alpha")
    upstream.plays(script, says("Beta later."), model="beta")
    opened = await ada.ask("Well?", "alpha", "beta", *others, mode=mode, **more)
    await said(ada, opened["turn"]["id"], "Beta begins.")
    return opened, go_on


# ── at once


@pytest.mark.parametrize("model", [None, "voices:gamma"], ids=["the same model", "another model"])
async def test_a_retry_is_answered_while_a_neighbour_still_writes(ada, upstream, model):
    upstream.says("Gamma instead.", model="gamma")
    opened, go_on = await stalled(ada, upstream)
    conversation = opened["conversation"]["id"]
    failed = await reply_of(ada, conversation, "Alpha", status="failed")
    retried = await again(ada, "retry", failed, **({"model": model} if model else {}))
    assert retried["turn"]["state"] == "running"
    assert await state_of(ada, retried["turn"]["id"]) == "complete"
    assert (await ada.get(f"/api/turns/{opened['turn']['id']}"))["state"] == "running"
    go_on.set()
    assert await state_of(ada, opened["turn"]["id"]) == "complete"
    first = ("Gamma", "answer", "Gamma instead.") if model else ("Alpha", "answer", "Alpha after all.")
    assert await told(ada, conversation) == sorted([first, ("Beta", "answer", "Beta begins. Done.")])


async def test_a_complete_reply_is_regenerated_while_a_neighbour_still_writes(ada, upstream):
    script, go_on = held("Beta begins.")
    upstream.plays(says("Once."), says("Twice."), model="alpha")
    upstream.plays(script, model="beta")
    opened = await ada.ask("Well?", "alpha", "beta")
    conversation = opened["conversation"]["id"]
    once = await reply_of(ada, conversation, "Alpha", status="complete")
    retried = await again(ada, "retry", once, conversation_id=conversation)
    assert retried["conversation"]["id"] == conversation
    assert await state_of(ada, retried["turn"]["id"]) == "complete"
    go_on.set()
    await ada.ended(opened["turn"]["id"])
    assert await told(ada, conversation) == [
        ("Alpha", "answer", "Twice."),
        ("Beta", "answer", "Beta begins. Done."),
    ]


async def test_a_reply_that_broke_off_is_continued_while_a_neighbour_still_writes(ada, upstream):
    script, go_on = held("Beta begins.")
    upstream.plays((Say("Once upon"), Cut()), says(" a time."), model="alpha")
    upstream.plays(script, model="beta")
    opened = await ada.ask("Well?", "alpha", "beta")
    broken = await reply_of(ada, opened["conversation"]["id"], "Alpha", status="interrupted")
    continued = await again(ada, "continue", broken)
    assert await state_of(ada, continued["turn"]["id"]) == "complete"
    go_on.set()
    await ada.ended(opened["turn"]["id"])
    assert (await told(ada, opened["conversation"]["id"]))[0] == ("Alpha", "answer", "Once upon a time.")


async def test_an_earlier_round_is_mended_while_a_later_one_is_answered(ada, upstream):
    script, go_on = held("Later.")
    upstream.plays(refuses(401), script, says("Mended."), model="alpha")
    [failed] = await ada.hear("One", "alpha")
    second = await ada.ask("Two", "alpha", conversation_id=failed["conversation_id"])
    await said(ada, second["turn"]["id"], "Later.")
    retried = await again(ada, "retry", failed)
    assert await state_of(ada, retried["turn"]["id"]) == "complete"
    go_on.set()
    await ada.ended(second["turn"]["id"])
    contents = [round_["messages"][-1]["content"] for round_ in await rounds(ada, failed["conversation_id"])]
    assert contents == ["Mended.", "Later. Done."]


async def test_a_branch_regenerates_at_once_though_its_parent_still_answers_that_round(ada, upstream):
    """A question waits already, so a complete reply of the round before takes its new version to a branch."""
    script, go_on = held("Beta begins.")
    upstream.plays(says("Once."), says("Twice."), says("Thrice."), model="alpha")
    upstream.plays(script, model="beta")
    opened = await ada.ask("Well?", "alpha", "beta")
    conversation = opened["conversation"]["id"]
    once = await reply_of(ada, conversation, "Alpha", status="complete")
    waiting = await ada.ask("And then?", "alpha", conversation_id=conversation)
    assert waiting["turn"]["state"] == "queued"
    retried = await again(ada, "retry", once, conversation_id=conversation)
    assert retried["conversation"]["parent_id"] == conversation
    assert await state_of(ada, retried["turn"]["id"]) == "complete"
    assert (await ada.get(f"/api/turns/{waiting['turn']['id']}"))["state"] == "queued"
    go_on.set()
    await ada.ended(waiting["turn"]["id"])
    assert "Once." in prompt(upstream, -1, "alpha")
    assert "Twice." not in prompt(upstream, -1, "alpha")


async def test_a_device_that_comes_later_sees_both_replies_grow(ada, upstream):
    script, end_retry = held("Alpha again.")
    opened, go_on = await stalled(ada, upstream)
    conversation = opened["conversation"]["id"]
    failed = await reply_of(ada, conversation, "Alpha", status="failed")
    upstream.plays(script, model="alpha")
    retried = await again(ada, "retry", failed)
    await said(ada, retried["turn"]["id"], "Alpha again.")
    async with ada.live() as tab:
        items = await tab.follow(f"conversation:{conversation}")
        drafts = {item["value"]["content"]: item["value"] for item in items if item["type"] == "draft"}
        assert set(drafts) == {"Alpha again.", "Beta begins."}
        assert drafts["Alpha again."]["replaces_id"] == failed["id"]
        assert {drafts[text]["turn_id"] for text in drafts} == {opened["turn"]["id"], retried["turn"]["id"]}
    for event in (end_retry, go_on):
        event.set()
    await ada.ended(opened["turn"]["id"])
    await ada.ended(retried["turn"]["id"])


# ── what follows in the mode


async def test_the_chair_reads_an_advisor_that_was_retried_before_it_began(ada, upstream):
    opened, go_on = await stalled(ada, upstream, "brain_trust")
    conversation = opened["conversation"]["id"]
    failed = await reply_of(ada, conversation, "Alpha", status="failed")
    retried = await again(ada, "retry", failed)
    assert await state_of(ada, retried["turn"]["id"]) == "complete"
    go_on.set()
    await ada.ended(opened["turn"]["id"])
    read = prompt(upstream, 2, "alpha")
    assert "Alpha after all." in read
    assert "Absent" not in read
    assert [step for _, step, _ in await told(ada, conversation)].count("synthesis") == 1


async def test_the_chair_reads_the_model_that_took_the_seat_and_calls_nobody_absent(ada, upstream):
    upstream.plays(says("Gamma instead."), model="gamma")
    opened, go_on = await stalled(ada, upstream, "brain_trust")
    failed = await reply_of(ada, opened["conversation"]["id"], "Alpha", status="failed")
    retried = await again(ada, "retry", failed, model="voices:gamma")
    assert await state_of(ada, retried["turn"]["id"]) == "complete"
    go_on.set()
    await ada.ended(opened["turn"]["id"])
    read = prompt(upstream, 1, "gamma")
    assert "[Beta]: Beta begins. Done." in read
    assert "Absent" not in read


async def test_a_chair_waits_for_no_retry_and_is_not_asked_twice(ada, upstream):
    script, end_retry = held("Alpha again.")
    opened, go_on = await stalled(ada, upstream, "brain_trust", chair=GAMMA)
    upstream.plays(says("The sum."), says("{}"), model="gamma")
    conversation = opened["conversation"]["id"]
    failed = await reply_of(ada, conversation, "Alpha", status="failed")
    upstream.plays(script, model="alpha")
    retried = await again(ada, "retry", failed)
    await said(ada, retried["turn"]["id"], "Alpha again.")
    go_on.set()
    assert await state_of(ada, opened["turn"]["id"]) == "complete"
    assert "no answer came: Alpha" in prompt(upstream, 0, "gamma")
    end_retry.set()
    assert await state_of(ada, retried["turn"]["id"]) == "complete"
    assert await told(ada, conversation) == [
        ("Alpha", "answer", "Alpha again. Done."),
        ("Beta", "answer", "Beta begins. Done."),
        ("Gamma", "synthesis", "The sum."),
    ]


@pytest.mark.parametrize("first", ["alpha", "beta"])
async def test_of_advisors_retried_together_the_last_one_brings_one_synthesis_that_read_all(
    ada, upstream, first
):
    scripts = {name: held(f"{name} again.") for name in ("alpha", "beta")}
    for name, (script, _) in scripts.items():
        upstream.plays(refuses(401), script, model=name)
    upstream.plays(says("The sum."), says("{}"), model="gamma")
    opened = await ada.ask("Well?", "alpha", "beta", mode="brain_trust", chair=GAMMA)
    assert await state_of(ada, opened["turn"]["id"]) == "failed"
    conversation = opened["conversation"]["id"]
    turns = {}
    for name, failed in zip(("alpha", "beta"), await ada.replies(conversation, 1), strict=True):
        turns[name] = (await again(ada, "retry", failed))["turn"]["id"]
        await said(ada, turns[name], f"{name} again.")
    for name in sorted(scripts, key=lambda name: name != first):
        scripts[name][1].set()
        assert await state_of(ada, turns[name]) == "complete"
    assert [name for name, step, _ in await told(ada, conversation) if step == "synthesis"] == ["Gamma"]
    read = prompt(upstream, 0, "gamma")
    assert "alpha again. Done." in read
    assert "beta again. Done." in read


async def test_where_nobody_else_is_heard_the_retry_goes_on_with_the_round(ada, upstream):
    """Beta fails after all, while Alpha is being retried: the chair is asked once Alpha has answered."""
    fail = asyncio.Event()
    script, end_retry = held("Alpha again.")
    upstream.plays(refuses(401), script, says("The sum."), says("{}"), model="alpha")
    upstream.plays((Hold(fail), *refuses(401)), model="beta")
    opened = await ada.ask("Well?", "alpha", "beta", mode="brain_trust")
    conversation = opened["conversation"]["id"]
    failed = await reply_of(ada, conversation, "Alpha", status="failed")
    retried = await again(ada, "retry", failed)
    await said(ada, retried["turn"]["id"], "Alpha again.")
    fail.set()
    assert await state_of(ada, opened["turn"]["id"]) == "failed"
    end_retry.set()
    assert await state_of(ada, retried["turn"]["id"]) == "complete"
    assert ("Alpha", "synthesis", "The sum.") in await told(ada, conversation)


async def test_the_next_in_a_relay_reads_the_retried_one(ada, upstream):
    upstream.says("Gamma ends.", model="gamma")
    opened, go_on = await stalled(ada, upstream, "relay", "gamma")
    failed = await reply_of(ada, opened["conversation"]["id"], "Alpha", status="failed")
    retried = await again(ada, "retry", failed)
    assert await state_of(ada, retried["turn"]["id"]) == "complete"
    assert [seen.model for seen in upstream.requests].count("gamma") == 0
    go_on.set()
    await ada.ended(opened["turn"]["id"])
    assert "[Alpha]: Alpha after all." in prompt(upstream, 0, "gamma")
    assert [seen.model for seen in upstream.requests] == ["alpha", "beta", "alpha", "gamma"]


async def test_a_retried_voice_takes_part_in_the_debate_it_missed(ada, upstream):
    opened, go_on = await stalled(ada, upstream, "debate", chair=GAMMA)
    upstream.plays(says("Gamma closes."), says("{}"), model="gamma")
    conversation = opened["conversation"]["id"]
    failed = await reply_of(ada, conversation, "Alpha", status="failed")
    retried = await again(ada, "retry", failed)
    assert await state_of(ada, retried["turn"]["id"]) == "complete"
    go_on.set()
    await ada.ended(opened["turn"]["id"])
    assert [(name, step) for name, step, _ in await told(ada, conversation)] == [
        ("Alpha", "answer"),
        ("Alpha", "rebuttal"),
        ("Beta", "answer"),
        ("Beta", "rebuttal"),
        ("Gamma", "synthesis"),
    ]


async def test_two_seats_that_take_the_same_model_are_two_voices(ada, upstream):
    scripts = [held("One."), held("Two.")]
    for name in ("alpha", "beta"):
        upstream.plays(refuses(401), model=name)
    upstream.plays(*(script for script, _ in scripts), model="gamma")
    opened = await ada.ask("Well?", "alpha", "beta")
    await ada.ended(opened["turn"]["id"])
    retried = [
        (await again(ada, "retry", failed, model="voices:gamma"))["turn"]
        for failed in await ada.replies(opened["conversation"]["id"], 1)
    ]
    assert [turn["table"][0]["name"] for turn in retried] == ["Gamma", "Gamma 2"]
    assert len({turn["table"][0]["id"] for turn in retried}) == 2
    for _, go_on in scripts:
        go_on.set()
    for turn in retried:
        await ada.ended(turn["id"])


# ── order, stops, limits


async def test_the_next_question_waits_for_the_retry_and_is_shown_what_it_brought(ada, upstream):
    script, end_retry = held("Alpha again.")
    upstream.plays(refuses(401), script, says("Next."), model="alpha")
    [failed] = await ada.hear("One", "alpha")
    retried = await again(ada, "retry", failed)
    await said(ada, retried["turn"]["id"], "Alpha again.")
    after = [
        await ada.ask(text, "alpha", conversation_id=failed["conversation_id"]) for text in ("Two", "Three")
    ]
    assert [opened["turn"]["state"] for opened in after] == ["queued", "queued"]
    assert len(upstream.requests) == 2
    end_retry.set()
    for opened in after:
        assert await state_of(ada, opened["turn"]["id"]) == "complete"
    assert "Alpha again. Done." in prompt(upstream, 2, "alpha")
    asked = [seen.body["messages"][-1]["content"] for seen in upstream.requests[2:]]
    assert [text.split()[-1] for text in asked] == ["Two", "Three"]


@pytest.mark.parametrize("stops", ["question", "retry"])
async def test_a_stop_of_one_turn_leaves_the_other_alone(ada, upstream, stops):
    script, end_retry = held("Alpha again.")
    opened, go_on = await stalled(ada, upstream, "brain_trust")
    conversation = opened["conversation"]["id"]
    failed = await reply_of(ada, conversation, "Alpha", status="failed")
    upstream.plays(script, says("The sum."), model="alpha")
    retried = await again(ada, "retry", failed)
    await said(ada, retried["turn"]["id"], "Alpha again.")
    stopped, other = (opened, retried) if stops == "question" else (retried, opened)
    await ada.post(f"/api/turns/{stopped['turn']['id']}/stop", {}, expect=202)
    assert await state_of(ada, stopped["turn"]["id"]) == "stopped"
    end_retry.set()
    go_on.set()
    assert await state_of(ada, other["turn"]["id"]) == "complete"
    steps = [step for _, step, _ in await told(ada, conversation)]
    assert steps.count("synthesis") == (0 if stops == "question" else 1)


async def test_devices_that_retry_one_reply_at_once_get_one_new_version(world, ada, upstream):
    script, end_retry = held("Alpha again.")
    upstream.plays(refuses(401), script, model="alpha")
    [failed] = await ada.hear("One", "alpha")
    other = await world.sign_in("ada@example.org")
    sent = [
        device.client.post(f"/api/messages/{failed['id']}/retry", json={"id": new_id()})
        for device in (ada, other, ada, other)
    ]
    answers = await asyncio.gather(*sent)
    assert sorted(answer.status_code for answer in answers) == [202, 409, 409, 409]
    end_retry.set()
    [turn] = [answer.json()["turn"]["id"] for answer in answers if answer.status_code == 202]
    assert await state_of(ada, turn) == "complete"
    assert await told(ada, failed["conversation_id"]) == [("Alpha", "answer", "Alpha again. Done.")]
    assert len(upstream.requests) == 2


async def test_the_same_retry_sent_again_while_it_runs_is_one_retry(ada, upstream):
    opened, go_on = await stalled(ada, upstream)
    failed = await reply_of(ada, opened["conversation"]["id"], "Alpha", status="failed")
    body = {"id": new_id()}
    path = f"/api/messages/{failed['id']}/retry"
    first, second = await asyncio.gather(*(ada.post(path, body, expect=202) for _ in range(2)))
    assert first["turn"]["id"] == second["turn"]["id"]
    assert await state_of(ada, body["id"]) == "complete"
    go_on.set()
    await ada.ended(opened["turn"]["id"])
    assert [seen.model for seen in upstream.requests].count("alpha") == 2


async def test_retries_take_room_like_any_turn(ada, upstream):
    until = asyncio.Event()
    upstream.plays(*[refuses(401)] * 9, (Say("Again."), Hold(until), Finish()), model="alpha")
    failed = [(await ada.hear(f"Question {n}", "alpha"))[0] for n in range(9)]
    running = [(await again(ada, "retry", reply))["turn"]["id"] for reply in failed[:8]]
    refusal = await again(ada, "retry", failed[8], expect=429)
    assert refusal["code"] == "too_many_turns"
    until.set()
    for turn_id in running:
        await ada.ended(turn_id)
    assert (await again(ada, "retry", failed[8]))["turn"]["state"] == "running"


async def test_a_conversation_deleted_under_a_retry_asks_nobody_again(ada, upstream):
    opened, _ = await stalled(ada, upstream)
    conversation = opened["conversation"]["id"]
    failed = await reply_of(ada, conversation, "Alpha", status="failed")
    script, _ = held("Alpha again.")
    upstream.plays(script, model="alpha")
    retried = await again(ada, "retry", failed)
    await said(ada, retried["turn"]["id"], "Alpha again.")
    asked = len(upstream.requests)
    await ada.delete(f"/api/conversations/{conversation}")
    async with soon():
        for seen in upstream.requests[1:]:
            await seen.closed.wait()
    await ada.get(f"/api/conversations/{conversation}", expect=404)
    assert len(upstream.requests) == asked
