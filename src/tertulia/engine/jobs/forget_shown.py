"""Forgetting: what was deleted while someone answered is taken out of the receipt that came after."""

from __future__ import annotations

from tertulia.engine.means import Means
from tertulia.store import trees


async def forget_shown(means: Means, payload: str) -> None:
    await means.db.write(lambda tx: trees.redact_again(tx, payload))
