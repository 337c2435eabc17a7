"""Whoever was cut off comes back and misses nothing: not a byte of a reply, not an event, not the end."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import aclosing
from typing import Any

import pytest

from tests.device import Device
from tests.patience import soon
from tests.stories.listening import said
from tests.upstream.scripted import Cut, Finish, Hold, Say, Stall, refuses, says
from tests.world import Person, endpoints, running

RUNS = 24
AT_ONCE = 8
"""As many rounds as one person may have unfinished."""
LETTERS = 'aé日👩\u202e\n"\\ :'


def chunks_of(chance: random.Random) -> list[str]:
    return [
        "".join(chance.choices(LETTERS, k=chance.randint(1, 9))) + "." for _ in range(chance.randint(20, 60))
    ]


class Joined:
    """A reader's own record: the text of each reply, and every number it was told."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.marks: list[str] = []
        self.is_over = False

    def take(self, mark: str, name: str, value: Any) -> None:
        assert name != "snapshot", "a reader with a good mark is told what it missed, not everything again"
        self.marks.append(mark)
        if name in ("delta", "chunk"):
            self.texts[value["reply_id"]] = self.texts.get(value["reply_id"], "") + value.get("text", "")
        self.is_over = name == "ended" or (name == "done" and "turn" in value)

    @property
    def numbers(self) -> list[int]:
        return [int(mark.rpartition(".")[2]) for mark in self.marks]


async def read_with_cuts(person: Person, turn_id: str, chance: random.Random, accept: str) -> Joined:
    """Reads some bytes, hangs up, forgets the frame that was cut, comes back with the last mark."""
    joined = Joined()
    async with soon():
        while not joined.is_over:
            last = joined.marks[-1] if joined.marks else ""
            ndjson = accept == "application/x-ndjson"
            path = f"/api/turns/{turn_id}/events" + (f"?after={last}" if ndjson else "")
            headers = {"Accept": accept} | ({} if ndjson else {"Last-Event-ID": last})
            take = read_lines if ndjson else read_frames
            async with person.client.stream("GET", path, headers=headers) as response:
                assert response.status_code == 200
                take(await some_bytes(response, chance), joined)
    return joined


async def some_bytes(response: Any, chance: random.Random) -> bytes:
    enough = chance.choice([0, 1, 200, 1500, 6000, 1 << 30])
    data = b""
    async with aclosing(response.aiter_bytes()) as pieces:
        async for piece in pieces:
            data += piece
            if len(data) >= enough:
                return data[: chance.randint(0, len(data))]
    return data


def read_frames(data: bytes, joined: Joined) -> None:
    *frames, _cut = data.split(b"\n\n")
    for frame in frames:
        lines = dict(line.split(": ", 1) for line in frame.decode().split("\n") if not line.startswith(":"))
        if lines:
            joined.take(lines["id"], lines["event"], json.loads(lines["data"]))


def read_lines(data: bytes, joined: Joined) -> None:
    *lines, _cut = data.split(b"\n")
    for line in filter(None, lines):
        value = json.loads(line)
        joined.take(value["after"], value["type"], value)


def has_ended(device: Device) -> bool:
    return any(turn["finished_at"] for turn in device.tables["turn"].values())


async def follow_with_cuts(person: Person, conversation_id: str, chance: random.Random) -> Device:
    """A tab that loses its socket again and again, and each time goes on from its cursor."""
    place = f"conversation:{conversation_id}"
    device = Device(cursors={place: 0})
    async with soon():
        while not has_ended(device):
            frames = chance.randint(0, 12)
            async with person.live() as tab:
                await tab.send({"type": "follow", "place": place, "after": device.cursors[place]})
                while frames and not has_ended(device):
                    device.take(await tab.next())
                    frames -= 1
    return device


