"""Conversations: a line of rounds, with the table and mode it goes on with."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tertulia.core.errors import Invalid
from tertulia.core.passages import SearchScope
from tertulia.core.voices import HeldSeat, Voice

TITLE_LIMIT = 200


class Visibility(StrEnum):
    """What each voice sees of the others."""

    OPEN = "open"
    OWN_LANE = "own_lane"
    CHOSEN = "chosen"


@dataclass(frozen=True, slots=True)
class Conversation:
    id: str
    project_id: str
    owner_id: str
    title: str
    """Empty until it has one."""
    summary: str
    round_count: int
    mode: str
    table: tuple[Voice, ...]
    visibility: Visibility
    pinned: bool
    archived: bool
    is_answering: bool
    """A turn is queued or running in it."""
    created_at: int
    updated_at: int
    parent_id: str | None = None
    branch_round: int | None = None
    branch_message_id: str | None = None
    chair: Voice | None = None
    seats: tuple[HeldSeat, ...] = ()
    """Whose seat is whose, the oldest first: also of those who are not at the table now."""
    scope: SearchScope | None = None
    """What was chosen last to be searched for its questions; None: what the project's set-up says."""


def clean_title(text: str) -> str:
    title = " ".join(text.split())
    if not title or len(title) > TITLE_LIMIT:
        raise Invalid(f"A title has 1 to {TITLE_LIMIT} characters.")
    return title
