"""Model overrides: saved by an administrator in place of the catalogue's facts."""

from __future__ import annotations

from dataclasses import replace

from tertulia.core.models import Abilities, Model, Prices, Tier
from tertulia.store import models
from tertulia.store.database import Database

MODEL = Model(
    provider="openai",
    model_id="gpt-4o",
    display_name="GPT-4o",
    context_window=128_000,
    max_output_tokens=16_000,
    tier=Tier.SMART,
    abilities=Abilities(tools=True, vision=True),
    prices=Prices(2_500_000, None, 10_000_000),
    is_local=True,
    vocabulary="o200k_base",
)


async def test_an_override_reads_back_as_it_was_saved(db: Database) -> None:
    await db.write(lambda tx: models.save(tx, MODEL))
    assert await db.read(models.overrides) == (MODEL,)


async def test_a_later_override_replaces_the_earlier_one(db: Database) -> None:
    later = replace(MODEL, tier=Tier.FAST, prices=Prices(), is_local=False, is_demo=True)
    await db.write(lambda tx: models.save(tx, MODEL))
    await db.write(lambda tx: models.save(tx, later))
    assert await db.read(models.overrides) == (later,)
    await db.write(lambda tx: models.remove(tx, "openai", "gpt-4o"))
    assert await db.read(models.overrides) == ()
