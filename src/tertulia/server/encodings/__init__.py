"""Encodings: the same turn, written for different readers. Each is one small module."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tertulia.core.messages import Message
from tertulia.core.turns import Draft, Turn
from tertulia.engine.turn_events import Delta, TurnEvent


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything about a turn as it stands, for a reader who cannot be told what it missed."""

    turn: Turn
    messages: tuple[Message, ...]
    drafts: tuple[Draft, ...]


@dataclass(frozen=True, slots=True)
class Encoding:
    media_type: str
    event: Callable[[str, TurnEvent], bytes]
    """The event's mark, from which a reader resumes, and the event; deltas of one reply arrive joined."""
    snapshot: Callable[[str, Snapshot], bytes]
    gone: Callable[[str, str], bytes]
    """The last word to a reader whose right ended: the mark of the last event it was told, and why."""
    heartbeat: bytes


def mark(name: str, number: int) -> str:
    """A place in a turn's stream. It names the log: one from another stream is never taken for ours."""
    return f"{name}.{number}"


def number_of(mark: str, name: str) -> int | None:
    """How far a reader has come; None when the mark is not of this stream. No mark is the beginning."""
    if not mark:
        return 0
    named, _, number = mark.rpartition(".")
    is_ours = named == name and number.isascii() and number.isdecimal() and len(number) < 10
    return int(number) if is_ours else None


def joined(events: Iterable[TurnEvent], first: int) -> list[tuple[int, TurnEvent]]:
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
