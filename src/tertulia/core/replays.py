"""Replays: the questions of a conversation asked once more, with another table, mode or visibility."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ReplayState(StrEnum):
    RUNNING = "running"
    COMPLETE = "complete"
    STOPPED = "stopped"
    """By a person, by its cap, or because it could not go on: `reason` says which."""


@dataclass(frozen=True, slots=True)
class Replay:
    id: str
    """Of the branch in which the answers come."""
    source_id: str
    """The conversation whose questions are asked."""
    from_round: int
    to_round: int
    done_round: int
    """The last round that was answered; one before the first while none is."""
    cap_micros: int | None
    spent_micros: int
    state: ReplayState
    reason: str
    created_by: str
    created_at: int
