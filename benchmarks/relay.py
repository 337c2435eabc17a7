"""A bare relay: what Python itself costs between a client and a provider.

The same server, loop and HTTP client that Tertulia stands on, and nothing else: no accounts, no database, no
parsing. Every byte of the answer is passed on as it comes.

    python -m benchmarks.relay PORT UPSTREAM_URL
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import uvicorn

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Relay:
    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        body = await _body(receive)
        if scope["method"] == "GET":
            await _start(send, b"application/json")
            await send({"type": "http.response.body", "body": b"{}"})
            return
        headers = {"Content-Type": "application/json"}
        async with self._client().post(self._upstream + scope["path"], data=body, headers=headers) as answer:
            await _start(send, b"text/event-stream")
            async for data in answer.content.iter_any():
                await send({"type": "http.response.body", "body": data, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None)
            )
        return self._session


async def _body(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


async def _start(send: Send, kind: bytes) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})


if __name__ == "__main__":
    uvicorn.run(
        Relay(sys.argv[2]),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        lifespan="off",
        access_log=False,
        log_level="warning",
        timeout_keep_alive=60,
    )
