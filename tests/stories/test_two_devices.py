"""Two devices in one conversation: rounds are answered one after the other, never mixed and never lost."""

from __future__ import annotations

import asyncio

from tests.stories.listening import heard, is_event, rounds, said, state_of
from tests.upstream.scripted import Finish, Hold, Say, Stall
from tests.world import PASSWORD, turn


async def test_the_second_round_waits_and_is_shown_what_the_first_was_answered(world, ada, upstream):
    held = asyncio.Event()
    upstream.plays((Say("From the first"), Hold(held), Say(" round."), Finish()), model="alpha")
    phone = await world.sign_in("ada@example.org", PASSWORD)
    first = await ada.ask("One", "alpha")
    await said(ada, first["turn"]["id"], "From the first")
    second = await phone.ask("Two", "beta", conversation_id=first["conversation"]["id"])
    assert (second["turn"]["state"], second["turn"]["round_number"]) == ("queued", 2)
    held.set()
    assert await state_of(phone, second["turn"]["id"]) == "complete"
    asked = next(seen for seen in upstream.requests if seen.model == "beta")
    assert "[Alpha]: From the first round." in asked.body["messages"][1]["content"]


async def test_rounds_sent_at_the_same_moment_are_numbered_and_answered_in_order(world, ada, upstream):
    phone = await world.sign_in("ada@example.org", PASSWORD)
    begun = await ada.ask("Begin", "alpha")
    await ada.ended(begun["turn"]["id"])
    conversation = begun["conversation"]["id"]
    sent = await asyncio.gather(
        *(
            who.ask(f"From {i}", "alpha", conversation_id=conversation)
            for i, who in enumerate([ada, phone] * 3)
        )
    )
    for opened in sent:
        assert await state_of(ada, opened["turn"]["id"]) == "complete"
    written = await rounds(ada, conversation)
    assert [round_["number"] for round_ in written] == [1, 2, 3, 4, 5, 6, 7]
    by_number = {opened["turn"]["round_number"]: opened["message"]["content"] for opened in sent}
    for round_ in written[1:]:
        question, reply = round_["messages"]
        assert question["content"] == by_number[round_["number"]]
        assert reply["content"].endswith(question["content"])
    asked = [seen.body["messages"][-1]["content"] for seen in upstream.requests[1:]]
    assert [text.splitlines()[-1] for text in asked] == [by_number[n] for n in range(2, 8)]


async def test_at_most_one_round_of_a_conversation_is_with_the_providers(world, ada, upstream):
    held = asyncio.Event()
    upstream.plays((Say("Busy"), Hold(held), Finish()))
    first = await ada.ask("One", "alpha")
    await said(ada, first["turn"]["id"], "Busy")
    others = [await ada.ask("More", "alpha", conversation_id=first["conversation"]["id"]) for _ in range(3)]
    page = await ada.get(f"/api/conversations/{first['conversation']['id']}")
    assert [turn_["state"] for turn_ in page["turns"]] == ["running", "queued", "queued", "queued"]
    assert len(upstream.requests) == 1
    held.set()
    for opened in others:
        await ada.ended(opened["turn"]["id"])
    assert len(upstream.requests) == 4


async def test_both_devices_see_both_rounds_live(world, ada, upstream):
    phone = await world.sign_in("ada@example.org", PASSWORD)
    begun = await ada.ask("Begin", "alpha")
    await ada.ended(begun["turn"]["id"])
    conversation = begun["conversation"]["id"]

    def last_turn_over(item):
        return is_event(item, "turn") and item["value"]["round_number"] == 3 and item["value"]["finished_at"]

    async with ada.live() as desk, phone.live() as hand:
        at_desk = asyncio.create_task(all_until(desk, conversation, last_turn_over))
        in_hand = asyncio.create_task(all_until(hand, conversation, last_turn_over))
        await ada.ask("Desk", "alpha", conversation_id=conversation)
        await phone.ask("Hand", "alpha", conversation_id=conversation)
        seen = await asyncio.gather(at_desk, in_hand)
    for items in seen:
        events = [item for item in items if item["type"] == "event"]
        assert [event["number"] for event in events] == list(range(1, len(events) + 1))
        questions = [
            e["value"]["content"] for e in events if e["noun"] == "message" and not e["value"]["voice"]
        ]
        assert questions == ["Begin", "Desk", "Hand"]
    assert [i for i in seen[0] if i["type"] == "event"] == [i for i in seen[1] if i["type"] == "event"]


async def test_more_than_eight_unfinished_rounds_are_refused_with_a_time_to_come_back(ada, upstream):
    upstream.plays((Say("Busy"), Stall()))
    opened = [await ada.ask(f"Number {n}", "alpha") for n in range(8)]
    response = await ada.client.post("/api/turn", json=turn("One too many", "alpha"))
    assert response.status_code == 429
    assert int(response.headers["retry-after"]) > 0
    assert response.json()["message"] == (
        "You have 8 rounds being answered. Wait for one to finish, or stop one."
    )
    await ada.post(f"/api/turns/{opened[0]['turn']['id']}/stop", {}, expect=202)
    await ada.ended(opened[0]["turn"]["id"])
    opened.append(await ada.ask("Now there is room", "alpha"))
    for one in opened[1:]:
        await ada.post(f"/api/turns/{one['turn']['id']}/stop", {}, expect=202)
        await ada.ended(one["turn"]["id"])


async def test_one_persons_many_rounds_leave_another_person_alone(ada, bob, upstream):
    upstream.plays((Say("Busy"), Stall()), model="alpha")
    opened = [await ada.ask(f"Number {n}", "alpha") for n in range(8)]
    [reply] = await bob.hear("And me?", "beta")
    assert reply["status"] == "complete"
    for one in opened:
        await ada.post(f"/api/turns/{one['turn']['id']}/stop", {}, expect=202)
        await ada.ended(one["turn"]["id"])


async def test_what_one_device_sends_the_other_sees_in_its_list(world, ada, upstream):
    phone = await world.sign_in("ada@example.org", PASSWORD)
    async with phone.live() as hand:
        await hand.follow(f"project:{ada.home}")
        opened = await ada.ask("Look at your phone", "alpha")
        item = (await hand.until(lambda item: is_event(item, "conversation")))[-1]
        assert (item["id"], item["value"]["is_answering"]) == (opened["conversation"]["id"], True)
        await ada.ended(opened["turn"]["id"])
        await heard(
            hand,
            f"project:{ada.home}",
            lambda i: is_event(i, "conversation") and not i["value"]["is_answering"],
        )


async def all_until(tab, conversation_id, fits):
    items = await tab.follow(f"conversation:{conversation_id}")
    return items if any(map(fits, items)) else items + await tab.until(fits)
