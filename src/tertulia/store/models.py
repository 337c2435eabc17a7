"""Model overrides: facts about a model that an administrator set and that replace the catalogue's."""

from __future__ import annotations

from tertulia.core.models import Abilities, Model, Prices, Tier
from tertulia.core.serialization import from_json
from tertulia.store.column_values import as_json
from tertulia.store.sql import sql
from tertulia.store.transactions import Row, Tx


def overrides(tx: Tx) -> tuple[Model, ...]:
    return tuple(_model(row) for row in tx.execute(_OVERRIDES))


_OVERRIDES = sql("""
    SELECT provider, model_id, display_name, context_window, max_output_tokens, input_micros, cached_micros,
        output_micros, tier, abilities, is_local, is_demo, vocabulary
    FROM model_metadata ORDER BY provider, model_id
""")


def _model(row: Row) -> Model:
    return Model(
        provider=row.provider,
        model_id=row.model_id,
        display_name=row.display_name,
        context_window=row.context_window,
        max_output_tokens=row.max_output_tokens,
        tier=Tier(row.tier),
        abilities=from_json(Abilities, row.abilities),
        prices=Prices(row.input_micros, row.cached_micros, row.output_micros),
        is_local=bool(row.is_local),
        is_demo=bool(row.is_demo),
        vocabulary=row.vocabulary,
    )


def save(tx: Tx, model: Model) -> None:
    tx.execute(
        _SAVE,
        provider=model.provider,
        model_id=model.model_id,
        display_name=model.display_name,
        context_window=model.context_window,
        max_output_tokens=model.max_output_tokens,
        input_micros=model.prices.input_micros,
        cached_micros=model.prices.cached_micros,
        output_micros=model.prices.output_micros,
        tier=model.tier.value,
        abilities=as_json(model.abilities),
        is_local=model.is_local,
        is_demo=model.is_demo,
        vocabulary=model.vocabulary,
        now=tx.now,
    )


_SAVE = sql("""
    INSERT INTO model_metadata (
        provider, model_id, display_name, context_window, max_output_tokens, input_micros, cached_micros,
        output_micros, tier, abilities, is_local, is_demo, vocabulary, updated_at
    )
    VALUES (
        :provider, :model_id, :display_name, :context_window, :max_output_tokens, :input_micros,
        :cached_micros, :output_micros, :tier, :abilities, :is_local, :is_demo, :vocabulary, :now
    )
    ON CONFLICT (provider, model_id) DO UPDATE SET
        display_name = excluded.display_name, context_window = excluded.context_window,
        max_output_tokens = excluded.max_output_tokens, input_micros = excluded.input_micros,
        cached_micros = excluded.cached_micros, output_micros = excluded.output_micros, tier = excluded.tier,
        abilities = excluded.abilities, is_local = excluded.is_local, is_demo = excluded.is_demo,
        vocabulary = excluded.vocabulary, updated_at = excluded.updated_at
""")


def remove(tx: Tx, provider: str, model_id: str) -> None:
    """Removes the override, so that the catalogue's facts apply again."""
    tx.execute(_REMOVE, provider=provider, model_id=model_id)


_REMOVE = sql("DELETE FROM model_metadata WHERE provider = :provider AND model_id = :model_id")
