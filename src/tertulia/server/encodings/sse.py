"""SSE encoding: the client resumes with `Last-Event-ID`, without a gap or a repeated event."""

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


def event(event_id: str, event: TurnEvent) -> bytes:
    match event:
        case Delta(reply_id, delta, text, is_thought):
            data = json.dumps(
                {"reply_id": reply_id, "number": delta, "thinking" if is_thought else "text": text},
                ensure_ascii=False,
            )
            return _frame(event_id, "delta", data)
        case ReplyStarted(draft):
            return _frame(event_id, "reply", to_json(draft))
        case RetryScheduled(reply_id, waiting):
            return _frame(event_id, "waiting", to_json({"reply_id": reply_id, "waiting": waiting}))
        case ReplyFinished(message):
            return _frame(event_id, "finished", to_json(message))
        case TurnEnded(turn):
            return _frame(event_id, "ended", to_json(turn))


def snapshot(event_id: str, snapshot: Snapshot) -> bytes:
    return _frame(event_id, "snapshot", to_json(snapshot))


def gone(event_id: str, reason: str) -> bytes:
    return _frame(event_id, "gone", to_json({"reason": reason}))


def _frame(event_id: str, name: str, data: str) -> bytes:
    return f"id: {event_id}\nevent: {name}\ndata: {data}\n\n".encode()


SSE = Encoding("text/event-stream", event, snapshot, gone, heartbeat=b": still here\n\n")
