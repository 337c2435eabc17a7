"""The search redaction job: removes deleted search results from receipts and from below questions."""

from __future__ import annotations

from functools import partial

from tertulia.core.jobs import RedactSearchReceipts
from tertulia.engine.dependencies import Dependencies
from tertulia.store import receipts, turns


async def redact_search_receipts(dependencies: Dependencies, job: RedactSearchReceipts) -> None:
    """Reads in batches without a lock and writes only what has to change."""
    await _redact_receipts(dependencies, job)
    await _redact_questions(dependencies, job.project_id)


async def _redact_receipts(dependencies: Dependencies, job: RedactSearchReceipts) -> None:
    after: str | None = None
    while True:
        stale_receipts, after = await dependencies.db.read(partial(receipts.next_stale, job=job, after=after))
        for stale in stale_receipts:
            redact = partial(
                receipts.redact_source,
                conversation_id=stale.conversation_id,
                number=None,
                message_ids=stale.source_ids,
            )
            await dependencies.db.write(redact)
        if after is None:
            return


async def _redact_questions(dependencies: Dependencies, project_id: str) -> None:
    after: str | None = ""
    while after is not None:
        stale = await dependencies.db.read(partial(turns.found_gone, project_id=project_id, after=after))
        if stale.turn_ids:
            redact = partial(turns.forget_found, turn_ids=stale.turn_ids, source_ids=stale.source_ids)
            await dependencies.db.write(redact)
        after = stale.next
