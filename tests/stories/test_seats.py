"""A voice keeps its seat, and so its colour, in a conversation and its branches, on every device."""

from __future__ import annotations

from typing import Any

from tertulia.app import new_id
from tests.world import Person


async def ask_and_get_seats(
    person: Person, conversation_id: str, text: str, *models: str, **more: Any
) -> dict[str, int]:
    replies = await person.ask_and_wait(text, *models, conversation_id=conversation_id, **more)
    return {reply["voice"]["name"]: reply["voice"]["seat"] for reply in replies}


async def start_conversation(person: Person) -> str:
    replies = await person.ask_and_wait("Good morning?", "alpha", "beta")
    conversation_id: str = replies[0]["conversation_id"]
    return conversation_id


async def test_a_model_keeps_its_seat_when_the_table_changes(ada: Person) -> None:
    conversation_id = await start_conversation(ada)
    assert await ask_and_get_seats(ada, conversation_id, "Only you?", "beta") == {"Beta": 2}
    assert await ask_and_get_seats(ada, conversation_id, "And a new one?", "gamma", "beta") == {
        "Beta": 2,
        "Gamma": 3,
    }
    everyone = {"Alpha": 1, "Beta": 2, "Gamma": 3}
    assert await ask_and_get_seats(ada, conversation_id, "All again?", "gamma", "beta", "alpha") == everyone


async def test_a_voice_asked_aside_keeps_its_seat_in_later_rounds(ada: Person) -> None:
    conversation_id = await start_conversation(ada)
    assert await ask_and_get_seats(ada, conversation_id, "Aside?", "gamma", aside=True) == {"Gamma": 3}
    assert await ask_and_get_seats(ada, conversation_id, "Together?", "gamma") == {"Gamma": 3}


async def test_a_conversation_lists_the_seats_of_all_its_voices(ada: Person) -> None:
    conversation_id = await start_conversation(ada)
    await ask_and_get_seats(ada, conversation_id, "Only you?", "gamma")
    seats = (await ada.get(f"/api/conversations/{conversation_id}"))["conversation"]["seats"]
    assert {seat["lane"]: seat["seat"] for seat in seats} == {
        "voices:alpha:0": 1,
        "voices:beta:0": 2,
        "voices:gamma:0": 3,
    }


async def test_a_branch_shares_the_seats_of_its_whole_tree(ada: Person) -> None:
    conversation_id = await start_conversation(ada)
    branch_id = new_id()
    await ada.post(f"/api/conversations/{conversation_id}/branches", {"id": branch_id, "at_round": 1}, 201)
    assert await ask_and_get_seats(ada, branch_id, "There?", "gamma", "beta") == {"Beta": 2, "Gamma": 3}
    assert await ask_and_get_seats(ada, conversation_id, "Here?", "gamma") == {"Gamma": 3}


async def test_an_estimate_names_the_seats_that_the_voices_would_get(ada: Person) -> None:
    conversation_id = await start_conversation(ada)
    request = {"text": "How much?", "voices": [{"model": "voices:beta"}], "conversation_id": conversation_id}
    estimate = await ada.post("/api/estimate", request | {"mode": "parallel", "visibility": "open"})
    assert [item["voice"]["seat"] for item in estimate["items"]] == [2]
