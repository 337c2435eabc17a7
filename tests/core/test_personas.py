"""Personas: how they are called, addressed and kept within bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tertulia.core.errors import Invalid
from tertulia.core.ids import is_ulid
from tertulia.core.personas import SEEDED, Character, cleaned, handle_of

BAKER = Character("The Baker", "", 4, "Bake.", "voices:alpha")


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
def test_a_persona_is_addressed_by_its_name_without_the_article(name: str, handle: str) -> None:
    assert handle_of(name) == handle


def test_what_is_seeded_is_as_clean_as_what_people_make() -> None:
    for persona_id, character in SEEDED.items():
        assert is_ulid(persona_id)
        assert cleaned(character) == character
    assert len({handle_of(character.name) for character in SEEDED.values()}) == len(SEEDED)
    assert len({character.hue for character in SEEDED.values()}) == len(SEEDED)


def test_space_around_words_is_not_kept() -> None:
    spaced = replace(BAKER, name=" The   Baker ", glyph=" 🥖 ", instructions="\n Bake.\n")
    assert cleaned(spaced) == replace(BAKER, glyph="🥖")


@pytest.mark.parametrize("name", ["", "  ", "...", "x" * 61, "A]: B", 'Say "hi"'])
def test_a_name_that_would_break_the_tags_is_refused(name: str) -> None:
    with pytest.raises(Invalid):
        cleaned(replace(BAKER, name=name))
