"""Nearness in PostgreSQL: its extension ranks as memory does, by the index or without, or memory goes on."""

from __future__ import annotations

import random
import struct
from math import sqrt

import psycopg
import pytest
from sqlalchemy import text

from tertulia.core.chunks import Filters, Location, Source
from tertulia.core.users import Actor
from tertulia.library.vectors import Blocks
from tertulia.store import chunks, projects, retrieval, vectors
from tertulia.store.chunks import NewChunk
from tertulia.store.database import Database, Tx
from tertulia.store.nearness import INDEXED_DIMENSIONS, Pgvector
from tertulia.store.retrieval import Scored
from tests.store.samples import file, home, person
from tests.store_fixtures import Clock, Ids, new_postgres_database

DIMENSIONS = 16
LIMIT = 20


@pytest.fixture
def database_url(postgres_url: str) -> str:
    return postgres_url


def vector(seed: int, dimensions: int = DIMENSIONS) -> bytes:
    """A direction of its own for each seed."""
    chance = random.Random(seed)
    numbers = [chance.gauss(0, 1) for _ in range(dimensions)]
    length = sqrt(sum(one * one for one in numbers))
    return struct.pack(f"<{dimensions}e", *(one / length for one in numbers))


def fill(tx: Tx, who: Actor, count: int, *, project_id: str | None = None, path: str = "a.md") -> None:
    """A file of so many chunks, each with a vector."""
    made = file(tx, who, path, f"{project_id} {path}", project_id=project_id)
    new = [NewChunk(f"chunk {n}", "", Location(path=path), "", 1, path, "") for n in range(count)]
    chunks.add_to_file(tx, made.id, made.project_id, 0, new)
    embed(tx)


def embed(tx: Tx, model: str = "m", dimensions: int = DIMENSIONS) -> int:
    config = vectors.set_config(tx, model, dimensions)
    due = vectors.due(tx, 10_000)
    vectors.save(tx, config, [(one.number, vector(one.number, dimensions)) for one in due])
    return config


def near(tx: Tx, *project_ids: str, exact: int = 10_000, filters: Filters = Filters()) -> list[int]:  # noqa: B008
    within = retrieval.narrowed(tx, project_ids, Source.FILE, filters)
    found = retrieval.by_meaning(tx, 1, project_ids, Source.FILE, vector(-1), LIMIT, within, exact)
    assert found is not None
    return numbers(found)


def numbers(found: tuple[Scored, ...]) -> list[int]:
    return [one.number for one in found]


def test_the_extension_is_created_and_named(db: Database) -> None:
    assert db.vectors.startswith("compared in the database by pgvector 0.")


async def test_the_database_ranks_as_memory_does(db: Database) -> None:
    ada = await db.write(lambda tx: person(tx, "Ada"))
    place = await db.read(lambda tx: home(tx, ada))
    await db.write(lambda tx: fill(tx, ada, 300))
    found = await db.read(lambda tx: retrieval.by_meaning(tx, 1, [place], Source.FILE, vector(-1), LIMIT))
    block = await Blocks().block(db, place, 1, DIMENSIONS)
    exact = block.nearest(vector(-1), Source.FILE, LIMIT)
    assert found is not None
    assert numbers(found) == numbers(exact)
    assert [one.score for one in found] == pytest.approx([one.score for one in exact], abs=1e-5)


async def test_a_walk_along_the_index_finds_the_same(db: Database) -> None:
    def look(tx: Tx) -> tuple[list[int], list[int], str]:
        ada = person(tx, "Ada")
        fill(tx, ada, 300)
        compared = near(tx, home(tx, ada))
        for setting in ("enable_seqscan", "enable_bitmapscan", "enable_sort"):
            tx.execute(text(f"SELECT set_config('{setting}', 'off', TRUE)"))  # so few are sorted faster
        walked = near(tx, home(tx, ada), exact=0)
        asked = Pgvector().find(1, DIMENSIONS, "", True).text
        plan = tx.execute(
            text(f"EXPLAIN {asked}"),
            asked=tx.nearness.near(vector(-1)),
            project_ids=[home(tx, ada)],
            source_type="file",
            limit=LIMIT,
        )
        return compared, walked, " ".join(row[0] for row in plan)

    compared, walked, plan = await db.write(look)
    assert walked == compared
    assert f"chunk_vectors_near_1_{DIMENSIONS}" in plan


