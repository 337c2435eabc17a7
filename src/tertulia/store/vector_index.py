"""Vector index: nearest-neighbour search over chunk vectors, one implementation per database.

SQLite only stores vectors, and the server compares them in memory (library/vector_cache.py). PostgreSQL with
the extension `vector` (pgvector) compares them itself: the column `near` holds the bytes of `vector` in the
extension's type. That column has no fixed size; an index over it is created for one embedding configuration,
when that comes into use.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from typing import Protocol

from tertulia.store.sql import Statement, sql

EXACT = 20_000
"""Up to this many vectors the search is exact and compares each one; above, it uses the HNSW index."""
INDEXED_DIMENSIONS = 4_000
"""The most dimensions that pgvector's index supports; longer vectors are always searched exactly."""


class VectorIndex(Protocol):
    is_in_database: bool
    """Whether the database compares vectors. If not, callers may use `save` only."""
    save: Statement
    """Stores a vector. Takes number, project_id, source_type, config, generation, vector and near."""
    indexes: Statement
    """Lists the existing HNSW indexes. Returns name."""
    without_near: Statement
    """Lists vectors whose column `near` is empty, so that searches miss them.

    Takes config and limit; returns number and vector.
    """
    fill_near: Statement
    """Fills the column `near` of one vector. Takes number and near."""
    count: Statement
    """Counts the vectors of some projects, up to a limit. Takes config, project_ids and limit."""
    scan_further: Statement
    """Makes later searches of the transaction read on in the index until enough rows pass the filters."""

    def near(self, vector: bytes) -> str | None:
        """The vector as a literal of the extension's type; None where the database compares no vectors."""

    def index(self, config: int, dimensions: int) -> tuple[str, Statement] | None:
        """The index of an embedding configuration: its name and the statement that creates it.

        None for vectors with more dimensions than an index supports.
        """

    def find(self, config: int, dimensions: int, conditions: str, use_index: bool) -> Statement:
        """The search statement. Takes asked, project_ids, source_type and limit; returns number and score.

        A higher score is better.
        """


class NoVectorIndex:
    """Stores vectors as bytes that the database cannot compare."""

    is_in_database = False
    indexes = without_near = fill_near = count = scan_further = sql("SELECT 1 WHERE FALSE")
    save = sql("""
        INSERT INTO chunk_vectors (number, project_id, source_type, config, generation, vector)
        VALUES (:number, :project_id, :source_type, :config, :generation, :vector)
        ON CONFLICT (number) DO UPDATE
            SET config = excluded.config, generation = excluded.generation, vector = excluded.vector
    """)

    def near(self, vector: bytes) -> str | None:
        return None

    def index(self, config: int, dimensions: int) -> tuple[str, Statement] | None:
        return None

    def find(self, config: int, dimensions: int, conditions: str, use_index: bool) -> Statement:
        return self.without_near


