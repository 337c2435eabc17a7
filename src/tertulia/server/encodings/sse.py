"""Server-sent events: `id` is the event's mark, so `Last-Event-ID` resumes without gap or repeat."""

from __future__ import annotations

import json

from tertulia.core.serialization import to_json
from tertulia.engine.turn_events import (
    Delta,
    ReplyFinished,
    ReplyStarted,
    RetryScheduled,
    TurnEnded,
    TurnEvent,
)
from tertulia.server.encodings import Encoding, Snapshot


def event(mark: str, event: TurnEvent) -> bytes:
    match event:
        case Delta(reply_id, delta, text, is_thought):
            data = json.dumps(
                {"reply_id": reply_id, "number": delta, "thinking" if is_thought else "text": text},
                ensure_ascii=False,
            )
            return _frame(mark, "delta", data)
        case ReplyStarted(draft):
            return _frame(mark, "reply", to_json(draft))
        case RetryScheduled(reply_id, waiting):
            return _frame(mark, "waiting", to_json({"reply_id": reply_id, "waiting": waiting}))
        case ReplyFinished(message):
            return _frame(mark, "finished", to_json(message))
        case TurnEnded(turn):
            return _frame(mark, "ended", to_json(turn))


def snapshot(mark: str, snapshot: Snapshot) -> bytes:
    return _frame(mark, "snapshot", to_json(snapshot))


def gone(mark: str, reason: str) -> bytes:
    return _frame(mark, "gone", to_json({"reason": reason}))


def _frame(mark: str, name: str, data: str) -> bytes:
    return f"id: {mark}\nevent: {name}\ndata: {data}\n\n".encode()


SSE = Encoding("text/event-stream", event, snapshot, gone, heartbeat=b": still here\n\n")
