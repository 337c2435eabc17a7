"""Saved tables: voices with their mode and visibility, kept under a name; and what people begin with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tertulia.core.conversations import Visibility
from tertulia.core.errors import Invalid
from tertulia.core.personas import MODEL_LIMIT, Scope
from tertulia.core.thinking import Effort
from tertulia.core.voices import SEATS

NAME_LIMIT = 60
BRIEF_LIMIT = 4_000


@dataclass(frozen=True, slots=True)
class WantedVoice:
    """A model, a persona, or a persona that is to speak through a certain model."""

    model: str | None = None
    """The key of a model, "openai:gpt-4o"."""
    persona_id: str | None = None
    effort: Effort | None = None
    """How much it is to think; None: as its persona says, or as much as its model does by itself."""


@dataclass(frozen=True, slots=True)
class TableSetting:
    """What a table is, whoever it belongs to."""

    name: str
    mode: str
    visibility: Visibility
    voices: tuple[WantedVoice, ...]
    chair: WantedVoice | None = None
    brief: str = ""
    """What the synthesis should do, in the person's own words."""

    @property
    def guests(self) -> tuple[WantedVoice, ...]:
        return (*self.voices, self.chair) if self.chair else self.voices


@dataclass(frozen=True, slots=True)
class SavedTable:
    id: str
    scope: Scope
    """One person's or a project's; a table is nobody else's."""
    owner_id: str | None
    project_id: str | None
    name: str
    mode: str
    visibility: Visibility
    voices: tuple[WantedVoice, ...]
    chair: WantedVoice | None
    brief: str
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a person begins a conversation with where its project says nothing."""

    table_id: str | None = None
    mode: str | None = None
    visibility: Visibility | None = None
    voices: tuple[WantedVoice, ...] = ()


def cleaned(table: TableSetting) -> TableSetting:
    name = " ".join(table.name.split())
    if not name or len(name) > NAME_LIMIT:
        raise Invalid(f"A group's name has 1 to {NAME_LIMIT} characters.")
    if len(table.brief) > BRIEF_LIMIT:
        raise Invalid(f"The instructions for a summary have at most {BRIEF_LIMIT:,} characters.")
    if not table.voices:
        raise Invalid("Choose at least one model or persona.")
    check_voices(table.guests, len(table.voices))
    return TableSetting(name, table.mode, table.visibility, table.voices, table.chair, table.brief.strip())


def check_voices(guests: Sequence[WantedVoice], seated: int) -> None:
    if seated > SEATS:
        raise Invalid(f"At most {SEATS} voices can answer.")
    if any(one.model is None and one.persona_id is None for one in guests):
        raise Invalid("A voice is a model or a persona: name one of them.")
    if any(len(one.model or "") > MODEL_LIMIT for one in guests):
        raise Invalid(f"A model is named by its key, of at most {MODEL_LIMIT} characters.")
