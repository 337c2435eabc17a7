"""Conversations: a list of rounds, and the table and mode for the next round."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tertulia.core.errors import Invalid
from tertulia.core.passages import SearchScope
from tertulia.core.voices import HeldSeat, Voice

TITLE_LIMIT = 200


class Visibility(StrEnum):
    """Which earlier replies of the other voices each voice sees."""

    OPEN = "open"
    OWN_LANE = "own_lane"
    CHOSEN = "chosen"


@dataclass(frozen=True, slots=True)
class Conversation:
    id: str
    project_id: str
    owner_id: str
    title: str
    """Empty until the conversation has a title."""
    summary: str
    round_count: int
    mode: str
    table: tuple[Voice, ...]
    visibility: Visibility
    pinned: bool
    archived: bool
    is_answering: bool
    """Whether a turn of it is queued or running."""
    created_at: int
    updated_at: int
    parent_id: str | None = None
    branch_round: int | None = None
    branch_message_id: str | None = None
    chair: Voice | None = None
    seats: tuple[HeldSeat, ...] = ()
    """Which lane holds which seat, the oldest first; includes lanes that are not at the table now."""
    scope: SearchScope | None = None
    """The search scope last chosen for its questions; None: the project's setting."""


def clean_title(text: str) -> str:
    title = " ".join(text.split())
    if not title or len(title) > TITLE_LIMIT:
        raise Invalid(f"A title has 1 to {TITLE_LIMIT} characters.")
    return title
