"""Sending a turn twice is harmless: the client makes the turn's id, which works as an idempotency key."""

from __future__ import annotations

import asyncio
import json

from tertulia.app import new_id
from tests.patience import soon
from tests.stories.waiting import read_until, stored_rounds, wait_for_text
from tests.upstream.scripted import Finish, Hold, Say
from tests.world import World, turn


async def test_sending_a_turn_again_returns_the_same_turn_without_a_second_request(ada, upstream):
    body = turn("Only once", "alpha")
    first = await ada.post("/api/turn", body, expect=202)
    await ada.wait_for_end(body["id"])
    second = await ada.post("/api/turn", body, expect=202)
    assert second["turn"]["id"] == first["turn"]["id"]
    assert second["message"] == first["message"]
    assert second["conversation"]["id"] == first["conversation"]["id"]
    assert len(await stored_rounds(ada, first["conversation"]["id"])) == 1
    assert len(upstream.requests) == 1


async def test_ten_simultaneous_copies_of_a_turn_create_one_message(ada, upstream):
    body = turn("Impatient", "alpha")
    answers = await asyncio.gather(*(ada.post("/api/turn", body, expect=202) for _ in range(10)))
    assert len({json.dumps(answer["message"]) for answer in answers}) == 1
    await ada.wait_for_end(body["id"])
    assert len(await stored_rounds(ada, answers[0]["conversation"]["id"])) == 1
    assert len(upstream.requests) == 1


async def test_another_message_with_the_same_turn_id_is_refused(ada, upstream):
    body = turn("One thing", "alpha")
    opened = await ada.post("/api/turn", body, expect=202)
    await ada.wait_for_end(body["id"])
    for change in (
        {"text": "Another thing"},
        {"voices": [{"model": "voices:beta"}]},
        {"visibility": "own_lane"},
    ):
        refusal = await ada.post("/api/turn", body | change, expect=409)
        assert refusal["code"] == "turn_reused"
    assert len(await stored_rounds(ada, opened["conversation"]["id"])) == 1
    assert len(upstream.requests) == 1


async def test_a_turn_id_of_another_person_reveals_nothing_and_writes_nothing(ada, bob, upstream):
    body = turn("Mine", "alpha")
    await ada.post("/api/turn", body, expect=202)
    await ada.wait_for_end(body["id"])
    refusal = await bob.post("/api/turn", body, expect=409)
    assert refusal["code"] == "turn_reused"
    assert (await bob.get("/api/conversations", project_id=bob.home))["items"] == []


async def test_a_client_that_lost_the_response_can_send_the_turn_again(world, ada, upstream):
    """The client disconnects after sending the request and before reading the response."""
    release = asyncio.Event()
    upstream.plays((Say("Answered"), Hold(release), Finish()))
    body = turn("Did you get this?", "alpha")
    await send_and_hang_up(world, ada.client.cookies, body)
    await upstream.wait_for_request()

    opened = await ada.post("/api/turn", body, expect=202)
    await wait_for_text(ada, body["id"], "Answered")
    release.set()
    await ada.wait_for_end(body["id"])
    [round_] = await stored_rounds(ada, opened["conversation"]["id"])
    assert [message["content"] for message in round_["messages"]] == ["Did you get this?", "Answered"]
    assert len(upstream.requests) == 1


async def test_a_client_that_lost_the_stream_gets_it_again_from_the_beginning(ada, upstream):
    release = asyncio.Event()
    upstream.plays((Say("First half,"), Hold(release), Say(" second half."), Finish()))
    body, stream = turn("Tell me", "alpha"), {"Accept": "text/event-stream"}
    async with ada.client.stream("POST", "/api/turn", json=body, headers=stream) as response:
        await read_until(response, "First half,")
    release.set()
    async with ada.client.stream("POST", "/api/turn", json=body, headers=stream) as response, soon():
        lines = [line async for line in response.aiter_lines()]
    deltas = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert "".join(delta.get("text", "") for delta in deltas) == "First half, second half."
    assert len(upstream.requests) == 1


async def send_and_hang_up(world: World, cookies, body) -> None:
    host, port = world.host.split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    payload = json.dumps(body).encode()
    cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
    lines = (
        "POST /api/turn HTTP/1.1",
        f"Host: {world.host}",
        f"Origin: {world.url}",
        f"Cookie: {cookie}",
        "Content-Type: application/json",
        f"Content-Length: {len(payload)}",
        "\r\n",
    )
    writer.write("\r\n".join(lines).encode() + payload)
    await writer.drain()
    writer.close()
    await writer.wait_closed()


async def test_a_turn_can_be_sent_again_after_its_persona_was_deleted(ada, upstream):
    character = {"name": "The Cook", "glyph": "", "hue": 4, "instructions": "", "model": "voices:alpha"}
    persona = await ada.post("/api/personas", {"scope": "user", "character": character}, expect=201)
    body = turn("Salt?") | {"voices": [{"persona_id": persona["id"]}]}
    first = await ada.post("/api/turn", body, expect=202)
    await ada.wait_for_end(first["turn"]["id"])
    await ada.delete(f"/api/personas/{persona['id']}")
    second = await ada.post("/api/turn", body, expect=202)
    assert second["message"]["id"] == first["message"]["id"]
    await ada.post("/api/turn", body | {"id": new_id()}, expect=404)
