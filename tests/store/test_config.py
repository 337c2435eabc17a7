"""Instance settings: JSON values by key."""

from __future__ import annotations

from tertulia.store import config
from tertulia.store.database import Database


async def test_any_json_value_is_stored_under_its_key(db: Database) -> None:
    assert await db.read(config.get_all) == {}
    await db.write(lambda tx: config.set(tx, "name", "Tertulia"))
    await db.write(lambda tx: config.set(tx, "limits", {"turns": 8, "models": ["a"], "none": None}))
    await db.write(lambda tx: config.set(tx, "name", "Café"))
    assert await db.read(config.get_all) == {
        "name": "Café",
        "limits": {"turns": 8, "models": ["a"], "none": None},
    }
