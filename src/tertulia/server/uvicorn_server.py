"""uvicorn server: the settings that streams need, timeouts for slow clients, and an orderly shutdown."""

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
from tertulia.server.json_body import SILENCE_S
from tertulia.server.state import ServerState
from tertulia.settings import Settings

UNREAD_TIMEOUT_MS = 60_000
"""A connection is cut when the client has not acknowledged sent data for this long; it can resume later."""

OnStarted = Callable[[ServerState, int], Awaitable[None]]
"""Called with the server state and the port when the server accepts requests."""


def serve(
    settings: Settings, environ: Mapping[str, str], setup_token: str, egress: Egress, on_started: OnStarted
) -> None:
    """Runs the server until a signal stops it."""
    app = build(settings, environ, setup_token, egress)
    server = Server(config(app, lifespan="off"), app, on_started)
    with listen(settings.host, settings.port) as listener:
        server.run(sockets=[listener])


class Server(uvicorn.Server):
    """Opens Tertulia before it listens, and ends the running turns before it closes connections."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, on_started: OnStarted) -> None:
        super().__init__(config)
        self._app = app
        self._on_started = on_started

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Runs the lifespan here, so that its errors are raised; uvicorn would only log them."""
        async with self._app.router.lifespan_context(self._app):
            await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        _relax_garbage_collection()
        if self.started and sockets:
            await self._on_started(self._app.state.server, sockets[0].getsockname()[1])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends the running turns first, so that their streams end too instead of delaying the shutdown."""
        await self._app.state.server.tertulia.turns.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Does not raise the signal again after the shutdown, so that the exit code is 0."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


def _relax_garbage_collection() -> None:
    """Excludes objects made at the start from garbage collection: they live as long as the process."""
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
        # uvicorn would trust these headers from every client on loopback; ServerState.peer decides instead.
        "proxy_headers": False,
        "timeout_keep_alive": 30,
        "timeout_graceful_shutdown": 15,
    }
    return uvicorn.Config(app, **chosen | more)


class HeadTimeoutProtocol(HttpToolsProtocol):
    """uvicorn's protocol with a timeout for the request head, and with the host of an absolute target."""

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
        self._add_target_host()
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

    def _add_target_host(self) -> None:
        """Adds the host of `GET http://host/` as a Host header, so that the origin check sees both."""
        if not self.url.startswith(b"/"):
            host = self.url.partition(b"://")[2].partition(b"/")[0]
            if (b"host", host) not in self.headers:
                self.headers.append((b"host", host))


def listen(host: str, port: int, unread_timeout_ms: int = UNREAD_TIMEOUT_MS) -> socket.socket:
    # asyncio disables Nagle's delay, 40 ms per response, only for sockets created with IPPROTO_TCP.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux only; accepted connections inherit it
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, unread_timeout_ms)
    try:
        listener.bind((host, port))
    except OSError as error:
        raise CannotStart(
            f"Cannot listen on {host}:{port} ({error.strerror}). Choose another with --host or --port."
        ) from None
    return listener
