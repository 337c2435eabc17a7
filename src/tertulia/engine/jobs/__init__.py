"""Background jobs: kept in the table their cause was written with, done at least once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tertulia.engine.dependencies import Dependencies
from tertulia.engine.jobs.embed import embed, embed_inline
from tertulia.engine.jobs.index_file import index_file
from tertulia.engine.jobs.index_round import index_round, index_round_at_once
from tertulia.engine.jobs.redact_receipts import redact_receipts
from tertulia.engine.jobs.redact_search_receipts import redact_search_receipts
from tertulia.engine.jobs.sweep_attachments import sweep_attachments
from tertulia.engine.jobs.sweep_blobs import sweep_blobs
from tertulia.engine.jobs.sweep_daily import sweep_daily
from tertulia.engine.jobs.title import title
from tertulia.store.database import Tx

JobFunction = Callable[[Dependencies, str], Awaitable[None]]
"""Given the means and the job's payload."""

JOBS: dict[str, JobFunction] = {
    "embed": embed,
    "forget_found": redact_search_receipts,
    "forget_shown": redact_receipts,
    "index_file": index_file,
    "index_round": index_round,
    "sweep_attachments": sweep_attachments,
    "sweep_blobs": sweep_blobs,
    "sweep_daily": sweep_daily,
    "title": title,
}

INLINE_JOBS: dict[str, Callable[[Dependencies, Tx, str], bool]] = {
    "embed": embed_inline,
    "index_round": index_round_at_once,
}
"""How a short job is done in the transaction that claims it: False when it is a long one after all."""
