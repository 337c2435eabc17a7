"""Nearness, once for each database: where vectors are kept so that the nearest to a question can be found.

SQLite only keeps them, and they are compared in the server's memory (library/vectors.py). PostgreSQL with the
extension `vector` compares them itself: the column `near` says in the extension's type what `vector` holds.
It has no fixed size; the index over it is made for one way of embedding, when that comes into use.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from typing import Protocol

from sqlalchemy import TextClause, text

EXACT = 20_000
"""Up to this many vectors every one is compared; above, the index is walked."""
INDEXED_DIMENSIONS = 4_000
"""pgvector's index takes no more; longer vectors are all compared."""


class Nearness(Protocol):
    is_in_database: bool
    """Whether it compares vectors; only then may anything but `save` be asked."""
    save: TextClause
    """Takes number, project_id, source_type, config, generation, vector and near."""
    indexes: TextClause
    """Gives the name of each index of a way of embedding."""
    unplaced: TextClause
    """Takes config and limit; gives number and vector of those that cannot be found yet."""
    place: TextClause
    """Takes number and near."""
    count: TextClause
    """Takes config, project_ids and limit; counts no further than that."""
    walk: TextClause
    """Has the rest of the transaction follow the index until enough is found that the filters leave."""

    def near(self, vector: bytes) -> str | None:
        """The vector as the database compares it; None where it does not."""

    def index(self, config: int, dimensions: int) -> tuple[str, TextClause] | None:
        """The name of a way's index, and how it is made; None for vectors that are too long for one."""

    def find(self, config: int, dimensions: int, more: str, is_walk: bool) -> TextClause:
        """Takes asked, project_ids, source_type and limit; gives number and score, the higher the better."""


class InMemory:
    """The database keeps vectors as bytes and knows nothing of them."""

    is_in_database = False
    indexes = unplaced = place = count = walk = text("SELECT 1 WHERE FALSE")
    save = text("""
        INSERT INTO chunk_vectors (number, project_id, source_type, config, generation, vector)
        VALUES (:number, :project_id, :source_type, :config, :generation, :vector)
        ON CONFLICT (number) DO UPDATE
            SET config = excluded.config, generation = excluded.generation, vector = excluded.vector
    """)

    def near(self, vector: bytes) -> str | None:
        return None

    def index(self, config: int, dimensions: int) -> tuple[str, TextClause] | None:
        return None

    def find(self, config: int, dimensions: int, more: str, is_walk: bool) -> TextClause:
        return self.unplaced


class Pgvector:
    """PostgreSQL with its extension `vector`: half floats, compared by their inner product."""

    is_in_database = True
    save = text("""
        INSERT INTO chunk_vectors (number, project_id, source_type, config, generation, vector, near)
        VALUES (
            :number, :project_id, :source_type, :config, :generation, :vector,
            CAST(CAST(:near AS TEXT) AS HALFVEC)
        )
        ON CONFLICT (number) DO UPDATE SET config = excluded.config, generation = excluded.generation,
            vector = excluded.vector, near = excluded.near
    """)
    indexes = text("""
        SELECT indexname AS name FROM pg_indexes
        WHERE schemaname = current_schema() AND tablename = 'chunk_vectors'
            AND starts_with(indexname, 'chunk_vectors_near_')
    """)
    unplaced = text("""
        SELECT number, vector FROM chunk_vectors WHERE near IS NULL AND config = :config
        ORDER BY number LIMIT :limit
    """)
    place = text("""
        UPDATE chunk_vectors SET near = CAST(CAST(:near AS TEXT) AS HALFVEC) WHERE number = :number
    """)
    count = text("""
        SELECT COUNT(*) AS number FROM (
            SELECT 1 FROM chunk_vectors WHERE project_id = ANY(:project_ids) AND config = :config LIMIT :limit
        ) AS counted
    """)
    walk = text("""
        SELECT set_config('hnsw.iterative_scan', 'strict_order', TRUE),
            set_config('hnsw.ef_search', '400', TRUE), set_config('hnsw.max_scan_tuples', '100000', TRUE)
    """)

    def near(self, vector: bytes) -> str | None:
        numbers = struct.unpack(f"<{len(vector) // 2}e", vector)
        return f"[{','.join(map(repr, numbers))}]"

    def index(self, config: int, dimensions: int) -> tuple[str, TextClause] | None:
        if dimensions > INDEXED_DIMENSIONS:
            return None
        name = f"chunk_vectors_near_{config}_{dimensions}"
        return name, text(f"""
            CREATE INDEX {name} ON chunk_vectors
                USING hnsw ((CAST(near AS HALFVEC({dimensions}))) halfvec_ip_ops) WHERE config = {config}
        """)

    def find(self, config: int, dimensions: int, more: str, is_walk: bool) -> TextClause:
        return _walked(config, dimensions, more) if is_walk else _compared(config, dimensions, more)


# Numbers stand in the statements as they are: for a parameter the planner cannot tell that an index fits.


@cache
def _compared(config: int, dimensions: int, more: str) -> TextClause:
    return text(f"""
        SELECT v.number, -({_distance(dimensions)}) AS score FROM {_among(config, more)}
        ORDER BY score DESC, v.number LIMIT :limit
    """)


@cache
def _walked(config: int, dimensions: int, more: str) -> TextClause:
    return text(f"""
        WITH nearest AS MATERIALIZED (
            SELECT v.number, {_distance(dimensions)} AS distance FROM {_among(config, more)}
            ORDER BY distance LIMIT :limit
        )
        SELECT number, -distance AS score FROM nearest ORDER BY distance, number
    """)


def _distance(dimensions: int) -> str:
    size = f"HALFVEC({dimensions})"
    return f"CAST(v.near AS {size}) <#> CAST(CAST(:asked AS TEXT) AS {size})"


def _among(config: int, more: str) -> str:
    chunks = "JOIN content_chunks AS c ON c.number = v.number" if more else ""
    return f"""
        chunk_vectors AS v {chunks}
        WHERE v.config = {config} AND v.project_id = ANY(:project_ids) AND v.source_type = :source_type {more}
    """


# ── bringing it in

EXTENSION = """
    SELECT default_version, installed_version FROM pg_available_extensions WHERE name = 'vector'
"""
OLDEST = (0, 8)
"""The first that goes on walking until filters leave enough."""

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
