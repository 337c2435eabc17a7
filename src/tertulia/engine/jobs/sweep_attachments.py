"""The sweep of attachments: what was brought along for a message that never came goes after a day."""

from __future__ import annotations

from tertulia.core.attachments import UNSENT_KEPT_MS
from tertulia.engine.means import Means
from tertulia.store import attachments


async def sweep_attachments(means: Means, _: str) -> None:
    await means.db.write(lambda tx: attachments.sweep(tx, tx.now - UNSENT_KEPT_MS))
