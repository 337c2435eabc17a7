"""Background jobs: kept in the table their cause was written with, done at least once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tertulia.engine.jobs.embed import embed, embed_at_once
from tertulia.engine.jobs.forget_found import forget_found
from tertulia.engine.jobs.forget_shown import forget_shown
from tertulia.engine.jobs.index_file import index_file
from tertulia.engine.jobs.index_round import index_round, index_round_at_once
from tertulia.engine.jobs.sweep_attachments import sweep_attachments
from tertulia.engine.jobs.sweep_blobs import sweep_blobs
from tertulia.engine.jobs.sweep_daily import sweep_daily
from tertulia.engine.jobs.title import title
from tertulia.engine.means import Means
from tertulia.store.database import Tx

Do = Callable[[Means, str], Awaitable[None]]
"""Given the means and the job's payload."""

JOBS: dict[str, Do] = {
    "embed": embed,
    "forget_found": forget_found,
    "forget_shown": forget_shown,
    "index_file": index_file,
    "index_round": index_round,
    "sweep_attachments": sweep_attachments,
    "sweep_blobs": sweep_blobs,
    "sweep_daily": sweep_daily,
    "title": title,
}

AT_ONCE: dict[str, Callable[[Means, Tx, str], bool]] = {
    "embed": embed_at_once,
    "index_round": index_round_at_once,
}
"""How a short job is done in the transaction that claims it: False when it is a long one after all."""
