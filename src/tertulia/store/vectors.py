"""Chunk vectors (embeddings): stored vectors, and the chunks that still wait for theirs.

An embedding configuration is a model with a number of dimensions; one is in use at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tertulia.core.chunks import Source
from tertulia.store.chunks import NewChunk
from tertulia.store.column_values import as_json
from tertulia.store.sql import sql
from tertulia.store.transactions import Tx


@dataclass(frozen=True, slots=True)
class PendingChunk:
    """A chunk that waits for its vector, with the title and heading that are embedded with it."""

    number: int
    source: Source
    file_id: str | None
    title: str
    heading: str
    content: str
    project_id: str
    conversation_id: str | None
    user_id: str | None
    """The author of the message or uploader of the file; None if the account was deleted."""


def set_config(tx: Tx, model: str, dimensions: int) -> int:
    """Puts an embedding configuration into use and returns its number.

    If it differs from the last one, all chunks are due for embedding again.
    """
    row = tx.maybe(_LAST_CONFIG)
    if row is not None and (row.model, row.dimensions) == (model, dimensions):
        _replace_index(tx, row.id, dimensions)
        id: int = row.id
        return id
    id = row.id + 1 if row else 1
    tx.execute(_ADD_CONFIG, id=id, model=model, dimensions=dimensions, now=tx.now)
    tx.execute(_ALL_DUE)
    _replace_index(tx, id, dimensions)
    return id


_LAST_CONFIG = sql("SELECT id, model, dimensions FROM embedding_config ORDER BY id DESC LIMIT 1")

_ADD_CONFIG = sql("""
    INSERT INTO embedding_config (id, model, dimensions, created_at) VALUES (:id, :model, :dimensions, :now)
""")

_ALL_DUE = sql("""
    INSERT INTO vectors_due (number, project_id)
    SELECT number, project_id FROM content_chunks WHERE TRUE ON CONFLICT DO NOTHING
""")


def _replace_index(tx: Tx, config: int, dimensions: int) -> None:
    """Creates the database's index for this configuration and drops the older indexes."""
    if not tx.vector_index.is_in_database:
        return
    index = tx.vector_index.index(config, dimensions)
    existing = [row.name for row in tx.execute(tx.vector_index.indexes)]
    for name in existing:
        if index is None or name != index[0]:
            tx.execute(sql(f"DROP INDEX {name}"))
    if index is not None and index[0] not in existing:
        tx.execute(index[1])


def find_config(tx: Tx, model: str, dimensions: int) -> int | None:
    """The number of this configuration; None if it is not in use or still replaces vectors of another one."""
    row = tx.maybe(_LAST_CONFIG)
    if row is None or (row.model, row.dimensions) != (model, dimensions):
        return None
    return None if tx.maybe(_IS_REPLACING, config=row.id) else row.id


# In each project the newest chunks are embedded first, so vectors of another model have the lowest numbers.
_IS_REPLACING = sql("""
    SELECT 1 FROM (SELECT number FROM vectors_due ORDER BY number LIMIT 100) AS d
    JOIN chunk_vectors AS v ON v.number = d.number WHERE v.config <> :config LIMIT 1
""")


def due(tx: Tx, limit: int, after: str = "") -> tuple[PendingChunk, ...]:
    """The next chunks without a vector: newest first, from the projects that follow the project `after`.

    Projects take turns (round robin), so that none waits for all chunks of another.
    """
    rows = tx.execute(_DUE_AFTER, limit=limit, after=after)
    rows += tx.execute(_DUE_FROM_THE_FIRST, limit=limit - len(rows), after=after)
    return tuple(
        PendingChunk(
            row.number,
            Source(row.source_type),
            row.file_id,
            row.path or "",
            row.heading,
            row.content,
            row.project_id,
            row.conversation_id,
            row.user_id,
        )
        for row in rows
    )


_DUE = """
    SELECT c.number, c.source_type, c.file_id, c.heading, c.content, c.project_id, c.conversation_id, f.path,
        u.id AS user_id
    FROM (
        SELECT number, project_id FROM vectors_due WHERE project_id {which} :after
        ORDER BY project_id, number DESC LIMIT :limit
    ) AS d
    JOIN content_chunks AS c ON c.number = d.number
    LEFT JOIN project_files AS f ON f.id = c.file_id
    LEFT JOIN conversation_messages AS m ON m.id = c.message_id
    LEFT JOIN users AS u ON u.id = COALESCE(f.created_by, m.created_by)
    ORDER BY d.project_id, d.number DESC
"""

_DUE_AFTER = sql(_DUE.format(which=">"))

_DUE_FROM_THE_FIRST = sql(_DUE.format(which="<="))


def count_due_in_file(tx: Tx, file_id: str) -> tuple[int, int]:
    """The number of a file's chunks without a vector, and the number of all its chunks."""
    row = tx.one(_COUNT_DUE, file_id=file_id)
    return row.due, row.chunks


_COUNT_DUE = sql("""
    SELECT COUNT(d.number) AS due, COUNT(*) AS chunks
    FROM content_chunks AS c LEFT JOIN vectors_due AS d ON d.number = c.number WHERE c.file_id = :file_id
""")


