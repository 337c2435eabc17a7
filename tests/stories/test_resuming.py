"""A client that lost its connection resumes without missing a byte, an event or the end."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import aclosing
from typing import Any

import pytest

from tests.device import Device
from tests.patience import soon
from tests.stories.waiting import wait_for_text
from tests.upstream.scripted import Cut, Finish, Hold, Say, Stall, refuses, says
from tests.world import Person, endpoints, running

RUNS = 24
AT_ONCE = 8
"""The limit of unfinished rounds for one person."""
LETTERS = 'aé日👩\u202e\n"\\ :'


def random_chunks(rng: random.Random) -> list[str]:
    return ["".join(rng.choices(LETTERS, k=rng.randint(1, 9))) + "." for _ in range(rng.randint(20, 60))]


class ReceivedEvents:
    """The events that a client has received: the text of each reply, and every event id."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.marks: list[str] = []
        self.is_over = False

    def take(self, event_id: str, name: str, value: Any) -> None:
        assert name != "snapshot", "a known event id gets the missed events, not a snapshot"
        self.marks.append(event_id)
        if name in ("delta", "chunk"):
            self.texts[value["reply_id"]] = self.texts.get(value["reply_id"], "") + value.get("text", "")
        self.is_over = name == "ended" or (name == "done" and "turn" in value)

    @property
    def numbers(self) -> list[int]:
        return [int(event_id.rpartition(".")[2]) for event_id in self.marks]


async def read_with_cuts(person: Person, turn_id: str, rng: random.Random, accept: str) -> ReceivedEvents:
    """Reads some bytes, disconnects, drops the incomplete frame, and resumes after the last event id."""
    received = ReceivedEvents()
    async with soon():
        while not received.is_over:
            last = received.marks[-1] if received.marks else ""
            ndjson = accept == "application/x-ndjson"
            path = f"/api/turns/{turn_id}/events" + (f"?after={last}" if ndjson else "")
            headers = {"Accept": accept} | ({} if ndjson else {"Last-Event-ID": last})
            take = read_lines if ndjson else read_frames
            async with person.client.stream("GET", path, headers=headers) as response:
                assert response.status_code == 200
                take(await read_some_bytes(response, rng), received)
    return received


async def read_some_bytes(response: Any, rng: random.Random) -> bytes:
    enough = rng.choice([0, 1, 200, 1500, 6000, 1 << 30])
    data = b""
    async with aclosing(response.aiter_bytes()) as pieces:
        async for piece in pieces:
            data += piece
            if len(data) >= enough:
                return data[: rng.randint(0, len(data))]
    return data


def read_frames(data: bytes, received: ReceivedEvents) -> None:
    *frames, _incomplete = data.split(b"\n\n")
    for frame in frames:
        lines = dict(line.split(": ", 1) for line in frame.decode().split("\n") if not line.startswith(":"))
        if lines:
            received.take(lines["id"], lines["event"], json.loads(lines["data"]))


def read_lines(data: bytes, received: ReceivedEvents) -> None:
    *lines, _incomplete = data.split(b"\n")
    for line in filter(None, lines):
        value = json.loads(line)
        received.take(value["after"], value["type"], value)


def has_ended_turn(device: Device) -> bool:
    return any(turn["finished_at"] for turn in device.tables["turn"].values())


async def follow_with_cuts(person: Person, conversation_id: str, rng: random.Random) -> Device:
    """Reconnects a WebSocket again and again, each time from its cursor."""
    place = f"conversation:{conversation_id}"
    device = Device(cursors={place: 0})
    async with soon():
        while not has_ended_turn(device):
            frames = rng.randint(0, 12)
            async with person.live() as tab:
                await tab.send({"type": "follow", "place": place, "after": device.cursors[place]})
                while frames and not has_ended_turn(device):
                    device.take(await tab.next())
                    frames -= 1
    return device


