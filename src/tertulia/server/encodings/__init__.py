"""Encodings of a turn's events for clients: server-sent events (`sse`) and NDJSON (`ndjson`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tertulia.core.messages import Message
from tertulia.core.turns import Draft, Turn
from tertulia.engine.turn_events import Delta, TurnEvent


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The current state of a turn, for a client that cannot resume from its last event."""

    turn: Turn
    messages: tuple[Message, ...]
    drafts: tuple[Draft, ...]


@dataclass(frozen=True, slots=True)
class Encoding:
    media_type: str
    event: Callable[[str, TurnEvent], bytes]
    """Encodes an event with its event id, from which a client can resume."""
    snapshot: Callable[[str, Snapshot], bytes]
    gone: Callable[[str, str], bytes]
    """Encodes the end of a stream whose client lost its permission: the last event's id and the reason."""
    heartbeat: bytes


def event_id(name: str, number: int) -> str:
    """An event's id in a turn's stream. It names the log: mirrors on other nodes have other numbers."""
    return f"{name}.{number}"


def number_of(event_id: str, name: str) -> int | None:
    """The number of the client's last event; 0 without an id, None if the id belongs to another log."""
    if not event_id:
        return 0
    log_name, _, number = event_id.rpartition(".")
    is_ours = log_name == name and number.isascii() and number.isdecimal() and len(number) < 10
    return int(number) if is_ours else None


def joined(events: Iterable[TurnEvent], first: int) -> list[tuple[int, TurnEvent]]:
    """Numbers the events from `first`. Adjacent deltas of a reply are joined under the number of the last."""
    result: list[tuple[int, TurnEvent]] = []
    for number, event in enumerate(events, start=first):
        if isinstance(event, Delta) and result:
            last = result[-1][1]
            if isinstance(last, Delta) and (last.reply_id, last.is_thought) == (
                event.reply_id,
                event.is_thought,
            ):
                result[-1] = (
                    number,
                    Delta(event.reply_id, event.number, last.text + event.text, event.is_thought),
                )
                continue
        result.append((number, event))
    return result
