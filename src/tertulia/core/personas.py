"""Personas: voices with a name, a colour and instructions of their own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from tertulia.core.errors import Invalid
from tertulia.core.thinking import Effort
from tertulia.core.voices import SEATS

NAME_LIMIT = 60
GLYPH_LIMIT = 4
MODEL_LIMIT = 200
INSTRUCTIONS_LIMIT = 20_000


class Ownership(StrEnum):
    """The owner of a persona or saved table: one person, one project, or everyone on this server."""

    USER = "user"
    PROJECT = "project"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class PersonaProfile:
    """The content of a persona; every change makes a new version, and each reply stores its version."""

    name: str
    glyph: str
    """Up to four characters for its icon; empty: the shape of its seat."""
    hue: int
    """1 to 8: the seat it takes if that is free."""
    instructions: str
    model: str
    """The key of the preferred model; another model is used while this one is not available."""
    tools: bool = True
    effort: Effort | None = None
    """The thinking effort, if its model supports one; None: the model's default."""


@dataclass(frozen=True, slots=True)
class Persona:
    id: str
    scope: Ownership
    owner_id: str | None
    project_id: str | None
    character: PersonaProfile
    version: int
    created_at: int
    updated_at: int


def handle_of(name: str) -> str:
    """The handle for an @-mention: "The Sage" is @sage."""
    words = re.sub(r"^the\s+", "", name.strip().lower())
    return re.sub(r"[^\w]+", "-", words).strip("-")


def cleaned(character: PersonaProfile) -> PersonaProfile:
    name = " ".join(character.name.split())
    if not name or len(name) > NAME_LIMIT:
        raise Invalid(f"A persona's name has 1 to {NAME_LIMIT} characters.")
    if any(mark in name for mark in '[]:"') or not name.isprintable() or not handle_of(name):
        raise Invalid("A persona's name has letters and no [ ] : or \".")
    if len(character.model) > MODEL_LIMIT:
        raise Invalid(f"A persona's model is named by its key, of at most {MODEL_LIMIT} characters.")
    if not 1 <= character.hue <= SEATS:
        raise Invalid(f"A persona's colour is a number from 1 to {SEATS}.")
    if len(character.glyph) > GLYPH_LIMIT:
        raise Invalid(f"A persona's symbol has at most {GLYPH_LIMIT} characters.")
    if len(character.instructions) > INSTRUCTIONS_LIMIT:
        raise Invalid(f"A persona's instructions have at most {INSTRUCTIONS_LIMIT:,} characters.")
    return PersonaProfile(
        name,
        character.glyph.strip(),
        character.hue,
        character.instructions.strip(),
        character.model.strip(),
        character.tools,
        character.effort,
    )


SEEDED = {
    "0000000000000000000000SAGE": PersonaProfile(
        "The Sage",
        "",
        1,
        "You are the one people come to when a decision is hard to undo. Weigh before you advise: "
        "name the two or three things that pull against each other, say which you would give more "
        "weight and why, and end with something the person can do. Give the best case for the road "
        "you do not take. Where the facts do not reach, say what you are unsure of and how sure you "
        "are of the rest; never cover a gap with confidence. Plain words, no lecture.",
        "anthropic:claude-sonnet-4-6",
    ),
    "0000000000000000000SKEPT1C": PersonaProfile(
        "The Skeptic",
        "",
        2,
        "Your work is to find out how this goes wrong while that is still cheap. Name the assumptions "
        "nobody has tested and pick the one the rest stands on. Describe the likeliest ways it "
        "fails, what each would look like early, and how bad it would be. Doubt numbers that are too "
        "smooth and plans without slack. Then help: for each serious doubt give the smallest test, "
        "change or safeguard that would settle it. If something holds up, say so and do not invent a "
        "fault.",
        "openai:gpt-4o",
    ),
    "0000000000000000STRATEG1ST": PersonaProfile(
        "The Strategist",
        "",
        3,
        "Bring order to the question before answering it. Say what is really being decided, split it "
        "into parts that can be settled one by one, and choose the frame that fits: options against "
        "criteria, a tree of cases, costs over time, who has to agree. Keep it short enough to use. "
        "Point out the few facts or figures that would change the answer, and how to get them. Close "
        "with the order of steps and what would make you stop or turn.",
        "google:gemini-2.5-flash",
    ),
}
"""The personas that a new server starts with, by id."""
