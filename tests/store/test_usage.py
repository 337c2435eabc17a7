"""Usage: what calls took, summed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from sqlalchemy import text

from tertulia.core.lengths import RECENT, RecentReplies, ReplyLength
from tertulia.core.models import FREE, Model, Tier, TokenCount
from tertulia.core.thinking import Effort
from tertulia.core.users import Actor
from tertulia.store import conversations, usage
from tertulia.store.database import Database, Tx
from tertulia.store.usage import Asked, UsageRow, UsageSum
from tests.store.samples import FIRST, USAGE, conversation, home, opened, reply
from tests.store_fixtures import contents

MODEL = Model("openai", "gpt-4o-mini", "Mini", 128_000, 4_000, Tier.FAST, prices=FREE)


async def test_calls_are_summed_and_unknown_prices_are_counted(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))

    def spend(tx: Tx) -> None:
        turn = opened(tx, ada, made.id)
        usage.add(tx, usage.of_reply(reply(tx, turn), made.project_id, "openai:gpt-4o"))
        unpriced = reply(tx, turn, usage=replace(USAGE, cost_micros=None))
        usage.add(tx, usage.of_reply(unpriced, made.project_id, "ollama:llama3:8b"))
        usage.add(tx, usage.of_job(made, "title", MODEL, TokenCount(10, 0, 3, 0), 7))

    await db.write(spend)
    assert await db.read(lambda tx: usage.of_conversation(tx, ada, made.id)) == UsageSum(
        calls=3,
        input_tokens=250,
        cached_tokens=40,
        output_tokens=83,
        reasoning_tokens=10,
        cost_micros=907,
        unpriced_calls=1,
    )


async def test_a_conversation_without_calls_took_nothing(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    assert await db.read(lambda tx: usage.of_conversation(tx, ada, made.id)) == UsageSum(0, 0, 0, 0, 0, 0, 0)


async def test_a_reply_is_charged_to_who_asked_and_to_its_model(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    said = await db.write(lambda tx: reply(tx, opened(tx, ada, made.id)))
    row = usage.of_reply(said, made.project_id, "ollama:llama3:8b")
    assert (row.user_id, row.project_id, row.message_id) == (ada.user_id, made.project_id, said.id)
    assert (row.provider, row.model, row.purpose) == ("ollama", "llama3:8b", "reply")


async def test_money_stays_spent_when_a_conversation_is_deleted(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: usage.add(tx, usage.of_job(made, "title", MODEL, TokenCount(1, 0, 1, 0), 5)))
    await db.write(lambda tx: conversations.remove(tx, ada, made.id))
    assert len(contents(db)["usage"]) == 1


MINI: Asked = ("openai:gpt-4o-mini", None)
LLAMA: Asked = ("ollama:llama3:8b", None)


def took(
    user: Actor, project_id: str, asked: Asked, tokens: int, purpose: str = "reply", thought: int = 0
) -> UsageRow:
    provider, _, model = asked[0].partition(":")
    return UsageRow(
        user_id=user.user_id,
        project_id=project_id,
        conversation_id=None,
        message_id=None,
        provider=provider,
        model=model,
        purpose=purpose,
        input_tokens=9,
        cached_tokens=0,
        output_tokens=tokens,
        reasoning_tokens=thought,
        cost_micros=None,
        latency_ms=0,
        first_token_ms=None,
        effort=asked[1],
    )


async def keep(db: Database, rows: Sequence[UsageRow]) -> None:
    await db.write(lambda tx: [usage.add(tx, row) for row in rows])


async def test_recent_replies_are_read_by_model_and_project(db: Database, ada: Actor, bob: Actor) -> None:
    hers, his = await db.read(lambda tx: (home(tx, ada), home(tx, bob)))
    await keep(
        db, [took(ada, hers, MINI, 10, thought=4), took(bob, his, MINI, 20), took(ada, hers, LLAMA, 30)]
    )
    found = await db.read(lambda tx: usage.recent_replies(tx, ada, hers, [MINI, LLAMA, MINI]))
    mini, llama = found[MINI], found[LLAMA]
    assert mini == RecentReplies((ReplyLength(10, 6),), (ReplyLength(20, 20), ReplyLength(10, 6)))
    assert llama == RecentReplies((ReplyLength(30, 30),), (ReplyLength(30, 30),))
    assert await db.read(lambda tx: usage.recent_replies(tx, ada, hers, [])) == {}


async def test_recent_replies_are_no_summaries_no_failures_and_no_other_efforts(
    db: Database, ada: Actor
) -> None:
    hers = await db.read(lambda tx: home(tx, ada))
    told: Asked = (MINI[0], Effort.HIGH)
    await keep(
        db,
        [
            took(ada, hers, MINI, 10),
            took(ada, hers, MINI, 20, "title"),
            took(ada, hers, MINI, 0),
            took(ada, hers, told, 900),
        ],
    )
    found = await db.read(lambda tx: usage.recent_replies(tx, ada, hers, [MINI, told]))
    assert [reply.output_tokens for reply in found[MINI].in_project] == [10]
    assert [reply.output_tokens for reply in found[told].everywhere] == [900]


async def test_recent_replies_are_the_last_ones(db: Database, ada: Actor, bob: Actor) -> None:
    hers, his = await db.read(lambda tx: (home(tx, ada), home(tx, bob)))
    await keep(db, [took(ada, hers, MINI, tokens) for tokens in range(1, RECENT + 11)])
    await keep(db, [took(bob, his, MINI, 1_000)])
    found = (await db.read(lambda tx: usage.recent_replies(tx, ada, hers, [MINI])))[MINI]
    assert [reply.output_tokens for reply in found.in_project] == list(range(RECENT + 10, 10, -1))
    assert [reply.output_tokens for reply in found.everywhere] == [1_000, *range(RECENT + 10, 11, -1)]


async def test_a_reply_remembers_how_much_its_model_was_told_to_think(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    voice = replace(FIRST, effort=Effort.LOW)
    said = await db.write(lambda tx: reply(tx, opened(tx, ada, made.id), voice=voice))
    await keep(db, [usage.of_reply(said, made.project_id, FIRST.model)])
    asked: Asked = (FIRST.model, Effort.LOW)
    found = await db.read(lambda tx: usage.recent_replies(tx, ada, made.project_id, [asked]))
    assert found[asked].in_project == (ReplyLength(40, 35),)


@pytest.mark.parametrize("count", [1, 9])
async def test_recent_replies_are_read_from_indexes(db: Database, ada: Actor, count: int) -> None:
    """The calls of other models are not read, however many there were."""
    wanted = [(f"p{number}:m", None) for number in range(count)]

    def planned(tx: Tx) -> str:
        for number in range(4_000):
            asked = f"p{number % 99}:m" if number % 99 < 9 else "busy:m"
            usage.add(tx, took(ada, f"project {number % 13}", (asked, None), number + 1))
        tx.execute(text("ANALYZE usage"))
        how = "EXPLAIN" if db.is_shared else "EXPLAIN QUERY PLAN"
        statement = text(f"{how} {usage.recent_replies_of(count).text}")
        return str(tx.execute(statement, project_id="project 1", **usage.named(wanted)))

    plan = await db.write(planned)
    assert plan.count("usage_of_replies_by_project") == count
    assert plan.count("usage_of_replies") == 2 * count
    assert "Seq Scan" not in plan
    assert "TEMP B-TREE" not in plan
