"""Over HTTP: whoever may write in a conversation may end the wait before a retry, and nobody else."""

from __future__ import annotations

from contextlib import aclosing

from tests.patience import soon
from tests.upstream.scripted import refuses, says
from tests.world import Person


async def until_waiting(person: Person, turn_id: str) -> str:
    """The reply that waits for its provider."""
    async with soon(), aclosing(person.follow(turn_id)) as events:
        async for event in events:
            if event.name == "waiting" and event.data["waiting"]:
                return str(event.data["reply_id"])
    raise AssertionError("nobody waited")


async def test_the_wait_before_a_retry_can_be_ended_by_who_asked_and_by_no_stranger(ada, bob, upstream):
    upstream.plays(refuses(429, retry_after="55"), says("Here."))
    opened = await ada.ask("Anyone?", "alpha")
    turn_id = opened["turn"]["id"]
    reply_id = await until_waiting(ada, turn_id)
    await bob.post(f"/api/turns/{turn_id}/retry-now", {"reply_id": reply_id}, expect=404)
    assert len(upstream.requests) == 1
    turn = await ada.post(f"/api/turns/{turn_id}/retry-now", {"reply_id": reply_id}, expect=202)
    assert (turn["id"], turn["state"]) == (turn_id, "running")
    await ada.ended(turn_id)
    [reply] = await ada.replies(opened["conversation"]["id"], 1)
    assert (reply["content"], reply["status"]) == ("Here.", "complete")


async def test_nothing_waits_in_a_turn_that_is_over(ada, upstream):
    upstream.says("Done.")
    opened = await ada.ask("Quick", "alpha")
    await ada.ended(opened["turn"]["id"])
    turn = await ada.post(f"/api/turns/{opened['turn']['id']}/retry-now", expect=202)
    assert turn["state"] == "complete"
