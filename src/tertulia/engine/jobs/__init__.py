"""Background jobs: the function that runs each kind, at least once for each job in the queue."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from tertulia.core.jobs import (
    EmbedChunks,
    IndexFile,
    IndexRounds,
    NameConversation,
    P,
    RedactReceipts,
    RedactSearchReceipts,
    SweepAttachments,
    SweepBlobs,
    SweepDaily,
    decode,
)
from tertulia.engine.dependencies import Dependencies
from tertulia.engine.jobs.embed import embed, embed_inline
from tertulia.engine.jobs.index_file import index_file
from tertulia.engine.jobs.index_round import index_rounds, index_rounds_inline
from tertulia.engine.jobs.redact_receipts import redact_receipts
from tertulia.engine.jobs.redact_search_receipts import redact_search_receipts
from tertulia.engine.jobs.sweep_attachments import sweep_attachments
from tertulia.engine.jobs.sweep_blobs import sweep_blobs
from tertulia.engine.jobs.sweep_daily import sweep_daily
from tertulia.engine.jobs.title import title
from tertulia.store.database import Tx

JobFunction = Callable[[Dependencies, str], Awaitable[None]]
"""Runs a job, given its encoded payload."""
InlineJob = Callable[[Dependencies, Tx, str], bool]
"""Runs a short job in the transaction that claims it; False if the job is too long for that."""


def _job(kind: type[P], run: Callable[[Dependencies, P], Awaitable[None]]) -> tuple[str, JobFunction]:
    return kind.kind, lambda dependencies, payload: run(dependencies, decode(kind, payload))


def _inline(kind: type[P], run: Callable[[Dependencies, Tx, P], bool]) -> tuple[str, InlineJob]:
    return kind.kind, lambda dependencies, tx, payload: run(dependencies, tx, decode(kind, payload))


JOBS: Mapping[str, JobFunction] = dict(
    (
        _job(EmbedChunks, embed),
        _job(IndexFile, index_file),
        _job(IndexRounds, index_rounds),
        _job(NameConversation, title),
        _job(RedactReceipts, redact_receipts),
        _job(RedactSearchReceipts, redact_search_receipts),
        _job(SweepAttachments, sweep_attachments),
        _job(SweepBlobs, sweep_blobs),
        _job(SweepDaily, sweep_daily),
    )
)

INLINE_JOBS: Mapping[str, InlineJob] = dict(
    (_inline(EmbedChunks, embed_inline), _inline(IndexRounds, index_rounds_inline))
)
