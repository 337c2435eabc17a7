"""The client makes the turn's id, so sending the same message twice is harmless."""

from __future__ import annotations

import asyncio
import json

from tertulia.app import new_id
from tests.stories.listening import rounds, said
from tests.upstream.scripted import Finish, Hold, Say
from tests.world import World, turn


async def test_the_same_message_sent_again_gets_the_same_answer_and_one_call(ada, upstream):
    asked = turn("Only once", "alpha")
    first = await ada.post("/api/turn", asked, expect=202)
    await ada.ended(asked["id"])
    second = await ada.post("/api/turn", asked, expect=202)
    assert second["turn"]["id"] == first["turn"]["id"]
    assert second["message"] == first["message"]
    assert second["conversation"]["id"] == first["conversation"]["id"]
    assert len(await rounds(ada, first["conversation"]["id"])) == 1
    assert len(upstream.requests) == 1


async def test_ten_copies_at_the_same_moment_are_one_message(ada, upstream):
    asked = turn("Impatient", "alpha")
    answers = await asyncio.gather(*(ada.post("/api/turn", asked, expect=202) for _ in range(10)))
    assert len({json.dumps(answer["message"]) for answer in answers}) == 1
    await ada.ended(asked["id"])
    assert len(await rounds(ada, answers[0]["conversation"]["id"])) == 1
    assert len(upstream.requests) == 1


async def test_another_message_under_the_same_id_is_refused_and_not_written(ada, upstream):
    asked = turn("One thing", "alpha")
    opened = await ada.post("/api/turn", asked, expect=202)
    await ada.ended(asked["id"])
    for other in (
        {"text": "Another thing"},
        {"voices": [{"model": "voices:beta"}]},
        {"visibility": "own_lane"},
    ):
        refusal = await ada.post("/api/turn", asked | other, expect=409)
        assert refusal["code"] == "turn_reused"
    assert len(await rounds(ada, opened["conversation"]["id"])) == 1
    assert len(upstream.requests) == 1


async def test_someone_elses_id_tells_nothing_and_writes_nothing(ada, bob, upstream):
    asked = turn("Mine", "alpha")
    await ada.post("/api/turn", asked, expect=202)
    await ada.ended(asked["id"])
    refusal = await bob.post("/api/turn", asked, expect=409)
    assert refusal["code"] == "turn_reused"
    assert (await bob.get("/api/conversations", project_id=bob.home))["items"] == []


async def test_an_answer_that_was_lost_on_the_way_can_be_asked_for_again(world, ada, upstream):
    """The connection is cut after the request was sent and before its answer is read."""
    held = asyncio.Event()
    upstream.plays((Say("Answered"), Hold(held), Finish()))
    asked = turn("Did you get this?", "alpha")
    await send_and_hang_up(world, ada.client.cookies, asked)
    await upstream.heard()

    opened = await ada.post("/api/turn", asked, expect=202)
    await said(ada, asked["id"], "Answered")
    held.set()
    await ada.ended(asked["id"])
    [round_] = await rounds(ada, opened["conversation"]["id"])
    assert [message["content"] for message in round_["messages"]] == ["Did you get this?", "Answered"]
    assert len(upstream.requests) == 1


async def test_a_stream_that_was_lost_can_be_asked_for_again_from_its_beginning(ada, upstream):
    held = asyncio.Event()
    upstream.plays((Say("First half,"), Hold(held), Say(" second half."), Finish()))
    asked, stream = turn("Tell me", "alpha"), {"Accept": "text/event-stream"}
    async with ada.client.stream("POST", "/api/turn", json=asked, headers=stream) as response:
        async for line in response.aiter_lines():
            if "First half," in line:
                break
    held.set()
    async with ada.client.stream("POST", "/api/turn", json=asked, headers=stream) as response:
        lines = [line async for line in response.aiter_lines()]
    deltas = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert "".join(delta.get("text", "") for delta in deltas) == "First half, second half."
    assert len(upstream.requests) == 1


async def send_and_hang_up(world: World, cookies, body) -> None:
    host, port = world.host.split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    said = json.dumps(body).encode()
    cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
    lines = (
        "POST /api/turn HTTP/1.1",
        f"Host: {world.host}",
        f"Origin: {world.url}",
        f"Cookie: {cookie}",
        "Content-Type: application/json",
        f"Content-Length: {len(said)}",
        "\r\n",
    )
    writer.write("\r\n".join(lines).encode() + said)
    await writer.drain()
    writer.close()
    await writer.wait_closed()


async def test_a_turn_sent_again_after_its_persona_went_is_still_the_same(ada, upstream):
    character = {"name": "The Cook", "glyph": "", "hue": 4, "instructions": "", "model": "voices:alpha"}
    persona = await ada.post("/api/personas", {"scope": "user", "character": character}, expect=201)
    sent = turn("Salt?") | {"voices": [{"persona_id": persona["id"]}]}
    first = await ada.post("/api/turn", sent, expect=202)
    await ada.ended(first["turn"]["id"])
    await ada.delete(f"/api/personas/{persona['id']}")
    again = await ada.post("/api/turn", sent, expect=202)
    assert again["message"]["id"] == first["message"]["id"]
    await ada.post("/api/turn", sent | {"id": new_id()}, expect=404)
