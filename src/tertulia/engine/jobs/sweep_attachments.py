"""The attachment clean-up job: deletes attachments that were not sent within a day."""

from __future__ import annotations

from tertulia.core.attachments import UNSENT_KEPT_MS
from tertulia.core.jobs import SweepAttachments
from tertulia.engine.dependencies import Dependencies
from tertulia.store import attachments


async def sweep_attachments(dependencies: Dependencies, _: SweepAttachments) -> None:
    await dependencies.db.write(lambda tx: attachments.sweep(tx, tx.now - UNSENT_KEPT_MS))
