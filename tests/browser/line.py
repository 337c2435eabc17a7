"""The line between a browser and the server: it can be cut and mended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class Line:
    def __init__(self, server: str) -> None:
        self._server = urlsplit(server)
        self._pairs: set[asyncio.Task[None]] = set()
        self._is_cut = False
        self._listening: asyncio.Server

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listening.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        """Hangs up on everyone, and takes no call until it is mended."""
        self._is_cut = True
        for pair in tuple(self._pairs):
            pair.cancel()

    def mend(self, server: str | None = None) -> None:
        """Takes calls again, perhaps for another server."""
        if server is not None:
            self._server = urlsplit(server)
        self._is_cut = False

    async def open(self) -> None:
        self._listening = await asyncio.start_server(self._called, "127.0.0.1", 0)

    async def close(self) -> None:
        self.cut()
        self._listening.close()
        await asyncio.gather(*self._pairs, return_exceptions=True)

    async def _called(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pair = asyncio.current_task()
        assert pair is not None
        self._pairs.add(pair)
        try:
            if not self._is_cut:
                await self._connect(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._pairs.discard(pair)
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far, there = await asyncio.open_connection(self._server.hostname, self._server.port)
        try:
            await asyncio.gather(_carry(reader, there), _carry(far, writer))
        finally:
            there.transport.abort()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


@asynccontextmanager
async def line_to(server: str) -> AsyncIterator[Line]:
    line = Line(server)
    await line.open()
    try:
        yield line
    finally:
        await line.close()
