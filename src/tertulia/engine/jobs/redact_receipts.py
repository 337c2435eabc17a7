"""The redaction job: removes deleted messages from receipts that were written after the deletion.

A turn that was running may have sent the deleted text to a model.
"""

from __future__ import annotations

from tertulia.core.jobs import RedactReceipts
from tertulia.engine.dependencies import Dependencies
from tertulia.store import trees


async def redact_receipts(dependencies: Dependencies, job: RedactReceipts) -> None:
    await dependencies.db.write(lambda tx: trees.redact(tx, job))
