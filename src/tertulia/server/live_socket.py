"""One live connection: what its tab follows, and how far it has read.

follow ─▶ reset                                    the cursor cannot be served: fetch the page again
       └▶ event* ─▶ draft* ─▶ following ─▶ (draft | delta | waiting | event)* ─▶ gone
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from tertulia.app import Tertulia
from tertulia.core.errors import TertuliaError
from tertulia.core.events import Event
from tertulia.core.serialization import to_json
from tertulia.core.users import Actor
from tertulia.engine.topic_feeds import TopicFeed
from tertulia.engine.turn_events import Delta, ReplyStarted, RetryScheduled, TurnEvent, anonymised
from tertulia.engine.wake_up import WakeUp
from tertulia.server.live_permissions import LOOK_AGAIN_S, LivePermissions
from tertulia.store import events
from tertulia.store.database import Tx

FRAME_S = 0.033
HEARTBEAT_S = 15.0
PLACES_LIMIT = 64
OUTBOX_CHARS = 4 << 20
"""A tab that asks for more than this and does not read it is heard no further."""
MESSAGE_LIMIT = 4096
LOG_PAGE = 100
MISSED_LIMIT = 1000
MISSED_CHARS = 2 << 20
"""Whoever has missed more than this reads the page again, which is shorter."""
SIGNED_OUT = 4401
GOING_AWAY = 1001


@dataclass(slots=True)
class Subscription:
    place: TopicFeed
    cursor: int
    turns: dict[str, int] = field(default_factory=dict)
    """How far the log of each running turn was sent."""

    @property
    def conversation_id(self) -> str | None:
        kind, _, conversation_id = self.place.name.partition(":")
        return conversation_id if kind == "conversation" else None


class LiveSocket:
    def __init__(self, socket: WebSocket, tertulia: Tertulia, actor: Actor) -> None:
        self._socket = socket
        self._tertulia = tertulia
        self._actor = actor
        self._bell = WakeUp()
        self._taken = WakeUp()
        self._rights = LivePermissions(tertulia, actor, self._bell.wake)
        self._followed: dict[str, Subscription] = {}
        self._outbox: list[str] = []
        self._spoke_at = tertulia.dependencies.monotonic()
        self._is_signed_out = False

    async def run(self) -> None:
        """Hears and speaks until either is over: one without the other is no connection."""
        parts = (self._hear_all(), self._speak(), self._tick())
        tasks = [asyncio.create_task(part) for part in parts]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            for place in tuple(self._followed):
                self._leave(place)
            self._rights.close()
        self._report(ends)
        await self._close()

    def _report(self, ends: Sequence[BaseException | None]) -> None:
        """A client that goes away in the middle of a word is no incident."""
        for end in ends:
            if isinstance(end, Exception) and not isinstance(end, WebSocketDisconnect | RuntimeError):
                self._tertulia.dependencies.report(end)

    async def _close(self) -> None:
        if self._socket.application_state is WebSocketState.CONNECTED:
            with suppress(RuntimeError, WebSocketDisconnect):
                await self._socket.close(SIGNED_OUT if self._is_signed_out else GOING_AWAY)

    # ── what the tab says

    async def _hear_all(self) -> None:
        while (message := await self._socket.receive())["type"] == "websocket.receive":
            await self._hear(message.get("text") or "")
            while sum(map(len, self._outbox)) > OUTBOX_CHARS:
                await self._taken.wait()

    async def _hear(self, text: str) -> None:
        said = _parsed(text)
        match said.get("type"), said.get("place"), said.get("after"):
            case "follow", str(place), int(after):
                await self._follow(place, after)
            case "leave", str(place), _:
                self._leave(place)
            case "ping", _, _:
                self._say('{"type":"pong"}')
            case _:
                self._say('{"type":"error","message":"follow, leave or ping"}')

    async def _follow(self, place: str, after: int) -> None:
        """Watches first and reads then, so that nothing falls between."""
        if len(self._followed) >= PLACES_LIMIT and place not in self._followed:
            self._say_gone(place, "too_many")
            return
        self._leave(place)
        watched = self._tertulia.live.feeds.watch(place, self._bell.wake)
        try:
            missed = await self._tertulia.db.read(lambda tx: _missed(tx, self._actor, place, after))
        except TertuliaError:
            missed = None
        if missed is None:
            self._unwatch(place)
            self._say_gone(place, "not_found")
            return
        if missed.is_reset:
            self._unwatch(place)
            self._say(to_json({"type": "reset", "place": place}))
            return
        followed = self._followed[place] = Subscription(watched, missed.number)
        for event in missed.events:
            self._say(_event(event))
        if followed.conversation_id:
            self._snapshot(followed, followed.conversation_id)
        self._say(to_json({"type": "following", "place": place, "number": missed.number}))

    def _snapshot(self, followed: Subscription, conversation_id: str) -> None:
        for live in self._tertulia.live.running_in(conversation_id):
            followed.turns[live.turn.id] = live.number
            for draft in live.drafts():
                self._say(f'{{"type":"draft","value":{to_json(draft)}}}')

    def _leave(self, place: str) -> None:
        if self._followed.pop(place, None) is not None:
            self._unwatch(place)

    def _unwatch(self, place: str) -> None:
        """One's own place stays watched to the end: it says when rights are lost."""
        if place != self._rights.place:
            self._tertulia.live.feeds.leave(place, self._bell.wake)

    def _say_gone(self, place: str, reason: str) -> None:
        self._say(json.dumps({"type": "gone", "place": place, "reason": reason}))

    def _say(self, item: str) -> None:
        self._outbox.append(item)
        self._bell.wake()

    # ── what the tab is told

    async def _speak(self) -> None:
        """At most one frame with words per FRAME_S; what is said meanwhile joins the next one."""
        while not self._is_signed_out:
            await self._bell.wait()
            await self._look_at_rights()
            news = FrameBuilder(self._take_outbox())
            await self._gather(news)
            if news.items or self._tertulia.dependencies.monotonic() - self._spoke_at >= HEARTBEAT_S:
                self._spoke_at = self._tertulia.dependencies.monotonic()
                await self._socket.send_text(f"[{','.join(news.items)}]")
            if news.has_words:
                await asyncio.sleep(FRAME_S)  # the first word went out at once; the next ones may gather

    async def _tick(self) -> None:
        """Rights and silence are looked at even when nothing happens."""
        while True:
            await asyncio.sleep(LOOK_AGAIN_S)
            self._bell.wake()

    async def _look_at_rights(self) -> None:
        if not self._rights.are_in_doubt:
            return
        lost = await self._rights.lost(tuple(self._followed))
        for place in tuple(self._followed) if lost.is_signed_out else lost.places:
            self._leave(place)
            self._say_gone(place, "not_found")
        if lost.is_signed_out:
            self._is_signed_out = True
            self._outbox = ['{"type":"signed_out"}']

    def _take_outbox(self) -> list[str]:
        items, self._outbox = self._outbox, []
        self._taken.wake()
        return items

    async def _gather(self, news: FrameBuilder) -> None:
        """Deltas before events: a reply's last words come before the message that ends it."""
        for followed in tuple(self._followed.values()):
            if followed.conversation_id:
                self._deltas(followed, followed.conversation_id, news)
            for event in await self._events(followed):
                news.items.append(_event(event))

    def _deltas(self, followed: Subscription, conversation_id: str, news: FrameBuilder) -> None:
        running = {live.turn.id: live for live in self._tertulia.live.running_in(conversation_id)}
        for turn_id in {*running, *followed.turns}:
            live = running.get(turn_id) or self._tertulia.live.find(turn_id)
            if live is None:
                del followed.turns[turn_id]
                continue
            after = followed.turns.get(turn_id, 0)
            log = live.after(after)
            news.tell(map(anonymised, log) if live.turn.is_blind else log)
            followed.turns[turn_id] = after + len(log)
            if followed.turns[turn_id] < live.number:
                self._bell.wake()
            elif live.is_over:
                del followed.turns[turn_id]

    async def _events(self, followed: Subscription) -> list[Event]:
        recent = followed.place.after(followed.cursor)
        if recent is None:
            after = followed.cursor
            name = followed.place.name
            recent = await self._tertulia.db.read(lambda tx: events.after(tx, name, after, LOG_PAGE))
            self._bell.wake()
        news = list(recent)
        if news:
            followed.cursor = news[-1].number
        return news


