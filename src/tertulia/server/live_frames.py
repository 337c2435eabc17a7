"""Live frames: writes the JSON items of the live socket; a frame is an array of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tertulia.core.events import Event
from tertulia.core.serialization import to_json
from tertulia.core.turns import Draft
from tertulia.engine.turn_events import Delta, ReplyStarted, RetryScheduled, TurnEvent

PONG = '{"type":"pong"}'
SIGNED_OUT = '{"type":"signed_out"}'
UNKNOWN_MESSAGE = '{"type":"error","message":"follow, leave or ping"}'


def event_item(event: Event) -> str:
    """The event's value is JSON already and is inserted as it is."""
    head = json.dumps(
        {"type": "event", "place": event.topic, "number": event.number, "kind": event.kind.value}
        | {"noun": event.noun, "id": event.id}
    )
    return f'{head[:-1]},"value":{event.value or "null"}}}'


def draft_item(draft: Draft) -> str:
    return f'{{"type":"draft","value":{to_json(draft)}}}'


def following_item(topic: str, number: int) -> str:
    return json.dumps({"type": "following", "place": topic, "number": number})


def reset_item(topic: str) -> str:
    return json.dumps({"type": "reset", "place": topic})


def gone_item(topic: str, reason: str) -> str:
    return json.dumps({"type": "gone", "place": topic, "reason": reason})


@dataclass(slots=True)
class FrameBuilder:
    """Collects the items of the next frame."""

    items: list[str]
    has_deltas: bool = False
    """True if a reply is being written, so that more deltas will follow soon."""

    def add_event(self, event: Event) -> None:
        self.items.append(event_item(event))

    def add_turn_events(self, log: Iterable[TurnEvent]) -> None:
        """Adds a part of a turn's log, with all deltas of a reply joined into one item."""
        deltas: dict[str, _JoinedDelta] = {}
        for event in log:
            match event:
                case Delta():
                    deltas.setdefault(event.reply_id, _JoinedDelta(event.number - 1)).add(event)
                case ReplyStarted(draft):
                    self.items.append(draft_item(draft))
                case RetryScheduled(reply_id, waiting):
                    item = f'{{"type":"waiting","id":"{reply_id}","value":{to_json(waiting)}}}'
                    self.items.append(item)
        if deltas:
            self.has_deltas = True
            self.items += [delta.item(reply_id) for reply_id, delta in deltas.items()]


@dataclass(slots=True)
class _JoinedDelta:
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
        item: dict[str, Any] = {"type": "delta", "id": reply_id, "after": self.after, "number": self.number}
        if self.text:
            item["text"] = self.text
        if self.thinking:
            item["thinking"] = self.thinking
        return json.dumps(item, ensure_ascii=False)
