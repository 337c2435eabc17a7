"""Voices: who sits at the table for a turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

SEATS = 8


@dataclass(frozen=True, slots=True)
class Voice:
    id: str
    """The lane: the same from round to round, "openai:gpt-4o:0" or "persona:<id>"."""
    seat: int
    """1 to 8: hue and shape."""
    name: str
    model: str
    """The model's key, "openai:gpt-4o"."""
    persona_id: str | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """A model someone wants at the table, and what it is called."""

    model: str
    name: str


def seat(wanted: Iterable[Wanted]) -> tuple[Voice, ...]:
    """Gives each model its place; the same model twice becomes two voices with names of their own."""
    seen: Counter[str] = Counter()
    voices = []
    for place, one in enumerate(wanted, start=1):
        nth = seen[one.model]
        seen[one.model] += 1
        name = one.name if nth == 0 else f"{one.name} {nth + 1}"
        voices.append(Voice(id=f"{one.model}:{nth}", seat=place, name=name, model=one.model))
    return tuple(voices)
