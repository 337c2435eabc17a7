"""Forgetting: what was found in a project and deleted since is taken out of the receipts that show it."""

from __future__ import annotations

from functools import partial

from tertulia.engine.means import Means
from tertulia.store import receipts


async def forget_found(means: Means, payload: str) -> None:
    """Reads beside the others, and writes only what has to change."""
    after: str | None = None
    while True:
        look = partial(receipts.showing_what_is_gone, payload=payload, after=after)
        showing, after = await means.db.read(look)
        for one in showing:
            forget = partial(
                receipts.forget,
                conversation_id=one.conversation_id,
                number=None,
                message_ids=one.source_ids,
            )
            await means.db.write(forget)
        if after is None:
            return
