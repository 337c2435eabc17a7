"""Billing of embeddings: splits the cost of an endpoint's calls among the users whose texts were embedded.

One call embeds texts of several users. Each user's share is proportional to the length of their texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tertulia.library.embedders import EmbeddingCharge
from tertulia.store.usage import UsageRow
from tertulia.store.vectors import PendingChunk


@dataclass(frozen=True, slots=True)
class _Payer:
    user_id: str
    project_id: str
    conversation_id: str | None


def of_texts(due: Sequence[PendingChunk], bills: Sequence[EmbeddingCharge]) -> tuple[UsageRow, ...]:
    """The usage rows for embedding these chunks. Texts of deleted users are charged to nobody."""
    lengths: dict[_Payer, int] = {}
    for chunk in due:
        if chunk.user_id is not None:
            payer = _Payer(chunk.user_id, chunk.project_id, chunk.conversation_id)
            lengths[payer] = lengths.get(payer, 0) + max(1, len(chunk.content))
    return tuple(row for bill in bills for row in _split(bill, lengths))


def _split(bill: EmbeddingCharge, lengths: dict[_Payer, int]) -> list[UsageRow]:
    """Splits one charge by text length.

    Each share is taken from the remainder, so the shares add up exactly.
    """
    rows = []
    length_left, tokens_left, cost_left = sum(lengths.values()), bill.tokens, bill.cost_micros
    for payer, length in lengths.items():
        share = replace(
            bill,
            tokens=tokens_left * length // length_left,
            cost_micros=None if cost_left is None else cost_left * length // length_left,
        )
        rows.append(_row(payer.user_id, payer.project_id, payer.conversation_id, share))
        length_left, tokens_left = length_left - length, tokens_left - share.tokens
        cost_left = None if cost_left is None or share.cost_micros is None else cost_left - share.cost_micros
    return rows


def of_question(
    user_id: str, project_ids: Sequence[str], bills: Sequence[EmbeddingCharge]
) -> tuple[UsageRow, ...]:
    """The usage rows for embedding a search query; without a project if several projects are searched."""
    project_id = project_ids[0] if len(project_ids) == 1 else None
    return tuple(_row(user_id, project_id, None, bill) for bill in bills)


def _row(
    user_id: str, project_id: str | None, conversation_id: str | None, bill: EmbeddingCharge
) -> UsageRow:
    return UsageRow(
        user_id=user_id,
        project_id=project_id,
        conversation_id=conversation_id,
        message_id=None,
        provider="embeddings",
        model=bill.model,
        purpose="embedding",
        input_tokens=bill.tokens,
        cached_tokens=0,
        output_tokens=0,
        reasoning_tokens=0,
        cost_micros=bill.cost_micros,
        latency_ms=bill.latency_ms,
        first_token_ms=None,
    )
