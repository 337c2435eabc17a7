"""Model catalogue: windows, output limits, prices, abilities and tiers of the known models.

The table is `catalogue.toml`; `scripts/catalogue.py` refreshes its figures. A model that is not in the table
still works: its tier is balanced and its price unknown.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

from tertulia.core.models import Abilities, Model, Prices, Tier
from tertulia.core.thinking import Effort, ThinkingForm

Dialect = Literal["openai_chat", "openai_responses", "anthropic", "google"]
"""The API protocols of the providers. Each has a module of its own (`client_pool.DIALECT_MODULES`)."""
STRUCTURED = ("openai", "anthropic", "google")
"""Providers whose models with tools also support JSON schemas."""
FORMS = {"anthropic": ThinkingForm.ADAPTIVE, "google": ThinkingForm.LEVEL}
"""How each provider's thinking models are told how much to think, unless their row says otherwise."""
UNKNOWN_WINDOW = 128_000
DEFAULT_OUTPUT = 4096


@dataclass(frozen=True, slots=True)
class CatalogueModel:
    model: Model
    dialect: Dialect | None
    """Set if the model needs another dialect than its provider's default."""
    is_retired: bool
    """No longer offered. Kept so that old conversations still name the model that replied."""


@cache
def entries() -> tuple[CatalogueModel, ...]:
    table = tomllib.loads(resources.files(__package__).joinpath("catalogue.toml").read_text("utf-8"))
    return tuple(
        _entry(provider, model_id, row) for provider, rows in table.items() for model_id, row in rows.items()
    )


def tier_of(model_id: str) -> Tier:
    """A model's tier by its name alone, whichever provider serves it; balanced if unknown."""
    name = model_id.rpartition("/")[2]
    return _tiers().get(name, Tier.BALANCED)


@cache
def _tiers() -> dict[str, Tier]:
    return {entry.model.model_id.rpartition("/")[2]: entry.model.tier for entry in entries()}


def unknown(provider: str, model_id: str) -> Model:
    """A model that the catalogue does not list: usable, with an unknown price, not a price of zero."""
    return Model(provider, model_id, model_id, UNKNOWN_WINDOW, DEFAULT_OUTPUT, tier_of(model_id))


def _entry(provider: str, model_id: str, row: dict[str, Any]) -> CatalogueModel:
    abilities = row.get("can", "").split()
    model = Model(
        provider=provider,
        model_id=model_id,
        display_name=row.get("name", model_id),
        context_window=row["window"],
        max_output_tokens=row["output"],
        tier=Tier(row["tier"]),
        abilities=Abilities(
            tools="tools" in abilities,
            vision="vision" in abilities,
            thinking="thinking" in abilities,
            structured=provider in STRUCTURED and "tools" in abilities,
        ),
        prices=Prices(*(_micros(row.get(kind)) for kind in ("in", "cached", "out", "written"))),
        vocabulary=row.get("vocabulary", "o200k_base"),
        max_input_tokens=row.get("input"),
        efforts=tuple(Effort(name) for name in row.get("efforts", "").split()),
        thinking_form=ThinkingForm(row.get("thinks") or _usual_form(provider, abilities)),
    )
    return CatalogueModel(model, row.get("dialect"), row.get("retired", False))


def _usual_form(provider: str, abilities: list[str]) -> ThinkingForm:
    """The thinking form of the provider's newest models, for models released after this table was written."""
    return FORMS.get(provider, ThinkingForm.EFFORT) if "thinking" in abilities else ThinkingForm.NONE


def _micros(dollars: float | None) -> int | None:
    return None if dollars is None else round(dollars * 1_000_000)
