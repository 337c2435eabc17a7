"""A person who may write in a conversation can end the wait before a retry; nobody else can."""

from __future__ import annotations

from contextlib import aclosing

from tests.patience import soon
from tests.upstream.scripted import refuses, says
from tests.world import Person


async def wait_for_retry_notice(person: Person, turn_id: str) -> str:
    """The id of the first reply that waits before a retry."""
    async with soon(), aclosing(person.follow(turn_id)) as events:
        async for event in events:
            if event.name == "waiting" and event.data["waiting"]:
                return str(event.data["reply_id"])
    raise AssertionError("no reply waited")


async def test_the_author_can_end_the_wait_before_a_retry_and_a_stranger_cannot(ada, bob, upstream):
    upstream.plays(refuses(429, retry_after="55"), says("Here."))
    opened = await ada.ask("Anyone?", "alpha")
    turn_id = opened["turn"]["id"]
    reply_id = await wait_for_retry_notice(ada, turn_id)
    await bob.post(f"/api/turns/{turn_id}/retry-now", {"reply_id": reply_id}, expect=404)
    assert len(upstream.requests) == 1
    turn = await ada.post(f"/api/turns/{turn_id}/retry-now", {"reply_id": reply_id}, expect=202)
    assert (turn["id"], turn["state"]) == (turn_id, "running")
    await ada.wait_for_end(turn_id)
    [reply] = await ada.replies(opened["conversation"]["id"], 1)
    assert (reply["content"], reply["status"]) == ("Here.", "complete")


async def test_ending_the_wait_of_a_finished_turn_changes_nothing(ada, upstream):
    upstream.says("Done.")
    opened = await ada.ask("Quick", "alpha")
    await ada.wait_for_end(opened["turn"]["id"])
    turn = await ada.post(f"/api/turns/{opened['turn']['id']}/retry-now", expect=202)
    assert turn["state"] == "complete"
