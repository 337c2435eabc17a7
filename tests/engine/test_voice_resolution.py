"""Voice resolution: the model of a persona whose own model cannot answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tertulia.core.errors import UnknownModel
from tertulia.core.models import Model, Tier
from tertulia.core.personas import Ownership, Persona, PersonaProfile
from tertulia.engine.voice_resolution import closest_model, model_for_persona
from tertulia.providers.egress import LOOPBACK_ONLY
from tertulia.providers.registry import ProviderRegistry

OWN = Model("house", "own", "Own", 8_000, 1_000, Tier.BALANCED)
SMART, BALANCED, CHEAP = (
    replace(OWN, model_id=tier.value, tier=tier) for tier in (Tier.SMART, Tier.BALANCED, Tier.CHEAP)
)
DEMO = replace(OWN, model_id="demo", is_demo=True)


@pytest.mark.parametrize(
    ("own", "at_hand", "speaks"),
    [
        (OWN, [DEMO, SMART, CHEAP, BALANCED], BALANCED),
        (OWN, [DEMO, CHEAP, SMART], SMART),
        (OWN, [DEMO, CHEAP], CHEAP),
        (OWN, [DEMO], DEMO),
        (None, [DEMO, CHEAP, BALANCED, SMART], SMART),
    ],
)
def test_the_closest_model_is_of_the_same_tier_or_the_strongest_and_the_demo_last(
    own: Model | None, at_hand: list[Model], speaks: Model
) -> None:
    assert closest_model(own, at_hand) is speaks


def test_a_persona_without_any_ready_model_raises_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    character = PersonaProfile("The Sage", "", 1, "", "anthropic:claude-sonnet-4-6")
    persona = Persona("P", Ownership.ALL, None, None, character, 1, 0, 0)
    with pytest.raises(UnknownModel, match="The Sage"):
        model_for_persona(persona, ProviderRegistry.from_environment({}, tmp_path, LOOPBACK_ONLY))
