"""Two devices in one conversation: rounds are queued and answered in order, and none is lost."""

from __future__ import annotations

import asyncio

from tests.stories.waiting import final_state, is_event, stored_rounds, wait_for_item, wait_for_text
from tests.upstream.scripted import Finish, Hold, Say, Stall
from tests.world import PASSWORD, turn


async def test_the_second_round_queues_and_its_prompt_has_the_first_answers(world, ada, upstream):
    release = asyncio.Event()
    upstream.plays((Say("From the first"), Hold(release), Say(" round."), Finish()), model="alpha")
    phone = await world.sign_in("ada@example.org", PASSWORD)
    first = await ada.ask("One", "alpha")
    await wait_for_text(ada, first["turn"]["id"], "From the first")
    second = await phone.ask("Two", "beta", conversation_id=first["conversation"]["id"])
    assert (second["turn"]["state"], second["turn"]["round_number"]) == ("queued", 2)
    release.set()
    assert await final_state(phone, second["turn"]["id"]) == "complete"
    request = next(recorded for recorded in upstream.requests if recorded.model == "beta")
    assert "[Alpha]: From the first round." in request.body["messages"][1]["content"]


async def test_simultaneous_rounds_are_numbered_and_answered_in_order(world, ada, upstream):
    phone = await world.sign_in("ada@example.org", PASSWORD)
    first = await ada.ask("Begin", "alpha")
    await ada.wait_for_end(first["turn"]["id"])
    conversation = first["conversation"]["id"]
    turns = await asyncio.gather(
        *(
            device.ask(f"From {i}", "alpha", conversation_id=conversation)
            for i, device in enumerate([ada, phone] * 3)
        )
    )
    for opened in turns:
        assert await final_state(ada, opened["turn"]["id"]) == "complete"
    stored = await stored_rounds(ada, conversation)
    assert [round_["number"] for round_ in stored] == [1, 2, 3, 4, 5, 6, 7]
    by_number = {opened["turn"]["round_number"]: opened["message"]["content"] for opened in turns}
    for round_ in stored[1:]:
        question, reply = round_["messages"]
        assert question["content"] == by_number[round_["number"]]
        assert reply["content"].endswith(question["content"])
    questions = [request.body["messages"][-1]["content"] for request in upstream.requests[1:]]
    assert [text.splitlines()[-1] for text in questions] == [by_number[n] for n in range(2, 8)]


async def test_one_round_of_a_conversation_runs_at_a_time(world, ada, upstream):
    release = asyncio.Event()
    upstream.plays((Say("Busy"), Hold(release), Finish()))
    first = await ada.ask("One", "alpha")
    await wait_for_text(ada, first["turn"]["id"], "Busy")
    others = [await ada.ask("More", "alpha", conversation_id=first["conversation"]["id"]) for _ in range(3)]
    page = await ada.get(f"/api/conversations/{first['conversation']['id']}")
    assert [turn_["state"] for turn_ in page["turns"]] == ["running", "queued", "queued", "queued"]
    assert len(upstream.requests) == 1
    release.set()
    for opened in others:
        await ada.wait_for_end(opened["turn"]["id"])
    assert len(upstream.requests) == 4


async def test_both_devices_get_the_events_of_both_rounds_in_the_same_order(world, ada, upstream):
    phone = await world.sign_in("ada@example.org", PASSWORD)
    first = await ada.ask("Begin", "alpha")
    await ada.wait_for_end(first["turn"]["id"])
    conversation = first["conversation"]["id"]

    def last_turn_over(item):
        return is_event(item, "turn") and item["value"]["round_number"] == 3 and item["value"]["finished_at"]

    async with ada.live() as desk_tab, phone.live() as phone_tab:
        desk_items = asyncio.create_task(follow_until(desk_tab, conversation, last_turn_over))
        phone_items = asyncio.create_task(follow_until(phone_tab, conversation, last_turn_over))
        await ada.ask("Desk", "alpha", conversation_id=conversation)
        await phone.ask("Hand", "alpha", conversation_id=conversation)
        received = await asyncio.gather(desk_items, phone_items)
    for items in received:
        events = [item for item in items if item["type"] == "event"]
        assert [event["number"] for event in events] == list(range(1, len(events) + 1))
        questions = [
            e["value"]["content"] for e in events if e["noun"] == "message" and not e["value"]["voice"]
        ]
        assert questions == ["Begin", "Desk", "Hand"]
    assert [i for i in received[0] if i["type"] == "event"] == [
        i for i in received[1] if i["type"] == "event"
    ]


async def test_a_ninth_unfinished_round_is_refused_with_retry_after(ada, upstream):
    upstream.plays((Say("Busy"), Stall()))
    turns = [await ada.ask(f"Number {n}", "alpha") for n in range(8)]
    response = await ada.client.post("/api/turn", json=turn("One too many", "alpha"))
    assert response.status_code == 429
    assert int(response.headers["retry-after"]) > 0
    assert response.json()["message"] == (
        "You have 8 rounds being answered. Wait for one to finish, or stop one."
    )
    await ada.post(f"/api/turns/{turns[0]['turn']['id']}/stop", {}, expect=202)
    await ada.wait_for_end(turns[0]["turn"]["id"])
    turns.append(await ada.ask("Now there is room", "alpha"))
    for turn_ in turns[1:]:
        await ada.post(f"/api/turns/{turn_['turn']['id']}/stop", {}, expect=202)
        await ada.wait_for_end(turn_["turn"]["id"])


async def test_the_limit_of_unfinished_rounds_is_per_person(ada, bob, upstream):
    upstream.plays((Say("Busy"), Stall()), model="alpha")
    turns = [await ada.ask(f"Number {n}", "alpha") for n in range(8)]
    [reply] = await bob.ask_and_wait("And me?", "beta")
    assert reply["status"] == "complete"
    for turn_ in turns:
        await ada.post(f"/api/turns/{turn_['turn']['id']}/stop", {}, expect=202)
        await ada.wait_for_end(turn_["turn"]["id"])


async def test_a_new_conversation_appears_in_the_list_of_the_other_device(world, ada, upstream):
    phone = await world.sign_in("ada@example.org", PASSWORD)
    async with phone.live() as tab:
        await tab.follow(f"project:{ada.home}")
        opened = await ada.ask("Look at your phone", "alpha")
        item = (await tab.until(lambda item: is_event(item, "conversation")))[-1]
        assert (item["id"], item["value"]["is_answering"]) == (opened["conversation"]["id"], True)
        await ada.wait_for_end(opened["turn"]["id"])
        await wait_for_item(
            tab,
            f"project:{ada.home}",
            lambda i: is_event(i, "conversation") and not i["value"]["is_answering"],
        )


async def follow_until(tab, conversation_id, fits):
    items = await tab.follow(f"conversation:{conversation_id}")
    return items if any(map(fits, items)) else items + await tab.until(fits)
