"""A client that does not read costs little memory and delays nobody."""

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
"""The most memory that a client may cost that does not read."""


@pytest.mark.slow
async def test_clients_that_stop_reading_delay_nobody_and_cost_little_memory(world, ada, upstream):
    """Forty connections that never read, beside one client that does; the reply has two megabytes."""
    start, finish = asyncio.Event(), asyncio.Event()
    upstream.plays((Hold(start), *[Say(CHUNK)] * CHUNKS, Hold(finish), Finish()))
    opened = await ada.ask("Say it all", "alpha")
    connections = [await open_unread_connection(world, ada, opened, n % 2 == 0) for n in range(SLOW)]
    bytes_before = memory_bytes()
    try:
        start.set()
        async with soon():
            await wait_for_characters(ada, opened, len(CHUNK) * CHUNKS)
        assert memory_bytes() - bytes_before < SLOW * len(CHUNK) * CHUNKS / 2, (
            "all connections share one text"
        )
        finish.set()
        assert await read_to_the_end(ada, opened) == CHUNK * CHUNKS
    finally:
        for connection in connections:
            connection.close()
    live = world.tertulia.live.find(opened["turn"]["id"])
    async with soon():
        while live.watchers:
            await ada.get("/api/me")


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Only Linux disconnects clients that do not read"
)
async def test_clients_that_never_read_are_disconnected_and_can_resume(tmp_path, upstream):
    upstream.plays(says("", chunks=[CHUNK] * CHUNKS))
    environ = {"TERTULIA_ENDPOINTS": endpoints(upstream)}
    async with running(tmp_path, environ, unread_timeout_ms=300) as world:
        ada = await world.set_up()
        opened = await ada.ask("Say it all", "alpha")
        place = f"conversation:{opened['conversation']['id']}"
        connections = [await open_unread_connection(world, ada, opened, n % 2 == 0) for n in range(4)]
        reader = await sign_in_without_timeout(world)
        try:
            text = await read_to_the_end(reader, opened)
            live = world.tertulia.live
            async with soon():
                while live.find(opened["turn"]["id"]).watchers or place in live.feeds.watched():
                    await reader.get("/api/me")
            assert len(text) == len(CHUNK) * CHUNKS
        finally:
            for connection in connections:
                connection.close()
        assert await read_to_the_end(reader, opened) == text


async def sign_in_without_timeout(world: World) -> Person:
    """Signs Ada in on connections with a timeout of an hour, in case this machine is busy."""
    assert world.listener is not None
    world.listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, HOUR_MS)
    return await world.sign_in("ada@example.org")


async def test_a_websocket_that_sends_without_reading_is_paused(world, ada, upstream):
    """Each short frame asks for half a megabyte; the server reads on only when the client reads."""
    opened = await ada.ask("x" * 500_000, "alpha")
    await ada.wait_for_end(opened["turn"]["id"])
    place = f"conversation:{opened['conversation']['id']}"
    bytes_before = memory_bytes()
    connection = await open_unread_connection(world, ada, opened, is_socket=True)
    try:
        follow_frame = frame(json.dumps({"type": "follow", "place": place, "after": 0}).encode())
        async with soon():
            await asyncio.get_running_loop().sock_sendall(connection, follow_frame * 400)
        for _ in range(10):
            [reply] = await ada.ask_and_wait("And the others?", "beta")
            assert reply["status"] == "complete"
        assert memory_bytes() - bytes_before < EACH_BYTES * 8
    finally:
        connection.close()


async def test_a_client_that_missed_more_than_a_page_gets_a_reset(ada, upstream):
    opened = await ada.ask("x" * 900_000, "alpha")
    await ada.wait_for_end(opened["turn"]["id"])
    conversation = opened["conversation"]["id"]
    for _ in range(2):
        await ada.ask_and_wait("x" * 900_000, "alpha", conversation_id=conversation)
    async with ada.live() as tab:
        items = await tab.follow(f"conversation:{conversation}")
        assert [item["type"] for item in items] == ["reset"]


async def wait_for_characters(person: Person, opened, size: int) -> None:
    """Reads until the reply has this many characters."""
    async for event in person.follow(opened["turn"]["id"]):
        size -= len(event.data.get("text", ""))
        if size <= 0:
            return


async def read_to_the_end(person: Person, opened) -> str:
    """Reads the stream to its end and returns the text of all deltas."""
    async with soon():
        events = [event async for event in person.follow(opened["turn"]["id"])]
    return "".join(event.data.get("text", "") for event in events if event.name == "delta")


async def open_unread_connection(world: World, person: Person, opened, is_socket: bool) -> socket.socket:
    """Opens a connection that follows the turn and reads nothing, with the smallest possible buffer."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.setblocking(False)
    host, port = world.host.split(":")
    loop = asyncio.get_running_loop()
    await loop.sock_connect(connection, (host, int(port)))
    cookie = "; ".join(f"{name}={value}" for name, value in person.client.cookies.items())
    head = [f"Host: {world.host}", f"Origin: {world.url}", f"Cookie: {cookie}"]
    if is_socket:
        key = base64.b64encode(os.urandom(16)).decode()
        head = ["GET /api/live HTTP/1.1", *head, "Connection: Upgrade", "Upgrade: websocket"]
        head += ["Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}"]
    else:
        head = [f"GET /api/turns/{opened['turn']['id']}/events HTTP/1.1", *head]
    await loop.sock_sendall(connection, "\r\n".join([*head, "", ""]).encode())
    if is_socket:
        assert b" 101 " in await asyncio.wait_for(loop.sock_recv(connection, 4096), PATIENCE_S)
        place = f"conversation:{opened['conversation']['id']}"
        follow = {"type": "follow", "place": place, "after": 0}
        await loop.sock_sendall(connection, frame(json.dumps(follow).encode()))
    return connection


def frame(payload: bytes) -> bytes:
    """A masked text frame of a WebSocket client; the mask is zero."""
    assert len(payload) < 126
    return bytes([0x81, 0x80 | len(payload), 0, 0, 0, 0]) + payload


def memory_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
