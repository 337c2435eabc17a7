"""Personas: names, handles, and the limits of their fields."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tertulia.core.errors import Invalid
from tertulia.core.ids import is_ulid
from tertulia.core.personas import SEEDED, PersonaProfile, cleaned, handle_of

BAKER = PersonaProfile("The Baker", "", 4, "Bake.", "voices:alpha")


@pytest.mark.parametrize(
    ("name", "handle"),
    [
        ("The Sage", "sage"),
        ("  The  Night Baker ", "night-baker"),
        ("Theo", "theo"),
        ("Ms. O'Neill", "ms-o-neill"),
        ("Ärztin", "ärztin"),
        ("賢者", "賢者"),
    ],
)
def test_a_personas_handle_is_its_name_without_the_article(name: str, handle: str) -> None:
    assert handle_of(name) == handle


def test_the_built_in_personas_are_valid_and_differ_in_handle_and_colour() -> None:
    for persona_id, character in SEEDED.items():
        assert is_ulid(persona_id)
        assert cleaned(character) == character
    assert len({handle_of(character.name) for character in SEEDED.values()}) == len(SEEDED)
    assert len({character.hue for character in SEEDED.values()}) == len(SEEDED)


def test_cleaning_a_persona_removes_extra_whitespace() -> None:
    spaced = replace(BAKER, name=" The   Baker ", glyph=" 🥖 ", instructions="\n Bake.\n")
    assert cleaned(spaced) == replace(BAKER, glyph="🥖")


@pytest.mark.parametrize("name", ["", "  ", "...", "x" * 61, "A]: B", 'Say "hi"'])
def test_a_persona_name_is_refused_if_it_would_break_the_speaker_tags(name: str) -> None:
    with pytest.raises(Invalid):
        cleaned(replace(BAKER, name=name))
