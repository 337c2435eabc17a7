"""Usage: what every call took and cost.

Rows name what was paid for but do not hang on it: money stays spent when a conversation is deleted, or a cap
could be escaped by deleting.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache

from sqlalchemy import TextClause, text

from tertulia.core.conversations import Conversation
from tertulia.core.lengths import RECENT, RecentReplies, ReplyLength
from tertulia.core.messages import Message
from tertulia.core.models import Model, TokenCount
from tertulia.core.thinking import Effort
from tertulia.core.users import Actor
from tertulia.store import access
from tertulia.store.transactions import Tx


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One call of a model, or one person's part of it."""

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
    """None: the price is not known."""
    latency_ms: int
    first_token_ms: int | None
    effort: Effort | None = None
    """How much the model was told to think. None: as much as it does by itself."""


@dataclass(frozen=True, slots=True)
class UsageSum:
    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost_micros: int
    """Of the calls whose price is known."""
    unpriced_calls: int


def of_reply(message: Message, project_id: str, model_key: str) -> UsageRow:
    """What a reply took, from the usage it carries."""
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
    """What was done in the background, charged to the conversation's owner."""
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


_ADD = text("""
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


_OF_CONVERSATION = text("""
    SELECT COUNT(*) AS calls,
        CAST(COALESCE(SUM(input_tokens), 0) AS BIGINT) AS input_tokens,
        CAST(COALESCE(SUM(cached_tokens), 0) AS BIGINT) AS cached_tokens,
        CAST(COALESCE(SUM(output_tokens), 0) AS BIGINT) AS output_tokens,
        CAST(COALESCE(SUM(reasoning_tokens), 0) AS BIGINT) AS reasoning_tokens,
        CAST(COALESCE(SUM(cost_micros), 0) AS BIGINT) AS cost_micros,
        COUNT(*) - COUNT(cost_micros) AS unpriced_calls
    FROM usage WHERE conversation_id = :conversation_id
""")


Asked = tuple[str, Effort | None]
"""A model's key, and how much it is told to think."""


def recent_replies(
    tx: Tx, actor: Actor, project_id: str, asked: Collection[Asked]
) -> Mapping[Asked, RecentReplies]:
    """Of each model as it is asked, the last replies in the project and in all projects, in one query."""
    access.to_project(tx, actor, project_id)
    wanted = tuple(dict.fromkeys(asked))
    if not wanted:
        return {}
    found: dict[tuple[int, int], list[ReplyLength]] = defaultdict(list)
    for row in tx.execute(recent_replies_of(len(wanted)), project_id=project_id, **named(wanted)):
        found[row.place, row.in_project].append(ReplyLength(row.output_tokens, row.written_tokens))
    return {
        one: RecentReplies(tuple(found[place, 1]), tuple(found[place, 0])) for place, one in enumerate(wanted)
    }


def named(wanted: Collection[Asked]) -> Mapping[str, str]:
    named: dict[str, str] = {}
    for place, (model_key, effort) in enumerate(wanted):
        provider, _, model = model_key.partition(":")
        named |= {f"provider_{place}": provider, f"model_{place}": model, f"effort_{place}": effort or ""}
    return named


@cache
def recent_replies_of(count: int) -> TextClause:
    """A part for each list, each with a limit of its own: so it reads no more than it returns."""
    parts = (_recent(place, in_project) for place in range(count) for in_project in (True, False))
    return text(" UNION ALL ".join(parts))


def _recent(place: int, in_project: bool) -> str:
    """A reply that failed before its first token is none."""
    return f"""
    SELECT * FROM (
        SELECT {place} AS place, {int(in_project)} AS in_project, output_tokens,
            output_tokens - reasoning_tokens AS written_tokens
        FROM usage
        WHERE {"project_id = :project_id AND" if in_project else ""}
            provider = :provider_{place} AND model = :model_{place} AND effort = :effort_{place}
            AND purpose = 'reply' AND output_tokens > 0
        ORDER BY id DESC LIMIT {RECENT}
    ) AS recent_{place}_{int(in_project)}
    """
