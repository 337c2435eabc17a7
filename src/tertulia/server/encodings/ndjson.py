"""NDJSON encoding: one JSON object per line, such as `chunk`, `done` or `error`; `after` is the event id."""

from __future__ import annotations

import json
from typing import Any

from tertulia.core.messages import Message, Status, speaker_of
from tertulia.core.serialization import to_plain
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
            key = "thinking" if is_thought else "text"
            return _line(
                {"type": "chunk", "after": event_id, "reply_id": reply_id, "number": delta, key: text}
            )
        case ReplyStarted(draft):
            speaker = speaker_of(draft.voice.model)
            return _line({"type": "reply", "after": event_id, "speaker": speaker, "draft": to_plain(draft)})
        case RetryScheduled(reply_id, waiting):
            return _line(
                {"type": "waiting", "after": event_id, "reply_id": reply_id, "waiting": to_plain(waiting)}
            )
        case ReplyFinished(message):
            return _line(_finished(message) | {"after": event_id})
        case TurnEnded(turn):
            return _line({"type": "done", "after": event_id, "turn": to_plain(turn)})


def snapshot(event_id: str, snapshot: Snapshot) -> bytes:
    return _line({"type": "snapshot", "after": event_id} | to_plain(snapshot))


def gone(event_id: str, reason: str) -> bytes:
    return _line({"type": "gone", "after": event_id, "reason": reason})


def _finished(message: Message) -> dict[str, Any]:
    ended_well = message.status in (Status.COMPLETE, Status.STOPPED)
    kind = "done" if ended_well else "error"
    return {"type": kind, "speaker": message.speaker, "reply_id": message.id, "message": to_plain(message)}


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


NDJSON = Encoding("application/x-ndjson", event, snapshot, gone, heartbeat=b"\n")
