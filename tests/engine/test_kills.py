"""Kills of a real server: nothing acknowledged is lost or duplicated, and stored text is kept."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import httpx2
import pytest

from tests.device import Device
from tests.engine.serving import Sender, Sent, Served, served
from tests.patience import PATIENCE_S, soon, until
from tests.upstream.scripted import Finish, Hold, Pause, Say, Stall, Upstream, says
from tests.world import Person, World, endpoints

SEED = 20261116
WORDS = [f"word-{n} " for n in range(400)]
SCRIPTED = ("".join(WORDS), "Almost done.", "Going on")
PACE_S = 0.01
TERMINAL = {"complete", "stopped", "interrupted", "failed"}


@pytest.fixture
async def server(tmp_path: Path, upstream: Upstream):
    async with served(tmp_path, {"TERTULIA_ENDPOINTS": endpoints(upstream)}) as made:
        yield made


@pytest.fixture
async def ada(server: Served) -> Sender:
    sender = Sender(server)
    await sender.set_up()
    return sender


@pytest.mark.slow
async def test_a_kill_at_any_moment_loses_and_doubles_nothing(
    server: Served, ada: Sender, upstream: Upstream
):
    """Twelve kills, each at a random moment of a named stage of a turn; the server is started again."""
    print(f"seed {SEED}")
    chance = random.Random(SEED)
    for number, stage in enumerate([*STAGES] * 3):
        upstream.plays(says("", chunks=WORDS, pace=PACE_S))
        earlier = await ada.send(f"Earlier {number}", "alpha")
        await STAGES[stage](server, ada, upstream, chance, f"{stage} {number}")
        assert server.is_sound(), stage
        await server.start()
        asked = len(upstream.requests)
        for sent in ada.sent:
            await check(ada, sent, stage)
        assert len(upstream.requests) == asked, f"{stage}: looking and sending again asked a provider again"
        assert earlier.opened is not None
        await send_again_what_was_lost(ada, upstream)
        ada.sent.clear()


async def before_the_answer(
    server: Served, ada: Sender, upstream: Upstream, chance: random.Random, name: str
):
    """Kills between the first byte of the request and the last of the response."""
    sending = [asyncio.create_task(ada.send(f"{name} {n}", "alpha", "beta")) for n in range(3)]
    await asyncio.sleep(chance.uniform(0, 0.05))
    await server.kill()
    await asyncio.gather(*sending)


async def after_the_answer(server: Served, ada: Sender, upstream: Upstream, chance: random.Random, name: str):
    sent = await ada.send(name, "alpha", "beta")
    assert sent.opened is not None
    await server.kill()


async def mid_stream(server: Served, ada: Sender, upstream: Upstream, chance: random.Random, name: str):
    """Kills after every voice has a stored draft, at any moment between two writes."""
    upstream.plays((*says("", chunks=WORDS, pace=PACE_S)[:-1], Stall()))
    sent = await ada.send(name, "alpha", "beta")
    listening = asyncio.create_task(ada.listen(sent))
    await until(lambda: sum(map(bool, server.written(sent.id).values())) == 2)
    await asyncio.sleep(chance.uniform(0, 1.0))
    sent.written = server.written(sent.id)
    await server.kill()
    await listening
    upstream.plays(says("", chunks=WORDS, pace=PACE_S))


async def around_the_end(server: Served, ada: Sender, upstream: Upstream, chance: random.Random, name: str):
    """Kills before, during or after the commit of one reply while another is being written."""
    last = asyncio.Event()
    upstream.plays((Say("Almost "), Hold(last), Say("done."), Finish()), model="alpha")
    upstream.plays((Say("Going on"), Stall()), model="beta")
    sent = await ada.send(name, "alpha", "beta")
    await ada.listen(sent, Sent.has_heard)
    last.set()
    await asyncio.sleep(chance.uniform(0, 0.05))
    await server.kill()
    upstream.plays(says("", chunks=WORDS, pace=PACE_S), model="alpha")
    upstream.plays(says("", chunks=WORDS, pace=PACE_S), model="beta")


STAGES = {
    "before the answer": before_the_answer,
    "after the answer": after_the_answer,
    "mid-stream": mid_stream,
    "around the end": around_the_end,
}


async def check(ada: Sender, sent: Sent, stage: str) -> None:
    """Compares the state after the restart with the sender's record, from the first response on."""
    if sent.opened is None and not await is_there(ada, sent):
        return  # never acknowledged, never written: as good as never sent
    turn_ = await ada.get(f"/api/turns/{sent.id}")
    assert turn_["state"] in TERMINAL, f"{stage}: a turn is left running"
    stored = await ada.messages(sent)
    questions = [message for message in stored if message["role"] == "user"]
    assert [question["content"] for question in questions] == [sent.body["text"]], f"{stage}: exactly once"
    replies = [message for message in stored if message["role"] != "user"]
    assert len(replies) == len(sent.body["voices"]), f"{stage}: one reply per voice"
    for reply in replies:
        assert reply["status"] in TERMINAL
        assert reply["status"] != "interrupted" or reply["failure"]["code"] == "restarted"
        assert reply["content"].startswith(sent.written.get(reply["id"], "")), stage
        assert any(text.startswith(reply["content"]) for text in SCRIPTED), f"{stage}: words nobody said"
    if sent.opened is not None:
        assert questions[0]["id"] == sent.opened["message"]["id"]
        again = await ada.resend(sent)
        assert again["turn"] == turn_, f"{stage}: sending it again changes nothing"
        assert await ada.messages(sent) == stored


