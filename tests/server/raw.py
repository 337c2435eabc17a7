"""Raw HTTP requests that no client library would send, as bytes over a TCP connection."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from tests.patience import soon
from tests.world import World


@dataclass(frozen=True)
class RawResponse:
    status: int
    headers: dict[str, str]
    body: bytes


async def send(world: World, request: bytes) -> RawResponse:
    """Sends one request on a new connection and reads the response."""
    host, _, port = world.host.partition(":")
    async with soon():
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(request)
            return await _read_response(reader)
        finally:
            writer.close()


async def _read_response(reader: asyncio.StreamReader) -> RawResponse:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = int(headers.get("content-length", "0"))
    return RawResponse(int(first.split(" ")[1]), headers, await reader.readexactly(length))


def request(
    target: str, *headers: tuple[str, str], method: str = "GET", body: bytes = b"", version: str = "1.1"
) -> bytes:
    lines = [f"{method} {target} HTTP/{version}", *(f"{name}: {value}" for name, value in headers)]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def upgrade(target: str, *headers: tuple[str, str]) -> bytes:
    return request(
        target,
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        *headers,
    )
