"""Turn events: what the watchers of a running turn receive, in order.

ReplyStarted ─▶ (RetryScheduled | Delta)* ─▶ ReplyFinished   for each reply;   TurnEnded   once, last
"""

from __future__ import annotations

from dataclasses import dataclass

from tertulia.core.blind import anonymised_draft, anonymised_message, anonymised_retry_notice, anonymised_turn
from tertulia.core.messages import Message
from tertulia.core.turns import Draft, RetryNotice, Turn


@dataclass(frozen=True, slots=True)
class ReplyStarted:
    draft: Draft


@dataclass(frozen=True, slots=True)
class Delta:
    reply_id: str
    number: int
    """Counts the deltas of one reply from 1."""
    text: str
    is_thought: bool = False


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    reply_id: str
    waiting: RetryNotice | None
    """None when the wait is over."""


@dataclass(frozen=True, slots=True)
class ReplyFinished:
    message: Message


@dataclass(frozen=True, slots=True)
class TurnEnded:
    turn: Turn


TurnEvent = ReplyStarted | Delta | RetryScheduled | ReplyFinished | TurnEnded


def anonymised(event: TurnEvent) -> TurnEvent:
    """The event of a blind turn, without the names of its voices."""
    match event:
        case ReplyStarted(draft):
            return ReplyStarted(anonymised_draft(draft))
        case RetryScheduled(reply_id, waiting):
            return RetryScheduled(reply_id, anonymised_retry_notice(waiting) if waiting else None)
        case ReplyFinished(message):
            return ReplyFinished(anonymised_message(message))
        case TurnEnded(turn):
            return TurnEnded(anonymised_turn(turn))
        case Delta():
            return event