async def is_there(ada: Sender, sent: Sent) -> bool:
    async with ada.client() as client:
        return (await client.get(f"/api/turns/{sent.id}")).status_code == 200


async def send_again_what_was_lost(ada: Sender, upstream: Upstream) -> None:
    """Sends the requests without a response again; each turn exists once."""
    upstream.says("At last.")
    for sent in [one for one in ada.sent if one.opened is None]:
        await ada.resend(sent)
        await ada.listen(sent)
        stored = await ada.messages(sent)
        assert len([message for message in stored if message["role"] == "user"]) == 1
        assert (await ada.get(f"/api/turns/{sent.id}"))["state"] in TERMINAL
    upstream.plays(says("", chunks=WORDS, pace=PACE_S))


@pytest.mark.slow
async def test_a_terminated_server_stores_every_reply_with_the_reason_and_exits_with_zero(
    server: Served, ada: Sender, upstream: Upstream
):
    upstream.plays((Say("So far "), Pause(0.01), Say("so good"), Stall()))
    sent = [await ada.send(f"Number {n}", "alpha", "beta", "gamma") for n in range(6)]
    await asyncio.gather(*(ada.listen(one, lambda s: s.has_heard("so good")) for one in sent))
    waiting = await ada.send("In line", "alpha", conversation_id=sent[0].opened["conversation"]["id"])
    listening = [asyncio.create_task(ada.listen(one)) for one in (*sent, waiting)]
    person = Person(World(None, server.url, server.home), httpx2.AsyncClient(cookies=ada._cookies))  # type: ignore[arg-type]
    place = f"conversation:{sent[0].opened['conversation']['id']}"
    device = Device(cursors={place: 0})
    async with person.client, person.live() as tab:
        device.take(*await tab.follow(place))
        assert await server.terminate() == 0
        await asyncio.wait_for(tab.closed(), PATIENCE_S)
    await asyncio.gather(*listening)
    await server.start()
    for one in sent:
        assert (await ada.get(f"/api/turns/{one.id}"))["state"] == "interrupted"
        replies = [message for message in await ada.messages(one) if message["role"] != "user"]
        assert len(replies) == 3
        for reply in replies:
            assert reply["status"] == "interrupted"
            assert reply["failure"]["code"] == "restarted"
            assert reply["content"].startswith("So far")
    assert (await ada.get(f"/api/turns/{waiting.id}"))["state"] == "interrupted"
    person = Person(World(None, server.url, server.home), httpx2.AsyncClient(cookies=ada._cookies))  # type: ignore[arg-type]
    async with person.client, person.live() as tab:
        device.take(*await tab.follow(place, device.cursors[place]))
    assert device.wishes == []
    assert device.drafts == {}
    assert {m["status"] for m in device.tables["message"].values()} == {"complete", "interrupted"}


@pytest.mark.slow
async def test_a_second_server_on_the_same_folder_is_refused_with_a_sentence(server: Served, ada: Sender):
    second = await server.run()
    async with soon():
        _, said = await second.communicate()
    assert second.returncode == 1
    assert b"Traceback" not in said
    told = said.decode()
    assert told.startswith("database_in_use Another Tertulia (process ")
    assert told.strip().endswith("Stop it first, or give this one another data folder.")
    assert (await ada.get("/api/me"))["user"]["name"] == "Ada"
