"""Replays: asks the questions of a conversation again, with another table, mode or visibility."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ReplayState(StrEnum):
    RUNNING = "running"
    COMPLETE = "complete"
    STOPPED = "stopped"
    """Stopped by a person, by its cost cap, or by an error: `reason` says which."""


@dataclass(frozen=True, slots=True)
class Replay:
    id: str
    """The id of the branch for the new answers."""
    source_id: str
    """The conversation whose questions are asked again."""
    from_round: int
    to_round: int
    done_round: int
    """The last answered round; before the first answer, the round before `from_round`."""
    cap_micros: int | None
    spent_micros: int
    state: ReplayState
    reason: str
    created_by: str
    created_at: int
