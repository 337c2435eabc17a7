"""One live connection: what its tab follows, and how far it has read.

follow ─▶ reset                                    the cursor cannot be served: fetch the page again
       └▶ event* ─▶ draft* ─▶ following ─▶ (draft | delta | waiting | event)* ─▶ gone
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from tertulia.app import House
from tertulia.core.errors import TertuliaError
from tertulia.core.events import Event, Kind, user_place
from tertulia.core.plain import to_json
from tertulia.core.users import Actor
from tertulia.engine.live import Began, Bell, Delta, LiveTurn, Place, Waited
from tertulia.store import events
from tertulia.store.database import Tx

FRAME_S = 0.033
HEARTBEAT_S = 15.0
PLACES_LIMIT = 64
MESSAGE_LIMIT = 4096
LOG_PAGE = 1000
SIGNED_OUT = 4401


@dataclass(slots=True)
class Followed:
    place: Place
    cursor: int
    turns: dict[str, int] = field(default_factory=dict)
    """How far the log of each running turn was sent."""

    @property
    def conversation_id(self) -> str | None:
        kind, _, conversation_id = self.place.name.partition(":")
        return conversation_id if kind == "conversation" else None


class Connection:
    def __init__(self, socket: WebSocket, house: House, actor: Actor) -> None:
        self._socket = socket
        self._house = house
        self._actor = actor
        self._bell = Bell()
        self._followed: dict[str, Followed] = {}
        self._outbox: list[str] = []
        self._own = user_place(actor.user_id)
        self._own_place = house.live.watch(self._own, self._bell.ring)
        self._own_cursor = self._own_place.events[-1].number if self._own_place.events else 0
        self._is_signed_out = False

    async def run(self) -> None:
        """Reads and writes until either side has enough."""
        sending = asyncio.create_task(self._send())
        try:
            await self._receive()
        except (WebSocketDisconnect, RuntimeError):
            pass
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            for place in tuple(self._followed):
                self._leave(place)
            self._house.live.leave(self._own, self._bell.ring)

    # ── what the tab says

    async def _receive(self) -> None:
        while not self._is_signed_out:
            await self._hear(await self._socket.receive_text())

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
            self._say(to_json({"type": "gone", "place": place, "reason": "too_many"}))
            return
        self._leave(place)
        watched = self._house.live.watch(place, self._bell.ring)
        try:
            missed = await self._house.db.read(lambda tx: _missed(tx, self._actor, place, after))
        except TertuliaError:
            missed = None
        if missed is None:
            self._unwatch(place)
            self._say(to_json({"type": "gone", "place": place, "reason": "not_found"}))
            return
        if missed.is_reset:
            self._unwatch(place)
            self._say(to_json({"type": "reset", "place": place}))
            return
        followed = self._followed[place] = Followed(watched, missed.number)
        for event in missed.events:
            self._say(_event(event))
        if followed.conversation_id:
            self._snapshot(followed, followed.conversation_id)
        self._say(to_json({"type": "following", "place": place, "number": missed.number}))

    def _snapshot(self, followed: Followed, conversation_id: str) -> None:
        for live in self._house.live.running_in(conversation_id):
            followed.turns[live.turn.id] = live.number
            for reply in live.replies.values():
                self._say(f'{{"type":"draft","value":{to_json(reply.draft())}}}')

    def _leave(self, place: str) -> None:
        if self._followed.pop(place, None) is not None:
            self._unwatch(place)

    def _unwatch(self, place: str) -> None:
        """One's own place stays watched to the end: it says when rights are lost."""
        if place != self._own:
            self._house.live.leave(place, self._bell.ring)

    def _say(self, item: str) -> None:
        self._outbox.append(item)
        self._bell.ring()

    # ── what the tab is told

    async def _send(self) -> None:
        """At most one frame per FRAME_S; what happens meanwhile joins the next one."""
        while True:
            try:
                await asyncio.wait_for(self._bell.rung(), HEARTBEAT_S)
            except TimeoutError:
                await self._socket.send_text("[]")
                continue
            items = [*self._take_outbox(), *await self._news()]
            if items:
                await self._socket.send_text(f"[{','.join(items)}]")
            if self._is_signed_out:
                await self._close()
                return
            await asyncio.sleep(FRAME_S)

    def _take_outbox(self) -> list[str]:
        items, self._outbox = self._outbox, []
        return items

    async def _news(self) -> list[str]:
        """Deltas before events: a reply's last words come before the message that ends it."""
        items: list[str] = []
        for followed in tuple(self._followed.values()):
            if followed.conversation_id:
                items.extend(self._deltas(followed, followed.conversation_id))
            for event in await self._events(followed):
                items.append(_event(event))
        items.extend(self._lost())
        return items

    def _deltas(self, followed: Followed, conversation_id: str) -> Iterator[str]:
        running = {live.turn.id: live for live in self._house.live.running_in(conversation_id)}
        for turn_id in {*running, *followed.turns}:
            live = running.get(turn_id) or self._house.live.find(turn_id)
            if live is None:
                del followed.turns[turn_id]
                continue
            yield from _told(live, followed.turns.get(turn_id, 0))
            followed.turns[turn_id] = live.number
            if live.is_over:
                del followed.turns[turn_id]

    async def _events(self, followed: Followed) -> list[Event]:
        recent = followed.place.after(followed.cursor)
        if recent is None:
            after = followed.cursor
            name = followed.place.name
            recent = await self._house.db.read(lambda tx: events.after(tx, name, after, LOG_PAGE))
            self._bell.ring()
        news = list(recent)
        if news:
            followed.cursor = news[-1].number
        return news

    def _lost(self) -> Iterator[str]:
        """Rights that ended: a session revoked, a project left, a conversation deleted."""
        for event in self._own_place.after(self._own_cursor) or ():
            self._own_cursor = event.number
            if event.kind is Kind.REMOVED and event.noun == "session" and event.id == self._actor.session_id:
                self._is_signed_out = True
                yield '{"type":"signed_out"}'
            elif event.kind is Kind.REMOVED and event.noun == "project":
                yield from self._gone(event.id)

    def _gone(self, project_id: str) -> Iterator[str]:
        """Leaves the project's place and every conversation: the tab follows again what it may still see."""
        for place in [
            p for p in self._followed if p == f"project:{project_id}" or p.startswith("conversation:")
        ]:
            self._leave(place)
            yield to_json({"type": "gone" if place.startswith("project:") else "reset", "place": place})

    async def _close(self) -> None:
        if self._socket.application_state is WebSocketState.CONNECTED:
            await self._socket.close(SIGNED_OUT)


@dataclass(frozen=True, slots=True)
class Missed:
    events: tuple[Event, ...]
    number: int
    is_reset: bool = False


def _missed(tx: Tx, actor: Actor, place: str, after: int) -> Missed | None:
    if not events.may_follow(tx, actor, place):
        return None
    last = events.last_number(tx, place)
    if not 0 <= after <= last or last - after > LOG_PAGE or after < events.first_number(tx, place) - 1:
        return Missed((), last, is_reset=True)
    return Missed(events.after(tx, place, after, LOG_PAGE), last)


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


def _told(live: LiveTurn, after: int) -> Iterator[str]:
    """The log after a number, with all deltas of one reply joined."""
    deltas: dict[str, _Joined] = {}
    for event in live.after(after):
        match event:
            case Delta():
                deltas.setdefault(event.reply_id, _Joined(event.number - 1)).add(event)
            case Began(draft):
                yield f'{{"type":"draft","value":{to_json(draft)}}}'
            case Waited(reply_id, waiting):
                yield f'{{"type":"waiting","id":"{reply_id}","value":{to_json(waiting)}}}'
    for reply_id, delta in deltas.items():
        yield delta.item(reply_id)


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
