"""The vector index in PostgreSQL: exact and HNSW searches rank as in memory; without it, memory is used."""

from __future__ import annotations

import random
import struct
from math import sqrt

import psycopg
import pytest

from tertulia.core.chunks import Filters, Location, Source
from tertulia.core.users import Actor
from tertulia.library.vector_cache import VectorCache
from tertulia.store import chunks, projects, retrieval, vectors
from tertulia.store.chunks import NewChunk
from tertulia.store.database import Database, Tx
from tertulia.store.retrieval import ScoredChunk
from tertulia.store.sql import sql
from tertulia.store.vector_index import INDEXED_DIMENSIONS, Pgvector
from tests.store.samples import file, home, person
from tests.store_fixtures import Clock, Ids, new_postgres_database

DIMENSIONS = 16
LIMIT = 20


@pytest.fixture
def database_url(postgres_url: str) -> str:
    return postgres_url


def vector(seed: int, dimensions: int = DIMENSIONS) -> bytes:
    """A unit vector that depends on the seed."""
    generator = random.Random(seed)
    numbers = [generator.gauss(0, 1) for _ in range(dimensions)]
    length = sqrt(sum(number * number for number in numbers))
    return struct.pack(f"<{dimensions}e", *(number / length for number in numbers))


def fill(tx: Tx, actor: Actor, count: int, *, project_id: str | None = None, path: str = "a.md") -> None:
    """Stores a file of `count` chunks, each with a vector."""
    stored = file(tx, actor, path, f"{project_id} {path}", project_id=project_id)
    new = [NewChunk(f"chunk {n}", "", Location(path=path), "", 1, path, "") for n in range(count)]
    chunks.add_to_file(tx, stored.id, stored.project_id, 0, new)
    embed(tx)


def embed(tx: Tx, model: str = "m", dimensions: int = DIMENSIONS) -> int:
    config = vectors.set_config(tx, model, dimensions)
    due = vectors.due(tx, 10_000)
    vectors.save(tx, config, [(chunk.number, vector(chunk.number, dimensions)) for chunk in due])
    return config


def near(tx: Tx, *project_ids: str, exact: int = 10_000, filters: Filters = Filters()) -> list[int]:  # noqa: B008
    limits = retrieval.filter_for(tx, project_ids, Source.FILE, filters)
    scored = retrieval.by_meaning(tx, 1, project_ids, Source.FILE, vector(-1), LIMIT, limits, exact)
    assert scored is not None
    return numbers(scored)


def numbers(scored: tuple[ScoredChunk, ...]) -> list[int]:
    return [chunk.number for chunk in scored]


def test_the_extension_is_created_and_its_version_shown(db: Database) -> None:
    assert db.vectors.startswith("compared in the database by pgvector 0.")


async def test_the_database_ranks_like_the_search_in_memory(db: Database) -> None:
    ada = await db.write(lambda tx: person(tx, "Ada"))
    project_id = await db.read(lambda tx: home(tx, ada))
    await db.write(lambda tx: fill(tx, ada, 300))
    scored = await db.read(
        lambda tx: retrieval.by_meaning(tx, 1, [project_id], Source.FILE, vector(-1), LIMIT)
    )
    block = await VectorCache().block(db, project_id, 1, DIMENSIONS)
    exact = block.nearest(vector(-1), Source.FILE, LIMIT)
    assert scored is not None
    assert numbers(scored) == numbers(exact)
    assert [chunk.score for chunk in scored] == pytest.approx([chunk.score for chunk in exact], abs=1e-5)


async def test_a_search_by_the_index_finds_the_same_as_an_exact_search(db: Database) -> None:
    def search(tx: Tx) -> tuple[list[int], list[int], str]:
        ada = person(tx, "Ada")
        fill(tx, ada, 300)
        exact_result = near(tx, home(tx, ada))
        for setting in ("enable_seqscan", "enable_bitmapscan", "enable_sort"):
            # For so few rows the planner would sort them instead.
            tx.execute(sql(f"SELECT set_config('{setting}', 'off', TRUE)"))
        index_result = near(tx, home(tx, ada), exact=0)
        statement = Pgvector().find(1, DIMENSIONS, "", True).text
        plan = tx.execute(
            sql(f"EXPLAIN {statement}"),
            asked=tx.vector_index.near(vector(-1)),
            project_ids=[home(tx, ada)],
            source_type="file",
            limit=LIMIT,
        )
        return exact_result, index_result, " ".join(row[0] for row in plan)

    exact_result, index_result, plan = await db.write(search)
    assert index_result == exact_result
    assert f"chunk_vectors_near_1_{DIMENSIONS}" in plan


