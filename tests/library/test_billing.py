"""Billing of embeddings: users see the cost of their embedded texts and of their search queries."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tertulia.core.users import Actor
from tertulia.library.embedders import EmbeddingCharge, EmbeddingFailed, OnCharge, not_charged
from tertulia.library.index import embed_due
from tertulia.library.search import SearchIndex, find
from tertulia.store import usage
from tertulia.store.database import Database
from tertulia.store.sql import sql
from tests.library.bags import Bags
from tests.library.test_search import add_conversation, add_file
from tests.store.samples import home, person


class Paid(Bags):
    """An embedder whose calls take 100 tokens each and cost 10 micro-dollars."""

    async def embed(
        self, texts: Sequence[str], *, is_query: bool = False, billed: OnCharge = not_charged
    ) -> tuple[bytes, ...]:
        billed(EmbeddingCharge("m", 100, 10, 5))
        return await super().embed(texts, is_query=is_query)


@pytest.fixture
def paid() -> Paid:
    return Paid()


@pytest.fixture
def library(db: Database, paid: Paid) -> SearchIndex:
    return SearchIndex(db, paid)


async def rows(db: Database) -> list[tuple[object, ...]]:
    """The user, project, conversation, purpose, tokens and cost of each usage row."""
    statement = sql("""
        SELECT user_id, project_id, conversation_id, purpose, input_tokens, cost_micros FROM usage ORDER BY id
    """)
    return [tuple(row) for row in await db.read(lambda tx: tx.execute(statement))]


async def test_users_share_the_charge_by_the_length_of_their_texts(
    db: Database, library: SearchIndex
) -> None:
    ada, bert = await db.write(lambda tx: (person(tx, "Ada"), person(tx, "Bert")))
    add_file(db, ada, "a.md", "x" * 300)
    add_file(db, bert, "b.md", "x" * 600)
    await embed_due(library, 32)
    bert_home, ada_home = await db.read(lambda tx: (home(tx, bert), home(tx, ada)))
    assert await rows(db) == [
        (ada.user_id, ada_home, None, "embedding", 33, 3),
        (bert.user_id, bert_home, None, "embedding", 67, 7),
    ]


async def test_embedding_messages_is_charged_to_their_conversation(
    db: Database, library: SearchIndex
) -> None:
    ada: Actor = await db.write(lambda tx: person(tx, "Ada"))
    conversation_id = add_conversation(db, ada, ("Where do walnuts grow?", "In the garden."))
    await embed_due(library, 32)
    spent = await db.read(lambda tx: usage.of_conversation(tx, ada, conversation_id))
    assert (spent.calls, spent.input_tokens, spent.cost_micros) == (1, 100, 10)


async def test_embedding_a_query_is_charged_to_the_user_who_searches(
    db: Database, library: SearchIndex
) -> None:
    ada: Actor = await db.write(lambda tx: person(tx, "Ada"))
    add_file(db, ada, "a.md", "the kitten sleeps")
    await embed_due(library, 32)
    project_id = await db.read(lambda tx: home(tx, ada))
    await find(library, ada, [project_id], "cat")
    # The first query also embeds the small talk that queries are compared with.
    assert (await rows(db))[1:] == [(ada.user_id, project_id, None, "embedding", 100, 10)] * 2


async def test_calls_paid_before_a_failure_are_charged(
    db: Database, library: SearchIndex, paid: Paid
) -> None:
    ada: Actor = await db.write(lambda tx: person(tx, "Ada"))
    add_file(db, ada, "a.md", "the kitten sleeps")
    paid.is_broken = True
    with pytest.raises(EmbeddingFailed):
        await embed_due(library, 32)
    assert len(await rows(db)) == 1