@pytest.mark.slow
@pytest.mark.parametrize("accept", ["text/event-stream", "application/x-ndjson"], ids=["sse", "ndjson"])
async def test_a_stream_cut_at_random_bytes_joins_to_the_stored_text(world, ada, upstream, accept, request):
    async def run(seed: int) -> None:
        chance = random.Random(seed)
        opened = await ada.ask(f"Run {seed}", "alpha", "beta")
        turn_id = opened["turn"]["id"]
        joined = await read_with_cuts(ada, turn_id, chance, accept)
        replies = await ada.replies(opened["conversation"]["id"], 1)
        assert joined.texts == {reply["id"]: reply["content"] for reply in replies}, f"seed {seed}"
        assert joined.numbers == sorted(set(joined.numbers)), f"seed {seed}: a repeat"
        live = world.tertulia.live.find(turn_id)
        assert joined.numbers[-1] == live.number, f"seed {seed}: a gap before the end"

    first = random.Random(request.node.name).randrange(1 << 30)
    print(f"seeds {first} to {first + RUNS // 2 - 1}")
    chunks = chunks_of(random.Random(first))
    upstream.plays(says("", chunks=chunks, pace=0.004))
    for begin in range(first, first + RUNS // 2, AT_ONCE):
        await asyncio.gather(*(run(seed) for seed in range(begin, min(begin + AT_ONCE, first + RUNS // 2))))


@pytest.mark.slow
async def test_a_socket_lost_at_random_moments_shows_the_stored_text(ada, upstream):
    async def run(seed: int) -> None:
        opened = await ada.ask(f"Run {seed}", "alpha", "beta")
        conversation = opened["conversation"]["id"]
        device = await follow_with_cuts(ada, conversation, random.Random(seed))
        page = await ada.get(f"/api/conversations/{conversation}")
        stored = {message["id"]: message for message in page["rounds"][0]["messages"]}
        assert device.tables["message"] == stored, f"seed {seed}"
        assert device.drafts == {}, f"seed {seed}"
        assert device.wishes == [], f"seed {seed}: something was missing on the way"

    upstream.plays(says("", chunks=chunks_of(random.Random(3)), pace=0.004))
    for begin in range(0, RUNS, AT_ONCE):
        await asyncio.gather(*(run(seed) for seed in range(begin, begin + AT_ONCE)))


async def test_a_draft_and_its_deltas_are_the_text_so_far_at_every_moment(ada, upstream):
    """Two tabs: one from the beginning, one that comes in the middle; both hold the same words."""
    middle, end = asyncio.Event(), asyncio.Event()
    upstream.plays(
        (Say("One, "), Say("two, "), Hold(middle), Say("three, "), Hold(end), Say("four."), Finish())
    )
    opened = await ada.ask("Count", "alpha")
    place = f"conversation:{opened['conversation']['id']}"
    early, late = Device(cursors={place: 0}), Device(cursors={place: 0})
    async with ada.live() as one, ada.live() as two:
        early.take(*await one.follow(place))
        await text_of(one, early, "One, two, ")
        late.take(*await two.follow(place))
        await text_of(two, late, "One, two, ")
        middle.set()
        await text_of(one, early, "One, two, three, ")
        await text_of(two, late, "One, two, three, ")
        assert early.drafts == late.drafts
        end.set()
        await ended(one, early)
        await ended(two, late)
    assert early.tables["message"] == late.tables["message"]
    assert [m["content"] for m in late.tables["message"].values()][-1] == "One, two, three, four."


@pytest.mark.parametrize(
    "wrong",
    ["{turn}.999999", "{turn}.-1", "-1", "7", "999999999999", "everything", "{turn}.9999999999", "{other}.3"],
)
@pytest.mark.parametrize("how", ["header", "query"])
async def test_a_mark_from_nowhere_is_answered_with_everything_as_it_stands(ada, upstream, wrong, how):
    held = asyncio.Event()
    upstream.plays((Say("So far"), Hold(held), Say(" and further."), Finish()))
    opened = await ada.ask("Talk", "alpha")
    turn_id = opened["turn"]["id"]
    await said(ada, turn_id, "So far")
    mark = wrong.format(turn=turn_id, other="01JD0000000000000000000000")
    headers = {"Last-Event-ID": mark} if how == "header" else {}
    path = f"/api/turns/{turn_id}/events" + (f"?after={mark}" if how == "query" else "")
    joined, frames = "", []
    async with soon(), ada.client.stream("GET", path, headers=headers) as response:
        async for line in response.aiter_lines():
            if line.startswith("event: "):
                frames.append(line.removeprefix("event: "))
            if line.startswith("data: "):
                value = json.loads(line.removeprefix("data: "))
                if frames[-1] == "snapshot":
                    joined = value["drafts"][0]["content"]
                    held.set()
                joined += value.get("text", "")
    assert frames[0] == "snapshot"
    assert frames[-1] == "ended"
    assert joined == "So far and further."


async def test_a_mark_that_is_far_too_long_is_refused(ada, upstream):
    opened = await ada.ask("Talk", "alpha")
    await ada.ended(opened["turn"]["id"])
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
async def test_whoever_comes_late_is_told_the_end_and_the_stream_closes(ada, upstream, script, state, status):
    upstream.plays(script)
    opened = await ada.ask("Talk", "alpha")
    whole = await ada.ended(opened["turn"]["id"])
    async with soon():
        late = [event async for event in ada.follow(opened["turn"]["id"], after=whole[1].id)]
        nothing_new = [event async for event in ada.follow(opened["turn"]["id"], after=whole[-1].id)]
    assert late == whole[2:]
    assert nothing_new == []
    assert (whole[-1].name, whole[-1].data["state"]) == ("ended", state)
    assert whole[-2].data["status"] == status


async def test_after_a_restart_the_end_is_told_as_it_is_stored(tmp_path, upstream):
    """The marks of the old run mean nothing now; nobody is left waiting for what cannot come."""
    upstream.plays((Say("Half a"), Stall()), says("Whole."))
    environ = {"TERTULIA_ENDPOINTS": endpoints(upstream)}
    async with running(tmp_path, environ) as world:
        ada = await world.first()
        broken = await ada.ask("Talk", "alpha")
        await said(ada, broken["turn"]["id"], "Half a")
        whole = await ada.ask("Talk", "beta")
        marks = [event.id for event in await ada.ended(whole["turn"]["id"])]
    async with running(tmp_path, environ) as again:
        ada = await again.sign_in("ada@example.org")
        for opened, state, content in (
            (broken, "interrupted", "Half a"),
            (whole, "complete", "Whole."),
        ):
            for mark in ("", marks[1], f"{opened['turn']['id']}.3"):
                async with soon():
                    [event] = [event async for event in ada.follow(opened["turn"]["id"], after=mark)]
                assert event.name == "snapshot"
                assert event.data["turn"]["state"] == state
                assert [message["content"] for message in event.data["messages"]] == [content]


async def test_a_tab_resumes_over_a_restart_without_a_gap(tmp_path, upstream):
    upstream.plays((Say("Half a"), Stall()), says("Whole."))
    environ = {"TERTULIA_ENDPOINTS": endpoints(upstream)}
    async with running(tmp_path, environ) as world:
        ada = await world.first()
        opened = await ada.ask("Talk", "alpha")
        place = f"conversation:{opened['conversation']['id']}"
        device = Device(cursors={place: 0})
        async with ada.live() as tab:
            device.take(*await tab.follow(place))
            await text_of(tab, device, "Half a")
    async with running(tmp_path, environ) as again:
        ada = await again.sign_in("ada@example.org")
        async with ada.live() as tab:
            device.take(*await tab.follow(place, device.cursors[place]))
    assert device.wishes == []
    assert device.drafts == {}
    assert [(m["content"], m["status"]) for m in device.tables["message"].values()] == [
        ("Talk", "complete"),
        ("Half a", "interrupted"),
    ]


@pytest.mark.parametrize("after", [-1, 10_000, 1 << 70])
async def test_a_cursor_that_cannot_be_served_is_told_to_read_afresh(ada, upstream, after):
    opened = await ada.ask("Talk", "alpha")
    await ada.ended(opened["turn"]["id"])
    place = f"conversation:{opened['conversation']['id']}"
    async with ada.live() as tab:
        assert await tab.follow(place, after) == [{"type": "reset", "place": place}]
        page = await ada.get(f"/api/conversations/{opened['conversation']['id']}")
        [caught_up] = await tab.follow(place, page["cursor"])
        assert caught_up == {"type": "following", "place": place, "number": page["cursor"]}


@pytest.mark.parametrize(
    "nonsense", ["", "[]", "null", '{"type":"follow"}', '{"type":"follow","place":7,"after":"x"}']
)
async def test_a_tab_that_talks_nonsense_is_told_so_and_stays(ada, upstream, nonsense):
    async with ada.live() as tab:
        await tab._socket.send(nonsense)
        assert (await tab.next())["type"] == "error"
        await tab.send({"type": "ping"})
        assert await tab.next() == {"type": "pong"}


async def text_of(tab: Any, device: Device, text: str) -> None:
    """Reads until the one draft says this."""
    while [draft["content"] for draft in device.drafts.values()] != [text]:
        device.take(await tab.next())


async def ended(tab: Any, device: Device) -> None:
    while not any(turn["finished_at"] for turn in device.tables["turn"].values()):
        device.take(await tab.next())
