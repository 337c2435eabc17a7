"""Serving: uvicorn with the settings that streams need, and a word once it answers."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tertulia.core.errors import CannotStart
from tertulia.providers.egress import Egress
from tertulia.server.asgi import build
from tertulia.server.security_middleware import SILENCE_S
from tertulia.server.state import ServerState
from tertulia.settings import Settings

PATIENCE_MS = 60_000
"""How long a client may leave what was sent to it unread before its connection is cut; it can resume."""

Greet = Callable[[ServerState, int], Awaitable[None]]
"""Told the door and the port when the server has begun to answer."""


def serve(
    settings: Settings, environ: Mapping[str, str], setup_token: str, egress: Egress, greet: Greet
) -> None:
    """Runs until a signal ends it."""
    app = build(settings, environ, setup_token, egress)
    server = Server(config(app, lifespan="off"), app, greet)
    with listen(settings.host, settings.port) as listener:
        server.run(sockets=[listener])


class Server(uvicorn.Server):
    """Opens the house before it listens, and ends what is being answered before it closes a connection."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, greet: Greet) -> None:
        super().__init__(config)
        self._app = app
        self._greet = greet

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """What keeps the house from opening is raised as it is; uvicorn would log a trace of it instead."""
        async with self._app.router.lifespan_context(self._app):
            await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        _settle_in()
        if self.started and sockets:
            await self._greet(self._app.state.door, sockets[0].getsockname()[1])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Replies first: their readers hear the end, and no stream is waited for in vain."""
        await self._app.state.door.tertulia.turns.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A signal asks for the end and is not raised again: a server that ended well says so with 0."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


def _settle_in() -> None:
    """What the start made stays to the end: the collector need not walk over it every few messages."""
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def config(app: FastAPI, **more: Any) -> uvicorn.Config:
    chosen: dict[str, Any] = {
        "loop": "uvloop",
        "http": HeadTimeoutProtocol,
        "ws": "websockets-sansio",
        "ws_per_message_deflate": False,
        "ws_max_size": 65_536,
        "ws_ping_interval": 20,
        "ws_ping_timeout": 10,
        "access_log": False,
        "log_config": None,
        "server_header": False,
        # uvicorn would believe these of every peer on loopback; whom to believe is the door's to say.
        "proxy_headers": False,
        "timeout_keep_alive": 30,
        "timeout_graceful_shutdown": 15,
    }
    return uvicorn.Config(app, **chosen | more)


class HeadTimeoutProtocol(HttpToolsProtocol):
    """As uvicorn's, but it does not wait forever for the head of a request, and hears all hosts it names."""

    head_s = SILENCE_S
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait_for_head()

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        self._hear_target()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(self.head_s, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()

    def _hear_target(self) -> None:
        """`GET http://here/ HTTP/1.1` names a host too: where the two differ the guard sees both."""
        if not self.url.startswith(b"/"):
            named = self.url.partition(b"://")[2].partition(b"/")[0]
            if (b"host", named) not in self.headers:
                self.headers.append((b"host", named))


def listen(host: str, port: int, patience_ms: int = PATIENCE_MS) -> socket.socket:
    # asyncio switches off Nagle's delay only for sockets that say they are TCP; it costs 40 ms per answer.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; every connection made through the listener has it too
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, patience_ms)
    try:
        listener.bind((host, port))
    except OSError as error:
        raise CannotStart(
            f"Cannot listen on {host}:{port} ({error.strerror}). Choose another with --host or --port."
        ) from None
    return listener
