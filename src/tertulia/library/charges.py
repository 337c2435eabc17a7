"""Charges: what vectors cost at an endpoint, and whom it is charged to.

One call takes texts of several people along. Each is charged for as much of it as their texts are long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tertulia.library.embed import Bill
from tertulia.store.usage import UsageRow
from tertulia.store.vectors import Due


@dataclass(frozen=True, slots=True)
class _Payer:
    user_id: str
    project_id: str
    conversation_id: str | None


def of_texts(due: Sequence[Due], bills: Sequence[Bill]) -> tuple[UsageRow, ...]:
    """What was written by people who are gone is charged to nobody."""
    lengths: dict[_Payer, int] = {}
    for one in due:
        if one.user_id is not None:
            payer = _Payer(one.user_id, one.project_id, one.conversation_id)
            lengths[payer] = lengths.get(payer, 0) + max(1, len(one.content))
    return tuple(row for bill in bills for row in _shared(bill, lengths))


def _shared(bill: Bill, lengths: dict[_Payer, int]) -> list[UsageRow]:
    """The shares add up to the bill: each is a part of what those before have left."""
    rows = []
    left, tokens, cost = sum(lengths.values()), bill.tokens, bill.cost_micros
    for payer, length in lengths.items():
        share = replace(
            bill, tokens=tokens * length // left, cost_micros=None if cost is None else cost * length // left
        )
        rows.append(_row(payer.user_id, payer.project_id, payer.conversation_id, share))
        left, tokens = left - length, tokens - share.tokens
        cost = None if cost is None or share.cost_micros is None else cost - share.cost_micros
    return rows


def of_question(user_id: str, project_ids: Sequence[str], bills: Sequence[Bill]) -> tuple[UsageRow, ...]:
    project_id = project_ids[0] if len(project_ids) == 1 else None
    return tuple(_row(user_id, project_id, None, bill) for bill in bills)


def _row(user_id: str, project_id: str | None, conversation_id: str | None, bill: Bill) -> UsageRow:
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
