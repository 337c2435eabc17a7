"""Charges: whoever has texts embedded at an endpoint, or asks a question there, sees what it cost."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from sqlalchemy import text

from tertulia.core.users import Actor
from tertulia.library.embed import Bill, Billed, EmbeddingFailed, for_nothing
from tertulia.library.index import embed_due
from tertulia.library.search import Library, find
from tertulia.store import usage
from tertulia.store.database import Database
from tests.library.bags import Bags
from tests.library.test_search import put, say
from tests.store.samples import home, person


class Paid(Bags):
    """Each call takes a hundred tokens, and costs ten micro-dollars."""

    async def embed(
        self, texts: Sequence[str], *, is_query: bool = False, billed: Billed = for_nothing
    ) -> tuple[bytes, ...]:
        billed(Bill("m", 100, 10, 5))
        return await super().embed(texts, is_query=is_query)


@pytest.fixture
def paid() -> Paid:
    return Paid()


@pytest.fixture
def library(db: Database, paid: Paid) -> Library:
    return Library(db, paid)


async def rows(db: Database) -> list[tuple[object, ...]]:
    """Who paid, for which project and conversation, for what, how many tokens, and how much."""
    wanted = text("""
        SELECT user_id, project_id, conversation_id, purpose, input_tokens, cost_micros FROM usage ORDER BY id
    """)
    return [tuple(row) for row in await db.read(lambda tx: tx.execute(wanted))]


async def test_those_whose_texts_were_embedded_share_the_bill_by_their_length(
    db: Database, library: Library
) -> None:
    ada, bert = await db.write(lambda tx: (person(tx, "Ada"), person(tx, "Bert")))
    put(db, ada, "a.md", "x" * 300)
    put(db, bert, "b.md", "x" * 600)
    await embed_due(library, 32)
    bert_home, ada_home = await db.read(lambda tx: (home(tx, bert), home(tx, ada)))
    assert await rows(db) == [
        (ada.user_id, ada_home, None, "embedding", 33, 3),
        (bert.user_id, bert_home, None, "embedding", 67, 7),
    ]


async def test_what_was_said_is_charged_to_its_conversation(db: Database, library: Library) -> None:
    ada: Actor = await db.write(lambda tx: person(tx, "Ada"))
    conversation_id = say(db, ada, ("Where do walnuts grow?", "In the garden."))
    await embed_due(library, 32)
    spent = await db.read(lambda tx: usage.of_conversation(tx, ada, conversation_id))
    assert (spent.calls, spent.input_tokens, spent.cost_micros) == (1, 100, 10)


async def test_a_question_is_charged_to_who_asks_it(db: Database, library: Library) -> None:
    ada: Actor = await db.write(lambda tx: person(tx, "Ada"))
    put(db, ada, "a.md", "the kitten sleeps")
    await embed_due(library, 32)
    place = await db.read(lambda tx: home(tx, ada))
    await find(library, ada, [place], "cat")
    # The first question has the everyday sentences embedded, too, with which it is compared.
    assert (await rows(db))[1:] == [(ada.user_id, place, None, "embedding", 100, 10)] * 2


async def test_what_was_paid_before_it_broke_is_charged_all_the_same(
    db: Database, library: Library, paid: Paid
) -> None:
    ada: Actor = await db.write(lambda tx: person(tx, "Ada"))
    put(db, ada, "a.md", "the kitten sleeps")
    paid.is_broken = True
    with pytest.raises(EmbeddingFailed):
        await embed_due(library, 32)
    assert len(await rows(db)) == 1
