"""Turns: one run of the voices that answers a round.

queued ─▶ running ─▶ complete | stopped | interrupted | failed

A turn is queued while another turn of its conversation runs; a retry is never queued. It is complete when
every voice has ended, even when some failed, and failed when no voice could write anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tertulia.core.conversations import Visibility
from tertulia.core.messages import ReadReply, Role, Step
from tertulia.core.passages import Passage, SearchScope
from tertulia.core.voices import Voice

RUNNING_PER_USER = 8


class TurnState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETE = "complete"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        return self not in (TurnState.QUEUED, TurnState.RUNNING)


class Purpose(StrEnum):
    """Why a turn was started."""

    ASK = "ask"
    RETRY = "retry"
    CONTINUE = "continue"
    SYNTHESIS = "synthesis"
    """Writes a synthesis of a round that already has its answers."""
    SUMMARY = "summary"
    """Summarises a branch in one message."""

    @property
    def starts_at_once(self) -> bool:
        """Whether it runs beside other turns of its conversation: it changes a reply and adds no round."""
        return self in (Purpose.RETRY, Purpose.CONTINUE)


class Style(StrEnum):
    """How a new version of a reply should differ."""

    AGAIN = "again"
    CONCISE = "concise"
    DETAILED = "detailed"


@dataclass(frozen=True, slots=True)
class Turn:
    id: str
    """Made by the client, so that sending the request twice is harmless."""
    conversation_id: str
    round_number: int
    purpose: Purpose
    mode: str
    table: tuple[Voice, ...]
    visibility: Visibility
    state: TurnState
    created_by: str
    created_at: int
    finished_at: int | None = None
    message_id: str | None = None
    """The reply that is retried or continued."""
    chair: Voice | None = None
    """The voice that writes the synthesis; None if the mode has none, or if the first voice writes it."""
    brief: str = ""
    """The person's own instructions for the synthesis."""
    is_blind: bool = False
    """Whether the names are hidden now; the first vote reveals them."""
    style: Style = Style.AGAIN
    scope: SearchScope | None = None
    """The search scope that a person chose; None: the project's setting."""
    found: tuple[Passage, ...] = ()
    """The search results that at least one voice's prompt contained."""

    @property
    def was_blind(self) -> bool:
        """Whether the turn started blind, even when its names are revealed by now."""
        return any(voice.letter for voice in self.table)


@dataclass(frozen=True, slots=True)
class RetryNotice:
    """A pending retry: the provider asked the server to come back later."""

    until: int
    attempt: int
    attempts: int
    reason: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A reply that is still being written; it becomes a message with the same id."""

    id: str
    turn_id: str
    conversation_id: str
    round_number: int
    voice: Voice
    role: Role
    content: str
    thinking: str
    number: int
    """How many deltas its text consists of."""
    started_at: int
    replaces_id: str | None = None
    waiting: RetryNotice | None = None
    step: Step = Step.ANSWER
    read_replies: tuple[ReadReply, ...] = ()