async def test_a_search_by_the_index_fills_the_limit_for_a_small_project(db: Database) -> None:
    """Nine of ten vectors belong to another project and must not use up the limit."""

    def search(tx: Tx) -> tuple[list[int], list[int], list[int]]:
        ada, bruno = person(tx, "Ada"), person(tx, "Bruno")
        fill(tx, bruno, 450)
        fill(tx, ada, 50)
        for setting in ("enable_seqscan", "enable_bitmapscan", "enable_sort"):
            tx.execute(sql(f"SELECT set_config('{setting}', 'off', TRUE)"))
        both_projects = near(tx, home(tx, ada), home(tx, bruno))
        return near(tx, home(tx, ada)), near(tx, home(tx, ada), exact=0), both_projects

    exact_result, index_result, both_projects = await db.write(search)
    assert len(exact_result) == LIMIT
    assert index_result == exact_result
    assert set(both_projects) - set(exact_result)


async def test_filters_are_applied_before_the_limit(db: Database) -> None:
    def search(tx: Tx) -> tuple[int, list[int], list[int]]:
        ada = person(tx, "Ada")
        fill(tx, ada, 100, path="a.md")
        of_first_file = vectors.numbers(tx, home(tx, ada))
        fill(tx, ada, 30, path="b.txt")
        matches = near(tx, home(tx, ada), filters=Filters(file_types=("txt",)))
        no_matches = near(tx, home(tx, ada), filters=Filters(paths=("nowhere",)))
        return max(of_first_file), matches, no_matches

    last, matches, no_matches = await db.write(search)
    assert len(matches) == LIMIT
    assert min(matches) > last
    assert no_matches == []


async def test_a_new_embedding_configuration_replaces_the_index(db: Database) -> None:
    def embed_again(tx: Tx) -> tuple[list[str], list[str], list[str], int]:
        ada = person(tx, "Ada")
        fill(tx, ada, 5)
        first = indexes(tx)
        config = embed(tx, "longer", 32)
        second = indexes(tx)
        scored = retrieval.by_meaning(tx, config, [home(tx, ada)], Source.FILE, vector(-1, 32), LIMIT)
        embed(tx, "too long for an index", INDEXED_DIMENSIONS + 1)
        return first, second, indexes(tx), len(scored or ())

    first, second, third, count = await db.write(embed_again)
    assert (first, second, third) == (["chunk_vectors_near_1_16"], ["chunk_vectors_near_2_32"], [])
    assert count == 5


def indexes(tx: Tx) -> list[str]:
    return [row.name for row in tx.execute(tx.vector_index.indexes)]


async def test_vectors_too_long_for_an_index_are_searched_exactly(db: Database) -> None:
    def search(tx: Tx) -> tuple[list[int], int]:
        ada = person(tx, "Ada")
        fill(tx, ada, 3)
        long = INDEXED_DIMENSIONS + 1
        config = embed(tx, "long", long)
        nearest = vectors.numbers(tx, home(tx, ada))[1]
        result = retrieval.by_meaning(tx, config, [home(tx, ada)], Source.FILE, vector(nearest, long), 1)
        return numbers(result or ()), nearest

    result, nearest = await db.write(search)
    assert result == [nearest]


async def test_the_database_searches_only_once_all_vectors_are_in_its_index(db: Database) -> None:
    """As when the extension is installed in a database that holds vectors already."""

    def fill_index(tx: Tx) -> tuple[list[int], list[int | None]]:
        ada = person(tx, "Ada")
        fill(tx, ada, 5)
        tx.execute(sql("UPDATE chunk_vectors SET near = NULL"))
        added_counts, result_counts = [], []
        for _ in range(3):
            scored = retrieval.by_meaning(tx, 1, [home(tx, ada)], Source.FILE, vector(-1), LIMIT)
            result_counts.append(None if scored is None else len(scored))
            added_counts.append(vectors.add_to_index(tx, 3))
        return added_counts, result_counts

    assert await db.write(fill_index) == ([3, 2, 0], [None, None, 5])


async def test_a_deleted_project_has_no_vectors(db: Database) -> None:
    def remove_and_search(tx: Tx) -> list[int]:
        ada = person(tx, "Ada")
        other = projects.add(tx, ada, "Other")
        fill(tx, ada, 5, project_id=other.id)
        projects.remove(tx, ada, other.id)
        return near(tx, other.id)

    assert await db.write(remove_and_search) == []


def test_without_the_right_to_create_the_extension_vectors_are_compared_in_memory(
    plain_postgres_url: str,
) -> None:
    db = Database.open(plain_postgres_url, clock=Clock(), new_id=Ids(Clock()))
    try:
        assert "may not create the extension `vector`" in db.vectors
        assert "CREATE EXTENSION vector" in db.vectors
        assert not db.read_now(lambda tx: tx.vector_index.is_in_database)
    finally:
        db.close()


def test_an_extension_that_is_too_old_is_reported(postgres_server: str) -> None:
    url = new_postgres_database(postgres_server, "tertulia_old_vector")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'")
    db = Database.open(url, clock=Clock(), new_id=Ids(Clock()))
    try:
        assert "`vector` 0.7.4 is older than 0.8" in db.vectors
    finally:
        db.close()
