"""Incomplete requests: their connections are closed and delay no other client (LO 7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import uvicorn

from tertulia.server.security_middleware import SecurityMiddleware
from tertulia.server.uvicorn_server import HeadTimeoutProtocol, config, listen
from tests.patience import soon, until

HOUR_S = 3600.0


class TimedProtocol(HeadTimeoutProtocol):
    """The protocol with a timeout that the test sets: an hour or zero."""

    head_s = HOUR_S


async def hello(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"hi"})


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """The port of a server with timeouts of an hour."""
    async with serving_on(HOUR_S) as port:
        yield port


@asynccontextmanager
async def serving_on(silence_s: float) -> AsyncIterator[int]:
    app: Any = SecurityMiddleware(hello, {"localhost"}, "", silence_s=silence_s)
    server = uvicorn.Server(
        config(app, loop="asyncio", http=TimedProtocol, lifespan="off", timeout_graceful_shutdown=1)
    )
    with listen("127.0.0.1", 0) as socket_:
        serving = asyncio.create_task(server.serve(sockets=[socket_]))
        await until(lambda: server.started)
        yield int(socket_.getsockname()[1])
        server.should_exit = True
        await serving


GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nContent-Length: 10\r\n\r\n"


@pytest.mark.parametrize(
    "head",
    [b"", b"GET", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "],
    ids=["nothing", "a word", "half a head"],
)
async def test_an_incomplete_request_head_is_cut_off(
    port: int, head: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TimedProtocol, "head_s", 0.0)
    async with opened(port) as (reader, writer):
        writer.write(head)
        assert await rest(reader) == b""


async def test_an_incomplete_second_request_head_is_cut_off(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(port) as (reader, writer):
        writer.write(GET)
        assert b" 200 " in await reader.readline()
        monkeypatch.setattr(TimedProtocol, "head_s", 0.0)
        writer.write(b"GET / HTTP/1.1\r\nHost:")
        assert b"200 OK" not in await rest(reader)


async def test_an_incomplete_body_is_refused() -> None:
    async with serving_on(0.0) as port, opened(port) as (reader, writer):
        writer.write(POST + b"12345")
        assert b" 400 " in await reader.readline()


async def test_a_request_head_in_pieces_is_read(port: int) -> None:
    async with opened(port) as (reader, writer):
        for piece in (GET[:9], GET[9:30], GET[30:]):
            writer.write(piece)
            await writer.drain()
        assert b" 200 " in await reader.readline()


async def test_two_hundred_incomplete_requests_delay_no_other_client(port: int) -> None:
    async with AsyncExitStack() as clients:
        waiting = [await clients.enter_async_context(opened(port)) for _ in range(200)]
        for _, writer in waiting:
            writer.write(GET[:20])
        async with opened(port) as (reader, writer):
            writer.write(GET)
            assert b" 200 " in await reader.readline()


@asynccontextmanager
async def opened(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    async with soon():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            yield reader, writer
        finally:
            writer.close()


async def rest(reader: asyncio.StreamReader) -> bytes:
    """All bytes until the server closes the connection."""
    received = b""
    try:
        while data := await reader.read(4096):
            received += data
    except ConnectionError:
        pass
    return received
