"""Forgetting: what was found in a project and deleted since is taken out of the receipts that show it, and
out of what stands under the questions it was found for."""

from __future__ import annotations

from functools import partial

from tertulia.engine.dependencies import Dependencies
from tertulia.store import receipts, turns


async def redact_search_receipts(dependencies: Dependencies, payload: str) -> None:
    """Reads beside the others, and writes only what has to change."""
    await _in_receipts(dependencies, payload)
    await _under_questions(dependencies, receipts.project_of(payload))


async def _in_receipts(dependencies: Dependencies, payload: str) -> None:
    after: str | None = None
    while True:
        look = partial(receipts.next_stale, payload=payload, after=after)
        showing, after = await dependencies.db.read(look)
        for one in showing:
            forget = partial(
                receipts.redact_source,
                conversation_id=one.conversation_id,
                number=None,
                message_ids=one.source_ids,
            )
            await dependencies.db.write(forget)
        if after is None:
            return


async def _under_questions(dependencies: Dependencies, project_id: str) -> None:
    after: str | None = ""
    while after is not None:
        gone = await dependencies.db.read(partial(turns.found_gone, project_id=project_id, after=after))
        if gone.turn_ids:
            forget = partial(turns.forget_found, turn_ids=gone.turn_ids, source_ids=gone.source_ids)
            await dependencies.db.write(forget)
        after = gone.next
