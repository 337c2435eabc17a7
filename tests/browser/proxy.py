"""TCP proxy between a browser and the server, whose connections a test can cut and restore."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class Proxy:
    def __init__(self, server: str) -> None:
        self._server = urlsplit(server)
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_cut = False
        self._listener: asyncio.Server

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        """Closes every connection and refuses new ones until `restore`."""
        self._is_cut = True
        for task in tuple(self._tasks):
            task.cancel()

    def restore(self, server: str | None = None) -> None:
        """Accepts connections again, optionally to another server."""
        if server is not None:
            self._server = urlsplit(server)
        self._is_cut = False

    async def open(self) -> None:
        self._listener = await asyncio.start_server(self._on_connection, "127.0.0.1", 0)

    async def close(self) -> None:
        self.cut()
        self._listener.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if not self._is_cut:
                await self._connect(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(self._server.hostname, self._server.port)
        try:
            await asyncio.gather(_copy(reader, server_writer), _copy(server_reader, writer))
        finally:
            server_writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


@asynccontextmanager
async def proxy_to(server: str) -> AsyncIterator[Proxy]:
    proxy = Proxy(server)
    await proxy.open()
    try:
        yield proxy
    finally:
        await proxy.close()
