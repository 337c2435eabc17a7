"""Turns: the act of answering one round.

queued ─▶ running ─▶ complete | stopped | interrupted | failed

A turn is queued while another one of its conversation runs; a retry never is. It is complete when every voice
has said its last word, however each of them ended; failed when none could say anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tertulia.core.conversations import Visibility
from tertulia.core.messages import ReadReply, Role, Step
from tertulia.core.passages import Passage, SearchScope
from tertulia.core.voices import Voice

RUNNING_PER_USER = 8


class State(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETE = "complete"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        return self not in (State.QUEUED, State.RUNNING)


class Purpose(StrEnum):
    """Why a turn was opened."""

    ASK = "ask"
    RETRY = "retry"
    CONTINUE = "continue"
    SYNTHESIS = "synthesis"
    """A synthesis of a round that was answered before."""
    SUMMARY = "summary"
    """A branch is brought back as one message."""

    @property
    def starts_at_once(self) -> bool:
        """Whether it runs beside other turns of its conversation: it changes a reply and opens no round."""
        return self in (Purpose.RETRY, Purpose.CONTINUE)


class Style(StrEnum):
    """How a reply that is asked for again should differ."""

    AGAIN = "again"
    CONCISE = "concise"
    DETAILED = "detailed"


@dataclass(frozen=True, slots=True)
class Turn:
    id: str
    """Made by the client, so that sending it again is harmless."""
    conversation_id: str
    round_number: int
    purpose: Purpose
    mode: str
    table: tuple[Voice, ...]
    visibility: Visibility
    state: State
    created_by: str
    created_at: int
    finished_at: int | None = None
    message_id: str | None = None
    """The reply that is retried or continued."""
    chair: Voice | None = None
    """Who writes the synthesis; None where the mode has none, or the first voice does."""
    brief: str = ""
    """The person's own words on what the synthesis should do."""
    is_blind: bool = False
    """The names are hidden now; with the first vote they come to light."""
    style: Style = Style.AGAIN
    scope: SearchScope | None = None
    """What a person chose to have searched; None: what the project's set-up says."""
    found: tuple[Passage, ...] = ()
    """What was found for the question and sent to at least one of its voices."""

    @property
    def was_blind(self) -> bool:
        """Whether it was asked so, whatever has come to light since."""
        return any(voice.letter for voice in self.table)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A provider asked us to come back later."""

    until: int
    attempt: int
    attempts: int
    reason: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A reply that is still being written; becomes a message with the same id."""

    id: str
    turn_id: str
    conversation_id: str
    round_number: int
    voice: Voice
    role: Role
    content: str
    thinking: str
    number: int
    """How many deltas its text is made of."""
    started_at: int
    replaces_id: str | None = None
    waiting: Waiting | None = None
    step: Step = Step.ANSWER
    read_replies: tuple[ReadReply, ...] = ()
