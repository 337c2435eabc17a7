"""Encodings: the same turn, written for different readers. Each is one small module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tertulia.core.messages import Message
from tertulia.core.turns import Draft, Turn
from tertulia.engine.live import Delta, TurnEvent


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything about a turn as it stands, for a reader who cannot be told what it missed."""

    turn: Turn
    messages: tuple[Message, ...]
    drafts: tuple[Draft, ...]


@dataclass(frozen=True, slots=True)
class Encoding:
    media_type: str
    event: Callable[[int, TurnEvent], bytes]
    """The number of the event in its turn, and the event; deltas of one reply in a row arrive joined."""
    snapshot: Callable[[int, Snapshot], bytes]
    gone: Callable[[int, str], bytes]
    """The last word to a reader whose right ended: the number of the last event it was told, and why."""
    heartbeat: bytes


def joined(events: Sequence[TurnEvent], first: int) -> list[tuple[int, TurnEvent]]:
    """Numbers the events from `first`; neighbouring deltas of one reply become one, under the last number."""
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
