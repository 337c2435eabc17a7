"""Usage: tokens, cost and latency of every model call.

Rows have no foreign key to their conversation: the cost stays counted when the conversation is deleted, as
people could otherwise escape a cap by deleting.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache

from tertulia.core.conversations import Conversation
from tertulia.core.lengths import RECENT, RecentReplies, ReplyLength
from tertulia.core.messages import Message
from tertulia.core.models import Model, TokenCount
from tertulia.core.thinking import Effort
from tertulia.core.users import Actor
from tertulia.store import access
from tertulia.store.sql import Statement, sql
from tertulia.store.transactions import Tx


@dataclass(frozen=True, slots=True)
class UsageRow:
    """A single model call, or one user's share of it."""

    user_id: str
    project_id: str | None
    conversation_id: str | None
    message_id: str | None
    provider: str
    model: str
    purpose: str
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost_micros: int | None
    """None if the price is not known."""
    latency_ms: int
    first_token_ms: int | None
    effort: Effort | None = None
    """The thinking effort that was requested; None for the model's default."""


@dataclass(frozen=True, slots=True)
class UsageSum:
    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost_micros: int
    """The cost of the calls whose price is known."""
    unpriced_calls: int


def of_reply(message: Message, project_id: str, model_key: str) -> UsageRow:
    """The usage row of a reply, from the usage stored in its message."""
    provider, _, model = model_key.partition(":")
    usage = message.usage
    assert usage is not None, "a reply without usage called no model"
    return UsageRow(
        user_id=message.created_by,
        project_id=project_id,
        conversation_id=message.conversation_id,
        message_id=message.id,
        provider=provider,
        model=model,
        purpose="reply",
        input_tokens=usage.input_tokens,
        cached_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cost_micros=usage.cost_micros,
        latency_ms=usage.latency_ms,
        first_token_ms=usage.first_token_ms,
        effort=message.voice.effort if message.voice else None,
    )


def of_job(
    conversation: Conversation, purpose: str, model: Model, count: TokenCount, cost_micros: int | None
) -> UsageRow:
    """The usage row of a background job, charged to the conversation's owner."""
    return UsageRow(
        user_id=conversation.owner_id,
        project_id=conversation.project_id,
        conversation_id=conversation.id,
        message_id=None,
        provider=model.provider,
        model=model.model_id,
        purpose=purpose,
        input_tokens=count.input_tokens,
        cached_tokens=count.cached_tokens,
        output_tokens=count.output_tokens,
        reasoning_tokens=count.reasoning_tokens,
        cost_micros=cost_micros,
        latency_ms=0,
        first_token_ms=None,
    )


def add(tx: Tx, row: UsageRow) -> None:
    tx.execute(
        _ADD,
        id=tx.new_id(),
        user_id=row.user_id,
        project_id=row.project_id,
        conversation_id=row.conversation_id,
        message_id=row.message_id,
        provider=row.provider,
        model=row.model,
        purpose=row.purpose,
        input_tokens=row.input_tokens,
        cached_tokens=row.cached_tokens,
        output_tokens=row.output_tokens,
        reasoning_tokens=row.reasoning_tokens,
        cost_micros=row.cost_micros,
        latency_ms=row.latency_ms,
        first_token_ms=row.first_token_ms,
        effort=row.effort or "",
        now=tx.now,
    )


_ADD = sql("""
    INSERT INTO usage (
        id, user_id, project_id, conversation_id, message_id, provider, model, purpose, input_tokens,
        cached_tokens, output_tokens, reasoning_tokens, cost_micros, latency_ms, first_token_ms,
        effort, created_at
    )
    VALUES (
        :id, :user_id, :project_id, :conversation_id, :message_id, :provider, :model, :purpose, :input_tokens,
        :cached_tokens, :output_tokens, :reasoning_tokens, :cost_micros, :latency_ms, :first_token_ms,
        :effort, :now
    )
""")


def of_conversation(tx: Tx, actor: Actor, conversation_id: str) -> UsageSum:
    access.to_conversation(tx, actor, conversation_id)
    return UsageSum(*tx.one(_OF_CONVERSATION, conversation_id=conversation_id))


_OF_CONVERSATION = sql("""
    SELECT COUNT(*) AS calls,
        CAST(COALESCE(SUM(input_tokens), 0) AS BIGINT) AS input_tokens,
        CAST(COALESCE(SUM(cached_tokens), 0) AS BIGINT) AS cached_tokens,
        CAST(COALESCE(SUM(output_tokens), 0) AS BIGINT) AS output_tokens,
        CAST(COALESCE(SUM(reasoning_tokens), 0) AS BIGINT) AS reasoning_tokens,
        CAST(COALESCE(SUM(cost_micros), 0) AS BIGINT) AS cost_micros,
        COUNT(*) - COUNT(cost_micros) AS unpriced_calls
    FROM usage WHERE conversation_id = :conversation_id
""")


ModelEffort = tuple[str, Effort | None]
"""A model's key and the requested thinking effort."""


def recent_replies(
    tx: Tx, actor: Actor, project_id: str, keys: Collection[ModelEffort]
) -> Mapping[ModelEffort, RecentReplies]:
    """The newest replies of each model and effort, in the project and in all projects, in one query."""
    access.to_project(tx, actor, project_id)
    distinct_keys = tuple(dict.fromkeys(keys))
    if not distinct_keys:
        return {}
    lengths: dict[tuple[int, int], list[ReplyLength]] = defaultdict(list)
    for row in tx.execute(
        recent_replies_of(len(distinct_keys)), project_id=project_id, **named(distinct_keys)
    ):
        lengths[row.number, row.in_project].append(ReplyLength(row.output_tokens, row.written_tokens))
    return {
        key: RecentReplies(tuple(lengths[number, 1]), tuple(lengths[number, 0]))
        for number, key in enumerate(distinct_keys)
    }


def named(keys: Collection[ModelEffort]) -> Mapping[str, str]:
    params: dict[str, str] = {}
    for number, (model_key, effort) in enumerate(keys):
        provider, _, model = model_key.partition(":")
        params |= {f"provider_{number}": provider, f"model_{number}": model, f"effort_{number}": effort or ""}
    return params


@cache
def recent_replies_of(count: int) -> Statement:
    """The query for the recent replies of `count` models.

    It has one part with its own limit per list, so that it reads no more rows than it returns.
    """
    parts = (_recent(number, in_project) for number in range(count) for in_project in (True, False))
    return sql(" UNION ALL ".join(parts))


def _recent(number: int, in_project: bool) -> str:
    """The newest replies of one model; those that failed before their first token are left out."""
    return f"""
    SELECT * FROM (
        SELECT {number} AS number, {int(in_project)} AS in_project, output_tokens,
            output_tokens - reasoning_tokens AS written_tokens
        FROM usage
        WHERE {"project_id = :project_id AND" if in_project else ""}
            provider = :provider_{number} AND model = :model_{number} AND effort = :effort_{number}
            AND purpose = 'reply' AND output_tokens > 0
        ORDER BY id DESC LIMIT {RECENT}
    ) AS recent_{number}_{int(in_project)}
    """
