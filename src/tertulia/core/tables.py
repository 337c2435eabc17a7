"""Saved tables: a named set of voices with mode and visibility; and a person's defaults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tertulia.core.conversations import Visibility
from tertulia.core.errors import Invalid
from tertulia.core.personas import MODEL_LIMIT, Ownership
from tertulia.core.thinking import Effort
from tertulia.core.voices import SEATS

NAME_LIMIT = 60
BRIEF_LIMIT = 4_000


@dataclass(frozen=True, slots=True)
class VoiceRef:
    """A reference to a voice: a model, a persona, or a persona with a certain model."""

    model: str | None = None
    """A model's key, such as "openai:gpt-4o"."""
    persona_id: str | None = None
    effort: Effort | None = None
    """The thinking effort; None: the persona's or the model's default."""


@dataclass(frozen=True, slots=True)
class TableSpec:
    """The content of a table, without its owner."""

    name: str
    mode: str
    visibility: Visibility
    voices: tuple[VoiceRef, ...]
    chair: VoiceRef | None = None
    brief: str = ""
    """The person's own instructions for the synthesis."""

    @property
    def guests(self) -> tuple[VoiceRef, ...]:
        return (*self.voices, self.chair) if self.chair else self.voices


@dataclass(frozen=True, slots=True)
class SavedTable:
    id: str
    scope: Ownership
    """Belongs to one person or one project, never to the whole server."""
    owner_id: str | None
    project_id: str | None
    name: str
    mode: str
    visibility: Visibility
    voices: tuple[VoiceRef, ...]
    chair: VoiceRef | None
    brief: str
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class Defaults:
    """A person's defaults for a new conversation; the project's defaults come first."""

    table_id: str | None = None
    mode: str | None = None
    visibility: Visibility | None = None
    voices: tuple[VoiceRef, ...] = ()


def cleaned(table: TableSpec) -> TableSpec:
    name = " ".join(table.name.split())
    if not name or len(name) > NAME_LIMIT:
        raise Invalid(f"A group's name has 1 to {NAME_LIMIT} characters.")
    if len(table.brief) > BRIEF_LIMIT:
        raise Invalid(f"The instructions for a summary have at most {BRIEF_LIMIT:,} characters.")
    if not table.voices:
        raise Invalid("Choose at least one model or persona.")
    check_voices(table.guests, len(table.voices))
    return TableSpec(name, table.mode, table.visibility, table.voices, table.chair, table.brief.strip())


def check_voices(voices: Sequence[VoiceRef], seat_count: int) -> None:
    if seat_count > SEATS:
        raise Invalid(f"At most {SEATS} voices can answer.")
    if any(voice.model is None and voice.persona_id is None for voice in voices):
        raise Invalid("A voice is a model or a persona: name one of them.")
    if any(len(voice.model or "") > MODEL_LIMIT for voice in voices):
        raise Invalid(f"A model is named by its key, of at most {MODEL_LIMIT} characters.")