def save(tx: Tx, config: int, vectors: Iterable[tuple[int, bytes]]) -> None:
    """Stores vectors by chunk number; skips chunks that were deleted meanwhile."""
    generations: dict[str, int] = {}
    for number, vector in vectors:
        row = tx.maybe(_PROJECT_OF, number=number)
        if row is None:
            continue
        if row.project_id not in generations:
            generations[row.project_id] = tx.one(_NEXT_GENERATION, project_id=row.project_id).generation
        tx.execute(
            tx.vector_index.save,
            number=number,
            project_id=row.project_id,
            source_type=row.source_type,
            config=config,
            generation=generations[row.project_id],
            vector=vector,
            near=tx.vector_index.near(vector),
        )
        tx.execute(_NOT_DUE, number=number)


_PROJECT_OF = sql("SELECT project_id, source_type FROM content_chunks WHERE number = :number")

_NEXT_GENERATION = sql("""
    INSERT INTO library_states (project_id, generation, removals) VALUES (:project_id, 1, 0)
    ON CONFLICT (project_id) DO UPDATE SET generation = library_states.generation + 1 RETURNING generation
""")

_NOT_DUE = sql("DELETE FROM vectors_due WHERE number = :number")


@dataclass(frozen=True, slots=True)
class ReusableVectors:
    """The vectors of a file or message that is indexed again, by the hash of heading and content."""

    config: int
    vectors: Mapping[bytes, bytes]

    def of(self, heading: str, content: str) -> bytes | None:
        return self.vectors.get(_text_hash(heading, content))

    def again(self, numbers: Sequence[int], new: Sequence[NewChunk]) -> list[tuple[int, bytes]]:
        """The numbers of newly stored chunks whose text has not changed, with their vectors."""
        vectors = (self.of(chunk.heading, chunk.content) for chunk in new)
        return [
            (number, vector) for number, vector in zip(numbers, vectors, strict=True) if vector is not None
        ]


NO_REUSABLE_VECTORS = ReusableVectors(0, {})


def of_file(tx: Tx, file_id: str, path: str) -> ReusableVectors:
    """The reusable vectors of a file: those of the configuration in use that were made for the same path."""
    last = tx.maybe(_LAST_CONFIG)
    if last is None:
        return NO_REUSABLE_VECTORS
    path_json = f'"path":{as_json(path)}'
    rows = tx.execute(_OF_FILE, file_id=file_id, config=last.id)
    vectors = {
        _text_hash(row.heading, row.content): bytes(row.vector) for row in rows if path_json in row.location
    }
    return ReusableVectors(last.id, vectors)


def of_message(tx: Tx, message_id: str) -> ReusableVectors:
    last = tx.maybe(_LAST_CONFIG)
    if last is None:
        return NO_REUSABLE_VECTORS
    rows = tx.execute(_OF_MESSAGE, message_id=message_id, config=last.id)
    return ReusableVectors(last.id, {_text_hash(row.heading, row.content): bytes(row.vector) for row in rows})


_OF_MESSAGE = sql("""
    SELECT c.heading, c.content, v.vector
    FROM content_chunks AS c JOIN chunk_vectors AS v ON v.number = c.number
    WHERE c.message_id = :message_id AND v.config = :config
""")

_OF_FILE = sql("""
    SELECT c.heading, c.content, c.location, v.vector
    FROM content_chunks AS c JOIN chunk_vectors AS v ON v.number = c.number
    WHERE c.file_id = :file_id AND v.config = :config
""")


def _text_hash(heading: str, content: str) -> bytes:
    return hashlib.sha256(f"{heading}\n{content}".encode("utf-8", "replace")).digest()


def add_to_index(tx: Tx, limit: int) -> int:
    """Copies vectors into the database's vector index that were stored before it had one.

    Returns their number.
    """
    last = tx.maybe(_LAST_CONFIG)
    if last is None or not tx.vector_index.is_in_database:
        return 0
    rows = tx.execute(tx.vector_index.without_near, config=last.id, limit=limit)
    for row in rows:
        tx.execute(tx.vector_index.fill_near, number=row.number, near=tx.vector_index.near(bytes(row.vector)))
    return len(rows)


@dataclass(frozen=True, slots=True)
class VectorGeneration:
    """The version of a project's vectors: each write raises `generation`, each removed chunk `removals`."""

    generation: int = 0
    removals: int = 0


def generation(tx: Tx, project_id: str) -> VectorGeneration:
    row = tx.maybe(_STATE, project_id=project_id)
    return VectorGeneration(row.generation, row.removals) if row else VectorGeneration()


_STATE = sql("SELECT generation, removals FROM library_states WHERE project_id = :project_id")


@dataclass(frozen=True, slots=True)
class VectorBatch:
    numbers: tuple[int, ...]
    are_files: tuple[bool, ...]
    joined: bytes
    """All vectors concatenated."""


def of_project(tx: Tx, project_id: str, config: int, after: int = 0) -> VectorBatch:
    """The vectors of a project that were written after a generation."""
    rows = tx.execute(_VECTORS, project_id=project_id, config=config, after=after)
    return VectorBatch(
        tuple(row.number for row in rows),
        tuple(row.source_type == Source.FILE.value for row in rows),
        b"".join(bytes(row.vector) for row in rows),
    )


_VECTORS = sql("""
    SELECT number, source_type, vector FROM chunk_vectors
    WHERE project_id = :project_id AND generation > :after AND config = :config ORDER BY generation, number
""")


def numbers(tx: Tx, project_id: str) -> tuple[int, ...]:
    """The numbers of all chunks of a project that have a vector."""
    return tuple(row.number for row in tx.execute(_NUMBERS, project_id=project_id))


_NUMBERS = sql("SELECT number FROM chunk_vectors WHERE project_id = :project_id")
