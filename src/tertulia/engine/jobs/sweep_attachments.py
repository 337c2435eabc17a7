"""The sweep of attachments: what was brought along for a message that never came goes after a day."""

from __future__ import annotations

from tertulia.core.attachments import UNSENT_KEPT_MS
from tertulia.engine.dependencies import Dependencies
from tertulia.store import attachments


async def sweep_attachments(dependencies: Dependencies, _: str) -> None:
    await dependencies.db.write(lambda tx: attachments.sweep(tx, tx.now - UNSENT_KEPT_MS))
