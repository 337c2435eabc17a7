"""A reader that does not read costs little and slows nobody."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S, soon
from tests.upstream.scripted import Finish, Hold, Say, says
from tests.world import Person, World, endpoints, running

SLOW = 40
CHUNK = "x" * 16_384
CHUNKS = 150
HOUR_MS = 3_600_000
EACH_BYTES = 8 << 20
"""The most a reader may cost that does not read."""


@pytest.mark.slow
async def test_readers_that_stop_reading_slow_nobody_and_cost_little(world, ada, upstream):
    """Forty windows and streams that never read a byte, beside one that does; the reply has two megabytes."""
    begun, whole = asyncio.Event(), asyncio.Event()
    upstream.plays((Hold(begun), *[Say(CHUNK)] * CHUNKS, Hold(whole), Finish()))
    opened = await ada.ask("Say it all", "alpha")
    slow = [await deaf(world, ada, opened, n % 2 == 0) for n in range(SLOW)]
    before = memory_bytes()
    try:
        begun.set()
        async with soon():
            await said_so_much(ada, opened, len(CHUNK) * CHUNKS)
        assert memory_bytes() - before < SLOW * len(CHUNK) * CHUNKS / 2, "they share one text"
        whole.set()
        assert await heard_whole(ada, opened) == CHUNK * CHUNKS
    finally:
        for one in slow:
            one.close()
    live = world.tertulia.live.find(opened["turn"]["id"])
    async with soon():
        while live.watchers:
            await ada.get("/api/me")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Only Linux cuts off who does not read")
async def test_readers_that_never_read_are_cut_off_and_can_resume(tmp_path, upstream):
    upstream.plays(says("", chunks=[CHUNK] * CHUNKS))
    environ = {"TERTULIA_ENDPOINTS": endpoints(upstream)}
    async with running(tmp_path, environ, unread_timeout_ms=300) as world:
        ada = await world.first()
        opened = await ada.ask("Say it all", "alpha")
        place = f"conversation:{opened['conversation']['id']}"
        slow = [await deaf(world, ada, opened, n % 2 == 0) for n in range(4)]
        reader = await with_patience(world)
        try:
            text = await heard_whole(reader, opened)
            live = world.tertulia.live
            async with soon():
                while live.find(opened["turn"]["id"]).watchers or place in live.feeds.watched():
                    await reader.get("/api/me")
            assert len(text) == len(CHUNK) * CHUNKS
        finally:
            for one in slow:
                one.close()
        assert await heard_whole(reader, opened) == text


async def with_patience(world: World) -> Person:
    """Ada on connections that wait an hour for her to read: this machine may be busy with other things."""
    assert world.listener is not None
    world.listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, HOUR_MS)
    return await world.sign_in("ada@example.org")


async def test_a_window_that_only_asks_and_never_reads_is_heard_no_further(world, ada, upstream):
    """Half a megabyte for every few bytes it sends would pile up; instead it is heard again when it reads."""
    opened = await ada.ask("x" * 500_000, "alpha")
    await ada.ended(opened["turn"]["id"])
    place = f"conversation:{opened['conversation']['id']}"
    before = memory_bytes()
    window = await deaf(world, ada, opened, is_socket=True)
    try:
        asked = frame(json.dumps({"type": "follow", "place": place, "after": 0}).encode())
        await asyncio.get_running_loop().sock_sendall(window, asked * 400)
        for _ in range(10):
            [reply] = await ada.hear("And the others?", "beta")
            assert reply["status"] == "complete"
        assert memory_bytes() - before < EACH_BYTES * 8
    finally:
        window.close()


async def test_whoever_has_missed_more_than_a_page_holds_is_told_to_read_it_again(ada, upstream):
    opened = await ada.ask("x" * 900_000, "alpha")
    await ada.ended(opened["turn"]["id"])
    conversation = opened["conversation"]["id"]
    for _ in range(2):
        await ada.hear("x" * 900_000, "alpha", conversation_id=conversation)
    async with ada.live() as tab:
        items = await tab.follow(f"conversation:{conversation}")
        assert [item["type"] for item in items] == ["reset"]


async def said_so_much(person: Person, opened, size: int) -> None:
    """Reads on until the reply has this size."""
    async for event in person.follow(opened["turn"]["id"]):
        size -= len(event.data.get("text", ""))
        if size <= 0:
            return


async def heard_whole(person: Person, opened) -> str:
    """What a reader heard that does read, to the end."""
    async with soon():
        events = [event async for event in person.follow(opened["turn"]["id"])]
    return "".join(event.data.get("text", "") for event in events if event.name == "delta")


async def deaf(world: World, person: Person, opened, is_socket: bool) -> socket.socket:
    """A connection that asks for everything and reads none of it, with as small a buffer as can be had."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.setblocking(False)
    host, port = world.host.split(":")
    loop = asyncio.get_running_loop()
    await loop.sock_connect(made, (host, int(port)))
    cookie = "; ".join(f"{name}={value}" for name, value in person.client.cookies.items())
    head = [f"Host: {world.host}", f"Origin: {world.url}", f"Cookie: {cookie}"]
    if is_socket:
        key = base64.b64encode(os.urandom(16)).decode()
        head = ["GET /api/live HTTP/1.1", *head, "Connection: Upgrade", "Upgrade: websocket"]
        head += ["Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}"]
    else:
        head = [f"GET /api/turns/{opened['turn']['id']}/events HTTP/1.1", *head]
    await loop.sock_sendall(made, "\r\n".join([*head, "", ""]).encode())
    if is_socket:
        assert b" 101 " in await asyncio.wait_for(loop.sock_recv(made, 4096), PATIENCE_S)
        place = f"conversation:{opened['conversation']['id']}"
        follow = {"type": "follow", "place": place, "after": 0}
        await loop.sock_sendall(made, frame(json.dumps(follow).encode()))
    return made


def frame(payload: bytes) -> bytes:
    """A masked text frame of a WebSocket client; the mask is zero."""
    assert len(payload) < 126
    return bytes([0x81, 0x80 | len(payload), 0, 0, 0, 0]) + payload


def memory_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
