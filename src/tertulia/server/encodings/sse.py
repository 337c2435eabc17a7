"""Server-sent events: `id` is the number in the turn, so `Last-Event-ID` resumes without gap or repeat."""

from __future__ import annotations

import json

from tertulia.core.plain import to_json
from tertulia.engine.live import Began, Delta, Ended, Finished, TurnEvent, Waited
from tertulia.server.encodings import Encoding, Snapshot


def event(number: int, event: TurnEvent) -> bytes:
    match event:
        case Delta(reply_id, delta, text, is_thought):
            data = json.dumps(
                {"reply_id": reply_id, "number": delta, "thinking" if is_thought else "text": text},
                ensure_ascii=False,
            )
            return _frame(number, "delta", data)
        case Began(draft):
            return _frame(number, "reply", to_json(draft))
        case Waited(reply_id, waiting):
            return _frame(number, "waiting", to_json({"reply_id": reply_id, "waiting": waiting}))
        case Finished(message):
            return _frame(number, "finished", to_json(message))
        case Ended(turn):
            return _frame(number, "ended", to_json(turn))


def snapshot(number: int, snapshot: Snapshot) -> bytes:
    return _frame(number, "snapshot", to_json(snapshot))


def gone(number: int, reason: str) -> bytes:
    return _frame(number, "gone", to_json({"reason": reason}))


def _frame(number: int, name: str, data: str) -> bytes:
    return f"id: {number}\nevent: {name}\ndata: {data}\n\n".encode()


SSE = Encoding("text/event-stream", event, snapshot, gone, heartbeat=b": still here\n\n")
