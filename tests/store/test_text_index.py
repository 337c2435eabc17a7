"""Full-text search in PostgreSQL stays fast, even when the planner has no statistics of a new table."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tertulia.core.chunks import Location, Source, Weights
from tertulia.store import chunks
from tertulia.store.chunks import NewChunk
from tertulia.store.database import Database, Tx
from tertulia.store.sql import sql
from tertulia.store.text_index import Tsvector
from tests.store.samples import file, known_rows, many_chunks, person
from tests.store_fixtures import Clock, Ids, new_postgres_database

EVEN = Weights(1, 1, 1, 1)


@pytest.fixture
def database_url(postgres_url: str) -> str:
    return postgres_url


async def test_a_search_counts_all_chunks_only_once(db: Database) -> None:
    """Counting once per matching row took minutes after ten thousand chunks had just been stored."""

    def plan(tx: Tx) -> list[str]:
        stored = file(tx, person(tx, "Ada"), "a.md", "a")
        new = [NewChunk(f"walnut {n}", "", Location(path="a.md"), "", 1, "", "") for n in range(50)]
        chunks.add_to_file(tx, stored.id, stored.project_id, 0, new)
        rows = tx.execute(
            sql(f"EXPLAIN (ANALYZE, TIMING OFF) {Tsvector().find(EVEN, '').text}"),
            query=["walnut"],
            project_ids=[stored.project_id],
            source_type=Source.FILE.value,
            limit=10,
        )
        return [row[0] for row in rows]

    plan_text = "\n".join(await db.write(plan))
    count_line = plan_text[plan_text.index("CTE all_of_it") :].splitlines()[1]
    assert "loops=1)" in count_line


@pytest.fixture
def new_database(postgres_server: str, clock: Clock, ids: Ids) -> Iterator[Database]:
    """A database whose tables were never analysed."""
    url = new_postgres_database(postgres_server, f"new_{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}")
    db = Database.open(url, clock=clock, new_id=ids)
    yield db
    db.close()


async def test_the_first_search_after_a_large_import_uses_the_full_text_index(new_database: Database) -> None:
    stored = await new_database.write(lambda tx: file(tx, person(tx, "Ada"), "a.md", "a"))
    await new_database.write(lambda tx: many_chunks(tx, stored, 40))
    await new_database.analyze()
    assert await new_database.read(known_rows) == -1, "a few rows are not worth an ANALYZE"
    await new_database.write(lambda tx: many_chunks(tx, stored, 8000))
    await new_database.analyze()
    assert await new_database.read(known_rows) > 7000

    def plan(tx: Tx) -> str:
        params = {"query": ["one7"], "project_ids": [stored.project_id], "source_type": "file", "limit": 10}
        return str(tx.execute(sql(f"EXPLAIN {Tsvector().find(EVEN, '').text}"), **params))

    assert "content_chunks_words" in await new_database.read(plan)