@pytest.mark.slow
@pytest.mark.parametrize("accept", ["text/event-stream", "application/x-ndjson"], ids=["sse", "ndjson"])
async def test_an_event_stream_cut_at_random_bytes_resumes_to_the_stored_text(
    world, ada, upstream, accept, request
):
    async def run(seed: int) -> None:
        rng = random.Random(seed)
        opened = await ada.ask(f"Run {seed}", "alpha", "beta")
        turn_id = opened["turn"]["id"]
        received = await read_with_cuts(ada, turn_id, rng, accept)
        replies = await ada.replies(opened["conversation"]["id"], 1)
        assert received.texts == {reply["id"]: reply["content"] for reply in replies}, f"seed {seed}"
        assert received.numbers == sorted(set(received.numbers)), f"seed {seed}: a repeat"
        live = world.tertulia.live.find(turn_id)
        assert received.numbers[-1] == live.number, f"seed {seed}: a gap before the end"

    first = random.Random(request.node.name).randrange(1 << 30)
    print(f"seeds {first} to {first + RUNS // 2 - 1}")
    chunks = random_chunks(random.Random(first))
    upstream.plays(says("", chunks=chunks, pace=0.004))
    for begin in range(first, first + RUNS // 2, AT_ONCE):
        await asyncio.gather(*(run(seed) for seed in range(begin, min(begin + AT_ONCE, first + RUNS // 2))))


@pytest.mark.slow
async def test_a_websocket_closed_at_random_moments_resumes_to_the_stored_text(ada, upstream):
    async def run(seed: int) -> None:
        opened = await ada.ask(f"Run {seed}", "alpha", "beta")
        conversation = opened["conversation"]["id"]
        device = await follow_with_cuts(ada, conversation, random.Random(seed))
        page = await ada.get(f"/api/conversations/{conversation}")
        stored = {message["id"]: message for message in page["rounds"][0]["messages"]}
        assert device.tables["message"] == stored, f"seed {seed}"
        assert device.drafts == {}, f"seed {seed}"
        assert device.wishes == [], f"seed {seed}: an event was missing"

    upstream.plays(says("", chunks=random_chunks(random.Random(3)), pace=0.004))
    for begin in range(0, RUNS, AT_ONCE):
        await asyncio.gather(*(run(seed) for seed in range(begin, begin + AT_ONCE)))


async def test_a_draft_plus_its_deltas_equals_the_text_so_far_at_every_moment(ada, upstream):
    """One tab follows from the beginning, one from the middle; both have the same text."""
    middle, end = asyncio.Event(), asyncio.Event()
    upstream.plays(
        (Say("One, "), Say("two, "), Hold(middle), Say("three, "), Hold(end), Say("four."), Finish())
    )
    opened = await ada.ask("Count", "alpha")
    place = f"conversation:{opened['conversation']['id']}"
    first_device, second_device = Device(cursors={place: 0}), Device(cursors={place: 0})
    async with ada.live() as first_tab, ada.live() as second_tab:
        first_device.take(*await first_tab.follow(place))
        await read_until_draft(first_tab, first_device, "One, two, ")
        second_device.take(*await second_tab.follow(place))
        await read_until_draft(second_tab, second_device, "One, two, ")
        middle.set()
        await read_until_draft(first_tab, first_device, "One, two, three, ")
        await read_until_draft(second_tab, second_device, "One, two, three, ")
        assert first_device.drafts == second_device.drafts
        end.set()
        await read_until_turn_end(first_tab, first_device)
        await read_until_turn_end(second_tab, second_device)
    assert first_device.tables["message"] == second_device.tables["message"]
    assert [m["content"] for m in second_device.tables["message"].values()][-1] == "One, two, three, four."


@pytest.mark.parametrize(
    "event_id_template",
    ["{turn}.999999", "{turn}.-1", "-1", "7", "999999999999", "everything", "{turn}.9999999999", "{other}.3"],
)
@pytest.mark.parametrize("how", ["header", "query"])
async def test_an_unknown_event_id_gets_a_snapshot_of_the_turn(ada, upstream, event_id_template, how):
    release = asyncio.Event()
    upstream.plays((Say("So far"), Hold(release), Say(" and further."), Finish()))
    opened = await ada.ask("Talk", "alpha")
    turn_id = opened["turn"]["id"]
    await wait_for_text(ada, turn_id, "So far")
    event_id = event_id_template.format(turn=turn_id, other="01JD0000000000000000000000")
    headers = {"Last-Event-ID": event_id} if how == "header" else {}
    path = f"/api/turns/{turn_id}/events" + (f"?after={event_id}" if how == "query" else "")
    text, frames = "", []
    async with soon(), ada.client.stream("GET", path, headers=headers) as response:
        async for line in response.aiter_lines():
            if line.startswith("event: "):
                frames.append(line.removeprefix("event: "))
            if line.startswith("data: "):
                value = json.loads(line.removeprefix("data: "))
                if frames[-1] == "snapshot":
                    text = value["drafts"][0]["content"]
                    release.set()
                text += value.get("text", "")
    assert frames[0] == "snapshot"
    assert frames[-1] == "ended"
    assert text == "So far and further."


async def test_an_oversized_event_id_is_refused(ada, upstream):
    opened = await ada.ask("Talk", "alpha")
    await ada.wait_for_end(opened["turn"]["id"])
    headers = {"Last-Event-ID": "9" * 10_000}
    response = await ada.client.get(f"/api/turns/{opened['turn']['id']}/events", headers=headers)
    assert response.status_code == 422


@pytest.mark.parametrize(
    ("script", "state", "status"),
    [
        (says("Whole."), "complete", "complete"),
        (refuses(401), "failed", "failed"),
        ((Say("Half"), Cut()), "complete", "interrupted"),
    ],
    ids=["complete", "failed", "interrupted"],
)
async def test_a_client_that_connects_late_gets_the_end_and_the_stream_closes(
    ada, upstream, script, state, status
):
    upstream.plays(script)
    opened = await ada.ask("Talk", "alpha")
    events = await ada.wait_for_end(opened["turn"]["id"])
    async with soon():
        remaining = [event async for event in ada.follow(opened["turn"]["id"], after=events[1].id)]
        after_end = [event async for event in ada.follow(opened["turn"]["id"], after=events[-1].id)]
    assert remaining == events[2:]
    assert after_end == []
    assert (events[-1].name, events[-1].data["state"]) == ("ended", state)
    assert events[-2].data["status"] == status


async def test_after_a_restart_the_stream_sends_the_stored_end_of_the_turn(tmp_path, upstream):
    """Event ids of the previous process are unknown now; the stream must end all the same."""
    upstream.plays((Say("Half a"), Stall()), says("Whole."))
    environ = {"TERTULIA_ENDPOINTS": endpoints(upstream)}
    async with running(tmp_path, environ) as world:
        ada = await world.set_up()
        interrupted = await ada.ask("Talk", "alpha")
        await wait_for_text(ada, interrupted["turn"]["id"], "Half a")
        finished = await ada.ask("Talk", "beta")
        event_ids = [event.id for event in await ada.wait_for_end(finished["turn"]["id"])]
    async with running(tmp_path, environ) as restarted:
        ada = await restarted.sign_in("ada@example.org")
        for opened, state, content in (
            (interrupted, "interrupted", "Half a"),
            (finished, "complete", "Whole."),
        ):
            for event_id in ("", event_ids[1], f"{opened['turn']['id']}.3"):
                async with soon():
                    [event] = [event async for event in ada.follow(opened["turn"]["id"], after=event_id)]
                assert event.name == "snapshot"
                assert event.data["turn"]["state"] == state
                assert [message["content"] for message in event.data["messages"]] == [content]


async def test_a_websocket_resumes_after_a_restart_without_a_gap(tmp_path, upstream):
    upstream.plays((Say("Half a"), Stall()), says("Whole."))
    environ = {"TERTULIA_ENDPOINTS": endpoints(upstream)}
    async with running(tmp_path, environ) as world:
        ada = await world.set_up()
        opened = await ada.ask("Talk", "alpha")
        place = f"conversation:{opened['conversation']['id']}"
        device = Device(cursors={place: 0})
        async with ada.live() as tab:
            device.take(*await tab.follow(place))
            await read_until_draft(tab, device, "Half a")
    async with running(tmp_path, environ) as restarted:
        ada = await restarted.sign_in("ada@example.org")
        async with ada.live() as tab:
            device.take(*await tab.follow(place, device.cursors[place]))
    assert device.wishes == []
    assert device.drafts == {}
    assert [(m["content"], m["status"]) for m in device.tables["message"].values()] == [
        ("Talk", "complete"),
        ("Half a", "interrupted"),
    ]


@pytest.mark.parametrize("after", [-1, 10_000, 1 << 70])
async def test_an_invalid_cursor_is_answered_with_a_reset(ada, upstream, after):
    opened = await ada.ask("Talk", "alpha")
    await ada.wait_for_end(opened["turn"]["id"])
    place = f"conversation:{opened['conversation']['id']}"
    async with ada.live() as tab:
        assert await tab.follow(place, after) == [{"type": "reset", "place": place}]
        page = await ada.get(f"/api/conversations/{opened['conversation']['id']}")
        [caught_up] = await tab.follow(place, page["cursor"])
        assert caught_up == {"type": "following", "place": place, "number": page["cursor"]}


@pytest.mark.parametrize(
    "frame", ["", "[]", "null", '{"type":"follow"}', '{"type":"follow","place":7,"after":"x"}']
)
async def test_a_malformed_frame_gets_an_error_and_keeps_the_connection_open(ada, upstream, frame):
    async with ada.live() as tab:
        await tab._socket.send(frame)
        assert (await tab.next())["type"] == "error"
        await tab.send({"type": "ping"})
        assert await tab.next() == {"type": "pong"}


async def read_until_draft(tab: Any, device: Device, text: str) -> None:
    """Reads until the only draft has this text."""
    while [draft["content"] for draft in device.drafts.values()] != [text]:
        device.take(await tab.next())


async def read_until_turn_end(tab: Any, device: Device) -> None:
    while not any(turn["finished_at"] for turn in device.tables["turn"].values()):
        device.take(await tab.next())