async def test_a_walk_goes_on_until_a_small_project_has_what_it_asks_for(db: Database) -> None:
    """Nine of ten vectors are another project's; they are left out before anything is ranked."""

    def look(tx: Tx) -> tuple[list[int], list[int], list[int]]:
        ada, bruno = person(tx, "Ada"), person(tx, "Bruno")
        fill(tx, bruno, 450)
        fill(tx, ada, 50)
        for setting in ("enable_seqscan", "enable_bitmapscan", "enable_sort"):
            tx.execute(text(f"SELECT set_config('{setting}', 'off', TRUE)"))
        both = near(tx, home(tx, ada), home(tx, bruno))
        return near(tx, home(tx, ada)), near(tx, home(tx, ada), exact=0), both

    compared, walked, both = await db.write(look)
    assert len(compared) == LIMIT
    assert walked == compared
    assert set(both) - set(compared)


async def test_filters_are_applied_before_ranking(db: Database) -> None:
    def look(tx: Tx) -> tuple[int, list[int], list[int]]:
        ada = person(tx, "Ada")
        fill(tx, ada, 100, path="a.md")
        last = vectors.numbers(tx, home(tx, ada))
        fill(tx, ada, 30, path="b.txt")
        some = near(tx, home(tx, ada), filters=Filters(file_types=("txt",)))
        none = near(tx, home(tx, ada), filters=Filters(paths=("nowhere",)))
        return max(last), some, none

    last, some, none = await db.write(look)
    assert len(some) == LIMIT
    assert min(some) > last
    assert none == []


async def test_another_size_gets_another_index_and_the_old_one_goes(db: Database) -> None:
    def look(tx: Tx) -> tuple[list[str], list[str], list[str], int]:
        ada = person(tx, "Ada")
        fill(tx, ada, 5)
        first = indexes(tx)
        config = embed(tx, "longer", 32)
        second = indexes(tx)
        found = retrieval.by_meaning(tx, config, [home(tx, ada)], Source.FILE, vector(-1, 32), LIMIT)
        embed(tx, "too long for an index", INDEXED_DIMENSIONS + 1)
        return first, second, indexes(tx), len(found or ())

    first, second, third, found = await db.write(look)
    assert (first, second, third) == (["chunk_vectors_near_1_16"], ["chunk_vectors_near_2_32"], [])
    assert found == 5


def indexes(tx: Tx) -> list[str]:
    return [row.name for row in tx.execute(tx.nearness.indexes)]


async def test_vectors_too_long_for_an_index_are_all_compared(db: Database) -> None:
    def look(tx: Tx) -> tuple[list[int], int]:
        ada = person(tx, "Ada")
        fill(tx, ada, 3)
        long = INDEXED_DIMENSIONS + 1
        config = embed(tx, "long", long)
        wanted = vectors.numbers(tx, home(tx, ada))[1]
        found = retrieval.by_meaning(tx, config, [home(tx, ada)], Source.FILE, vector(wanted, long), 1)
        return numbers(found or ()), wanted

    found, wanted = await db.write(look)
    assert found == [wanted]


async def test_until_all_vectors_are_placed_memory_is_asked(db: Database) -> None:
    """As after the extension came to a database that had vectors already."""

    def look(tx: Tx) -> tuple[list[int], list[int | None]]:
        ada = person(tx, "Ada")
        fill(tx, ada, 5)
        tx.execute(text("UPDATE chunk_vectors SET near = NULL"))
        placed, counts = [], []
        for _ in range(3):
            found = retrieval.by_meaning(tx, 1, [home(tx, ada)], Source.FILE, vector(-1), LIMIT)
            counts.append(None if found is None else len(found))
            placed.append(vectors.place(tx, 3))
        return placed, counts

    assert await db.write(look) == ([3, 2, 0], [None, None, 5])


async def test_a_project_that_is_gone_takes_its_vectors_along(db: Database) -> None:
    def look(tx: Tx) -> list[int]:
        ada = person(tx, "Ada")
        other = projects.add(tx, ada, "Other")
        fill(tx, ada, 5, project_id=other.id)
        projects.remove(tx, ada, other.id)
        return near(tx, other.id)

    assert await db.write(look) == []


def test_an_account_that_may_not_create_the_extension_is_told_so(plain_postgres_url: str) -> None:
    opened = Database.open(plain_postgres_url, clock=Clock(), new_id=Ids(Clock()))
    try:
        assert "may not create the extension `vector`" in opened.vectors
        assert "CREATE EXTENSION vector" in opened.vectors
        assert not opened.read_now(lambda tx: tx.nearness.is_in_database)
    finally:
        opened.close()


def test_an_extension_that_is_too_old_is_told_so(postgres_server: str) -> None:
    url = new_postgres_database(postgres_server, "tertulia_old_vector")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'")
    opened = Database.open(url, clock=Clock(), new_id=Ids(Clock()))
    try:
        assert "`vector` 0.7.4 is older than 0.8" in opened.vectors
    finally:
        opened.close()
