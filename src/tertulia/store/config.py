"""Instance settings: one JSON value per key, for the whole server."""

from __future__ import annotations

import json
from typing import Any

from tertulia.store.column_values import as_json
from tertulia.store.sql import sql
from tertulia.store.transactions import Tx


def get_all(tx: Tx) -> dict[str, Any]:
    return {row.key: json.loads(row.value) for row in tx.execute(_GET_ALL)}


_GET_ALL = sql("SELECT key, value FROM config ORDER BY key")


def default_models(tx: Tx) -> tuple[str, ...]:
    """The models that new conversations start with in projects without default models of their own."""
    return tuple(get_all(tx).get("default_models", ()))


def set(tx: Tx, key: str, value: object) -> None:
    tx.execute(_SET, key=key, value=as_json(value), now=tx.now)


_SET = sql("""
    INSERT INTO config (key, value, updated_at) VALUES (:key, :value, :now)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
""")
