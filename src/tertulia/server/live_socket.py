"""Live socket: the WebSocket of one tab, which follows topics and receives their events and deltas.

follow ─▶ reset                                    the cursor cannot be served: fetch the page again
       └▶ event* ─▶ draft* ─▶ following ─▶ (draft | delta | waiting | event)* ─▶ gone
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from tertulia.app import Tertulia
from tertulia.core.users import Actor
from tertulia.engine.wake_up import WakeUp
from tertulia.server.live_frames import PONG, SIGNED_OUT, UNKNOWN_MESSAGE, FrameBuilder, gone_item
from tertulia.server.live_permissions import CHECK_INTERVAL_S, LivePermissions
from tertulia.server.live_subscriptions import Subscriptions

FRAME_S = 0.033
HEARTBEAT_S = 15.0
OUTBOX_CHARS = 4 << 20
"""While a tab has not read this much of its replies, its further messages are not received."""
MESSAGE_LIMIT = 4096
CLOSED_SIGNED_OUT = 4401
CLOSED_GOING_AWAY = 1001


class LiveSocket:
    frame_s: ClassVar[float] = FRAME_S

    def __init__(self, socket: WebSocket, tertulia: Tertulia, actor: Actor) -> None:
        self._socket = socket
        self._tertulia = tertulia
        self._something_new = WakeUp()
        self._outbox_taken = WakeUp()
        self._permissions = LivePermissions(tertulia, actor, self._something_new.wake)
        self._subscriptions = Subscriptions(tertulia, actor, self._something_new.wake)
        self._outbox: list[str] = []
        self._sent_at = tertulia.dependencies.monotonic()
        self._is_signed_out = False

    async def run(self) -> None:
        """Receives and sends until either ends: the connection is over then."""
        parts = (self._receive_messages(), self._send_frames(), self._tick())
        tasks = [asyncio.create_task(part) for part in parts]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            self._subscriptions.close()
            self._permissions.close()
        self._report(results)
        await self._close()

    def _report(self, results: Sequence[BaseException | None]) -> None:
        """Reports unexpected errors. A client that disconnects is not one."""
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, WebSocketDisconnect | RuntimeError):
                self._tertulia.dependencies.report(result)

    async def _close(self) -> None:
        if self._socket.application_state is WebSocketState.CONNECTED:
            with suppress(RuntimeError, WebSocketDisconnect):
                await self._socket.close(CLOSED_SIGNED_OUT if self._is_signed_out else CLOSED_GOING_AWAY)

    # ── receiving

    async def _receive_messages(self) -> None:
        while (message := await self._socket.receive())["type"] == "websocket.receive":
            await self._handle(message.get("text") or "")
            while sum(map(len, self._outbox)) > OUTBOX_CHARS:
                await self._outbox_taken.wait()

    async def _handle(self, text: str) -> None:
        message = _parse(text)
        match message.get("type"), message.get("place"), message.get("after"):
            case "follow", str(topic), int(after):
                self._enqueue(*await self._subscriptions.follow(topic, after))
            case "leave", str(topic), _:
                self._subscriptions.leave(topic)
            case "ping", _, _:
                self._enqueue(PONG)
            case _:
                self._enqueue(UNKNOWN_MESSAGE)

    def _enqueue(self, *items: str) -> None:
        self._outbox.extend(items)
        self._something_new.wake()

    # ── sending

    async def _send_frames(self) -> None:
        """Sends at most one frame with deltas per `frame_s`; the deltas in between join the next frame."""
        while not self._is_signed_out:
            await self._something_new.wait()
            await self._check_permissions()
            frame = FrameBuilder(self._take_outbox())
            await self._subscriptions.collect(frame)
            if frame.items or self._tertulia.dependencies.monotonic() - self._sent_at >= HEARTBEAT_S:
                self._sent_at = self._tertulia.dependencies.monotonic()
                await self._socket.send_text(f"[{','.join(frame.items)}]")
            if frame.has_deltas:
                await asyncio.sleep(
                    self.frame_s
                )  # the first delta was sent at once; the next ones can be joined

    async def _tick(self) -> None:
        """Wakes the sender, so that permissions and heartbeat are due even when nothing happens."""
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            self._something_new.wake()

    async def _check_permissions(self) -> None:
        if not self._permissions.are_due:
            return
        revoked = await self._permissions.check(self._subscriptions.topics)
        for topic in self._subscriptions.topics if revoked.is_signed_out else revoked.topics:
            self._subscriptions.leave(topic)
            self._enqueue(gone_item(topic, "not_found"))
        if revoked.is_signed_out:
            self._is_signed_out = True
            self._outbox = [SIGNED_OUT]

    def _take_outbox(self) -> list[str]:
        items, self._outbox = self._outbox, []
        self._outbox_taken.wake()
        return items


def _parse(text: str) -> dict[str, Any]:
    """The client's message; empty if it is not a JSON object or is too long."""
    if len(text) > MESSAGE_LIMIT:
        return {}
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}
