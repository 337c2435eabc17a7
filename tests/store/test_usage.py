"""Usage: sums of model calls, and the recent replies of each model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tertulia.core.lengths import RECENT, RecentReplies, ReplyLength
from tertulia.core.models import FREE, Model, Tier, TokenCount
from tertulia.core.thinking import Effort
from tertulia.core.users import Actor
from tertulia.store import conversations, usage
from tertulia.store.database import Database, Tx
from tertulia.store.sql import sql
from tertulia.store.usage import ModelEffort, UsageRow, UsageSum
from tests.store.samples import FIRST, USAGE, conversation, home, opened, reply
from tests.store_fixtures import contents

MODEL = Model("openai", "gpt-4o-mini", "Mini", 128_000, 4_000, Tier.FAST, prices=FREE)


async def test_calls_are_summed_and_calls_without_a_price_counted(db: Database, ada: Actor) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))

    def spend(tx: Tx) -> None:
        turn = opened(tx, ada, chat.id)
        usage.add(tx, usage.of_reply(reply(tx, turn), chat.project_id, "openai:gpt-4o"))
        unpriced = reply(tx, turn, usage=replace(USAGE, cost_micros=None))
        usage.add(tx, usage.of_reply(unpriced, chat.project_id, "ollama:llama3:8b"))
        usage.add(tx, usage.of_job(chat, "title", MODEL, TokenCount(10, 0, 3, 0), 7))

    await db.write(spend)
    assert await db.read(lambda tx: usage.of_conversation(tx, ada, chat.id)) == UsageSum(
        calls=3,
        input_tokens=250,
        cached_tokens=40,
        output_tokens=83,
        reasoning_tokens=10,
        cost_micros=907,
        unpriced_calls=1,
    )


async def test_a_conversation_without_calls_has_zero_usage(db: Database, ada: Actor) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    assert await db.read(lambda tx: usage.of_conversation(tx, ada, chat.id)) == UsageSum(0, 0, 0, 0, 0, 0, 0)


async def test_a_reply_is_charged_to_its_asker_and_model(db: Database, ada: Actor) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    message = await db.write(lambda tx: reply(tx, opened(tx, ada, chat.id)))
    row = usage.of_reply(message, chat.project_id, "ollama:llama3:8b")
    assert (row.user_id, row.project_id, row.message_id) == (ada.user_id, chat.project_id, message.id)
    assert (row.provider, row.model, row.purpose) == ("ollama", "llama3:8b", "reply")


async def test_costs_stay_counted_when_a_conversation_is_deleted(db: Database, ada: Actor) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: usage.add(tx, usage.of_job(chat, "title", MODEL, TokenCount(1, 0, 1, 0), 5)))
    await db.write(lambda tx: conversations.remove(tx, ada, chat.id))
    assert len(contents(db)["usage"]) == 1


MINI: ModelEffort = ("openai:gpt-4o-mini", None)
LLAMA: ModelEffort = ("ollama:llama3:8b", None)


def reply_row(
    actor: Actor, project_id: str, key: ModelEffort, tokens: int, purpose: str = "reply", reasoning: int = 0
) -> UsageRow:
    provider, _, model = key[0].partition(":")
    return UsageRow(
        user_id=actor.user_id,
        project_id=project_id,
        conversation_id=None,
        message_id=None,
        provider=provider,
        model=model,
        purpose=purpose,
        input_tokens=9,
        cached_tokens=0,
        output_tokens=tokens,
        reasoning_tokens=reasoning,
        cost_micros=None,
        latency_ms=0,
        first_token_ms=None,
        effort=key[1],
    )


async def store_rows(db: Database, rows: Sequence[UsageRow]) -> None:
    await db.write(lambda tx: [usage.add(tx, row) for row in rows])


async def test_recent_replies_are_grouped_by_model_and_project(db: Database, ada: Actor, bob: Actor) -> None:
    adas_project, bobs_project = await db.read(lambda tx: (home(tx, ada), home(tx, bob)))
    await store_rows(
        db,
        [
            reply_row(ada, adas_project, MINI, 10, reasoning=4),
            reply_row(bob, bobs_project, MINI, 20),
            reply_row(ada, adas_project, LLAMA, 30),
        ],
    )
    recent = await db.read(lambda tx: usage.recent_replies(tx, ada, adas_project, [MINI, LLAMA, MINI]))
    mini, llama = recent[MINI], recent[LLAMA]
    assert mini == RecentReplies((ReplyLength(10, 6),), (ReplyLength(20, 20), ReplyLength(10, 6)))
    assert llama == RecentReplies((ReplyLength(30, 30),), (ReplyLength(30, 30),))
    assert await db.read(lambda tx: usage.recent_replies(tx, ada, adas_project, [])) == {}


async def test_recent_replies_exclude_other_purposes_failures_and_other_efforts(
    db: Database, ada: Actor
) -> None:
    project_id = await db.read(lambda tx: home(tx, ada))
    with_effort: ModelEffort = (MINI[0], Effort.HIGH)
    await store_rows(
        db,
        [
            reply_row(ada, project_id, MINI, 10),
            reply_row(ada, project_id, MINI, 20, "title"),
            reply_row(ada, project_id, MINI, 0),
            reply_row(ada, project_id, with_effort, 900),
        ],
    )
    recent = await db.read(lambda tx: usage.recent_replies(tx, ada, project_id, [MINI, with_effort]))
    assert [reply.output_tokens for reply in recent[MINI].in_project] == [10]
    assert [reply.output_tokens for reply in recent[with_effort].everywhere] == [900]


async def test_recent_replies_are_the_newest_up_to_the_limit(db: Database, ada: Actor, bob: Actor) -> None:
    adas_project, bobs_project = await db.read(lambda tx: (home(tx, ada), home(tx, bob)))
    await store_rows(db, [reply_row(ada, adas_project, MINI, tokens) for tokens in range(1, RECENT + 11)])
    await store_rows(db, [reply_row(bob, bobs_project, MINI, 1_000)])
    recent = (await db.read(lambda tx: usage.recent_replies(tx, ada, adas_project, [MINI])))[MINI]
    assert [reply.output_tokens for reply in recent.in_project] == list(range(RECENT + 10, 10, -1))
    assert [reply.output_tokens for reply in recent.everywhere] == [1_000, *range(RECENT + 10, 11, -1)]


async def test_the_usage_of_a_reply_stores_its_thinking_effort(db: Database, ada: Actor) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    voice = replace(FIRST, effort=Effort.LOW)
    message = await db.write(lambda tx: reply(tx, opened(tx, ada, chat.id), voice=voice))
    await store_rows(db, [usage.of_reply(message, chat.project_id, FIRST.model)])
    key: ModelEffort = (FIRST.model, Effort.LOW)
    recent = await db.read(lambda tx: usage.recent_replies(tx, ada, chat.project_id, [key]))
    assert recent[key].in_project == (ReplyLength(40, 35),)


@pytest.mark.parametrize("count", [1, 9])
async def test_recent_replies_are_read_from_indexes_only(db: Database, ada: Actor, count: int) -> None:
    """The query must not read the calls of other models, however many there are."""
    keys = [(f"p{number}:m", None) for number in range(count)]

    def read_plan(tx: Tx) -> str:
        for number in range(4_000):
            model = f"p{number % 99}:m" if number % 99 < 9 else "busy:m"
            usage.add(tx, reply_row(ada, f"project {number % 13}", (model, None), number + 1))
        tx.execute(sql("ANALYZE usage"))
        explain = "EXPLAIN" if db.is_shared else "EXPLAIN QUERY PLAN"
        statement = sql(f"{explain} {usage.recent_replies_of(count).text}")
        return str(tx.execute(statement, project_id="project 1", **usage.named(keys)))

    plan = await db.write(read_plan)
    assert plan.count("usage_of_replies_by_project") == count
    assert plan.count("usage_of_replies") == 2 * count
    assert "Seq Scan" not in plan
    assert "TEMP B-TREE" not in plan