@dataclass(frozen=True, slots=True)
class Backlog:
    events: tuple[Event, ...]
    number: int
    is_reset: bool = False


def _missed(tx: Tx, actor: Actor, place: str, after: int) -> Backlog | None:
    if not events.may_follow(tx, actor, place):
        return None
    last = events.last_number(tx, place)
    if not 0 <= after <= last or last - after > MISSED_LIMIT or after < events.first_number(tx, place) - 1:
        return Backlog((), last, is_reset=True)
    missed: list[Event] = []
    while after < last:
        missed += events.after(tx, place, after, LOG_PAGE)
        after = missed[-1].number
        if sum(len(event.value or "") for event in missed) > MISSED_CHARS:
            return Backlog((), last, is_reset=True)
    return Backlog(tuple(missed), last)


def _parsed(text: str) -> dict[str, Any]:
    if len(text) > MESSAGE_LIMIT:
        return {}
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _event(event: Event) -> str:
    head = json.dumps(
        {"type": "event", "place": event.place, "number": event.number, "kind": event.kind.value}
        | {"noun": event.noun, "id": event.id}
    )
    return f'{head[:-1]},"value":{event.value or "null"}}}'


@dataclass(slots=True)
class FrameBuilder:
    """What the next frame says."""

    items: list[str]
    has_words: bool = False
    """Of a reply that is being written: more of them will come."""

    def tell(self, log: Iterable[TurnEvent]) -> None:
        """A piece of a turn's log, with all deltas of one reply joined."""
        deltas: dict[str, _Joined] = {}
        for event in log:
            match event:
                case Delta():
                    deltas.setdefault(event.reply_id, _Joined(event.number - 1)).add(event)
                case ReplyStarted(draft):
                    self.items.append(f'{{"type":"draft","value":{to_json(draft)}}}')
                case RetryScheduled(reply_id, waiting):
                    item = f'{{"type":"waiting","id":"{reply_id}","value":{to_json(waiting)}}}'
                    self.items.append(item)
        if deltas:
            self.has_words = True
            self.items += [delta.item(reply_id) for reply_id, delta in deltas.items()]


@dataclass(slots=True)
class _Joined:
    after: int
    number: int = 0
    text: str = ""
    thinking: str = ""

    def add(self, delta: Delta) -> None:
        self.number = delta.number
        if delta.is_thought:
            self.thinking += delta.text
        else:
            self.text += delta.text

    def item(self, reply_id: str) -> str:
        said: dict[str, Any] = {"type": "delta", "id": reply_id, "after": self.after, "number": self.number}
        if self.text:
            said["text"] = self.text
        if self.thinking:
            said["thinking"] = self.thinking
        return json.dumps(said, ensure_ascii=False)
