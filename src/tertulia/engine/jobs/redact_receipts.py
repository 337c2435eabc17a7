"""Forgetting: what was deleted while someone answered is taken out of the receipt that came after."""

from __future__ import annotations

from tertulia.engine.dependencies import Dependencies
from tertulia.store import trees


async def redact_receipts(dependencies: Dependencies, payload: str) -> None:
    await dependencies.db.write(lambda tx: trees.redact_again(tx, payload))
