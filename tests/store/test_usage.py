"""Usage: what calls took, summed."""

from __future__ import annotations

from dataclasses import replace

from tertulia.core.models import FREE, Model, Tier, TokenCount
from tertulia.core.users import Actor
from tertulia.store import conversations, usage
from tertulia.store.database import Database, Tx
from tertulia.store.usage import UsageSum
from tests.store.samples import USAGE, conversation, opened, reply
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