class Pgvector:
    """PostgreSQL with the extension `vector`: half-precision vectors, compared by inner product."""

    is_in_database = True
    save = sql("""
        INSERT INTO chunk_vectors (number, project_id, source_type, config, generation, vector, near)
        VALUES (
            :number, :project_id, :source_type, :config, :generation, :vector,
            CAST(CAST(:near AS TEXT) AS HALFVEC)
        )
        ON CONFLICT (number) DO UPDATE SET config = excluded.config, generation = excluded.generation,
            vector = excluded.vector, near = excluded.near
    """)
    indexes = sql("""
        SELECT indexname AS name FROM pg_indexes
        WHERE schemaname = current_schema() AND tablename = 'chunk_vectors'
            AND starts_with(indexname, 'chunk_vectors_near_')
    """)
    without_near = sql("""
        SELECT number, vector FROM chunk_vectors WHERE near IS NULL AND config = :config
        ORDER BY number LIMIT :limit
    """)
    fill_near = sql("""
        UPDATE chunk_vectors SET near = CAST(CAST(:near AS TEXT) AS HALFVEC) WHERE number = :number
    """)
    count = sql("""
        SELECT COUNT(*) AS number FROM (
            SELECT 1 FROM chunk_vectors WHERE project_id = ANY(:project_ids) AND config = :config LIMIT :limit
        ) AS counted
    """)
    scan_further = sql("""
        SELECT set_config('hnsw.iterative_scan', 'strict_order', TRUE),
            set_config('hnsw.ef_search', '400', TRUE), set_config('hnsw.max_scan_tuples', '100000', TRUE)
    """)

    def near(self, vector: bytes) -> str | None:
        numbers = struct.unpack(f"<{len(vector) // 2}e", vector)
        return f"[{','.join(map(repr, numbers))}]"

    def index(self, config: int, dimensions: int) -> tuple[str, Statement] | None:
        if dimensions > INDEXED_DIMENSIONS:
            return None
        name = f"chunk_vectors_near_{config}_{dimensions}"
        return name, sql(f"""
            CREATE INDEX {name} ON chunk_vectors
                USING hnsw ((CAST(near AS HALFVEC({dimensions}))) halfvec_ip_ops) WHERE config = {config}
        """)

    def find(self, config: int, dimensions: int, conditions: str, use_index: bool) -> Statement:
        return (
            _by_index(config, dimensions, conditions)
            if use_index
            else _by_comparison(config, dimensions, conditions)
        )


# The statements hold config and dimensions as literals: with parameters, the planner cannot tell that the
# partial index applies.


@cache
def _by_comparison(config: int, dimensions: int, conditions: str) -> Statement:
    return sql(f"""
        SELECT v.number, -({_distance(dimensions)}) AS score FROM {_candidates(config, conditions)}
        ORDER BY score DESC, v.number LIMIT :limit
    """)


@cache
def _by_index(config: int, dimensions: int, conditions: str) -> Statement:
    return sql(f"""
        WITH nearest AS MATERIALIZED (
            SELECT v.number, {_distance(dimensions)} AS distance FROM {_candidates(config, conditions)}
            ORDER BY distance LIMIT :limit
        )
        SELECT number, -distance AS score FROM nearest ORDER BY distance, number
    """)


def _distance(dimensions: int) -> str:
    size = f"HALFVEC({dimensions})"
    return f"CAST(v.near AS {size}) <#> CAST(CAST(:asked AS TEXT) AS {size})"


def _candidates(config: int, conditions: str) -> str:
    chunks = "JOIN content_chunks AS c ON c.number = v.number" if conditions else ""
    return f"""
        chunk_vectors AS v {chunks}
        WHERE v.config = {config} AND v.project_id = ANY(:project_ids) AND v.source_type = :source_type
            {conditions}
    """


# ── installing the extension

EXTENSION = """
    SELECT default_version, installed_version FROM pg_available_extensions WHERE name = 'vector'
"""
OLDEST = (0, 8)
"""The first version with iterative scans, which read on until enough rows pass the filters."""

CREATE: Sequence[str] = (
    "ALTER TABLE chunk_vectors ADD COLUMN IF NOT EXISTS near HALFVEC",
    """
    CREATE INDEX IF NOT EXISTS chunk_vectors_unplaced ON chunk_vectors (config, number) WHERE near IS NULL
    """,
)

NOT_INSTALLED = (
    "compared in the server's memory: this PostgreSQL has no extension `vector`. Install pgvector 0.8 or "
    "newer and start again, and the database compares them."
)
NOT_ALLOWED = (
    "compared in the server's memory: this account may not create the extension `vector`. Have an "
    "administrator run CREATE EXTENSION vector in this database and start again, and the database compares "
    "them."
)
TOO_OLD = (
    "compared in the server's memory: the extension `vector` {version} is older than 0.8. Have an "
    "administrator update pgvector and run ALTER EXTENSION vector UPDATE, and the database compares them."
)
NOT_USABLE = "compared in the server's memory: the extension `vector` cannot be used ({reason})."
