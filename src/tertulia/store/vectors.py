"""Vectors: what each chunk means, made by one way of embedding at a time; which still wait for theirs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import text

from tertulia.core.chunks import Source
from tertulia.store.chunks import NewChunk
from tertulia.store.transactions import Tx, as_json


@dataclass(frozen=True, slots=True)
class Due:
    """A chunk that waits for its vector, with what it is embedded under."""

    number: int
    source: Source
    file_id: str | None
    title: str
    heading: str
    content: str
    project_id: str
    conversation_id: str | None
    user_id: str | None
    """Who wrote it, or brought it; None when they are gone."""


def set_config(tx: Tx, model: str, dimensions: int) -> int:
    """The number of this way of embedding. When it is not the last one used, every chunk is due again."""
    row = tx.maybe(_LAST_CONFIG)
    if row is not None and (row.model, row.dimensions) == (model, dimensions):
        _index_config(tx, row.id, dimensions)
        id: int = row.id
        return id
    id = row.id + 1 if row else 1
    tx.execute(_ADD_CONFIG, id=id, model=model, dimensions=dimensions, now=tx.now)
    tx.execute(_ALL_DUE)
    _index_config(tx, id, dimensions)
    return id


_LAST_CONFIG = text("SELECT id, model, dimensions FROM embedding_config ORDER BY id DESC LIMIT 1")

_ADD_CONFIG = text("""
    INSERT INTO embedding_config (id, model, dimensions, created_at) VALUES (:id, :model, :dimensions, :now)
""")

_ALL_DUE = text("""
    INSERT INTO vectors_due (number, project_id)
    SELECT number, project_id FROM content_chunks WHERE TRUE ON CONFLICT DO NOTHING
""")


def _index_config(tx: Tx, config: int, dimensions: int) -> None:
    """The index of this way of embedding takes the place of the last one's."""
    if not tx.nearness.is_in_database:
        return
    wanted = tx.nearness.index(config, dimensions)
    there = [row.name for row in tx.execute(tx.nearness.indexes)]
    for name in there:
        if wanted is None or name != wanted[0]:
            tx.execute(text(f"DROP INDEX {name}"))
    if wanted is not None and wanted[0] not in there:
        tx.execute(wanted[1])


def find_config(tx: Tx, model: str, dimensions: int) -> int | None:
    """The number of this way of embedding; None while it is not in use, or replaces what another has made."""
    row = tx.maybe(_LAST_CONFIG)
    if row is None or (row.model, row.dimensions) != (model, dimensions):
        return None
    return None if tx.maybe(_IS_REPLACING, config=row.id) else row.id


# In each project the newest are embedded first, so what another model has made waits at the other end.
_IS_REPLACING = text("""
    SELECT 1 FROM (SELECT number FROM vectors_due ORDER BY number LIMIT 100) AS d
    JOIN chunk_vectors AS v ON v.number = d.number WHERE v.config <> :config LIMIT 1
""")


def due(tx: Tx, limit: int, after: str = "") -> tuple[Due, ...]:
    """Chunks without a vector: the newest of the project after the last one's, then of those that follow it.

    The projects are a ring, so that none waits for all that another has.
    """
    rows = tx.execute(_DUE_AFTER, limit=limit, after=after)
    rows += tx.execute(_DUE_FROM_THE_FIRST, limit=limit - len(rows), after=after)
    return tuple(
        Due(
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

_DUE_AFTER = text(_DUE.format(which=">"))

_DUE_FROM_THE_FIRST = text(_DUE.format(which="<="))


def count_due_in_file(tx: Tx, file_id: str) -> tuple[int, int]:
    """How many of a file's chunks have no vector yet, and how many chunks it has."""
    row = tx.one(_COUNT_DUE, file_id=file_id)
    return row.due, row.chunks


_COUNT_DUE = text("""
    SELECT COUNT(d.number) AS due, COUNT(*) AS chunks
    FROM content_chunks AS c LEFT JOIN vectors_due AS d ON d.number = c.number WHERE c.file_id = :file_id
""")


def save(tx: Tx, config: int, vectors: Iterable[tuple[int, bytes]]) -> None:
    """Those whose chunk is gone meanwhile are dropped."""
    generations: dict[str, int] = {}
    for number, vector in vectors:
        row = tx.maybe(_PROJECT_OF, number=number)
        if row is None:
            continue
        if row.project_id not in generations:
            generations[row.project_id] = tx.one(_NEXT_GENERATION, project_id=row.project_id).generation
        tx.execute(
            tx.nearness.save,
            number=number,
            project_id=row.project_id,
            source_type=row.source_type,
            config=config,
            generation=generations[row.project_id],
            vector=vector,
            near=tx.nearness.near(vector),
        )
        tx.execute(_NOT_DUE, number=number)


_PROJECT_OF = text("SELECT project_id, source_type FROM content_chunks WHERE number = :number")

_NEXT_GENERATION = text("""
    INSERT INTO library_states (project_id, generation, removals) VALUES (:project_id, 1, 0)
    ON CONFLICT (project_id) DO UPDATE SET generation = library_states.generation + 1 RETURNING generation
""")

_NOT_DUE = text("DELETE FROM vectors_due WHERE number = :number")


@dataclass(frozen=True, slots=True)
class Kept:
    """The vectors of what is read anew, by what they were made from."""

    config: int
    vectors: Mapping[bytes, bytes]

    def of(self, heading: str, content: str) -> bytes | None:
        return self.vectors.get(_made_from(heading, content))

    def again(self, numbers: Sequence[int], new: Sequence[NewChunk]) -> list[tuple[int, bytes]]:
        """For chunks that were just written: those whose text has not changed."""
        found = (self.of(chunk.heading, chunk.content) for chunk in new)
        return [(number, one) for number, one in zip(numbers, found, strict=True) if one is not None]


NONE_KEPT = Kept(0, {})


def of_file(tx: Tx, file_id: str, path: str) -> Kept:
    """Those that are as they would be made again: in the way in use, under the same path."""
    last = tx.maybe(_LAST_CONFIG)
    if last is None:
        return NONE_KEPT
    under = f'"path":{as_json(path)}'
    rows = tx.execute(_OF_FILE, file_id=file_id, config=last.id)
    made = {_made_from(row.heading, row.content): bytes(row.vector) for row in rows if under in row.location}
    return Kept(last.id, made)


def of_message(tx: Tx, message_id: str) -> Kept:
    last = tx.maybe(_LAST_CONFIG)
    if last is None:
        return NONE_KEPT
    rows = tx.execute(_OF_MESSAGE, message_id=message_id, config=last.id)
    return Kept(last.id, {_made_from(row.heading, row.content): bytes(row.vector) for row in rows})


_OF_MESSAGE = text("""
    SELECT c.heading, c.content, v.vector
    FROM content_chunks AS c JOIN chunk_vectors AS v ON v.number = c.number
    WHERE c.message_id = :message_id AND v.config = :config
""")

_OF_FILE = text("""
    SELECT c.heading, c.content, c.location, v.vector
    FROM content_chunks AS c JOIN chunk_vectors AS v ON v.number = c.number
    WHERE c.file_id = :file_id AND v.config = :config
""")


def _made_from(heading: str, content: str) -> bytes:
    return hashlib.sha256(f"{heading}\n{content}".encode("utf-8", "replace")).digest()


def place(tx: Tx, limit: int) -> int:
    """Hands on to the database those it cannot compare yet, from before it could; says how many."""
    last = tx.maybe(_LAST_CONFIG)
    if last is None or not tx.nearness.is_in_database:
        return 0
    rows = tx.execute(tx.nearness.unplaced, config=last.id, limit=limit)
    for row in rows:
        tx.execute(tx.nearness.place, number=row.number, near=tx.nearness.near(bytes(row.vector)))
    return len(rows)


@dataclass(frozen=True, slots=True)
class LibraryState:
    """How far a project's vectors have come: each write makes a generation, each chunk removed is counted."""

    generation: int = 0
    removals: int = 0


def state(tx: Tx, project_id: str) -> LibraryState:
    row = tx.maybe(_STATE, project_id=project_id)
    return LibraryState(row.generation, row.removals) if row else LibraryState()


_STATE = text("SELECT generation, removals FROM library_states WHERE project_id = :project_id")


@dataclass(frozen=True, slots=True)
class Vectors:
    numbers: tuple[int, ...]
    are_files: tuple[bool, ...]
    joined: bytes
    """All vectors one after the other."""


def of_project(tx: Tx, project_id: str, config: int, after: int = 0) -> Vectors:
    """Those written after a generation."""
    rows = tx.execute(_VECTORS, project_id=project_id, config=config, after=after)
    return Vectors(
        tuple(row.number for row in rows),
        tuple(row.source_type == Source.FILE.value for row in rows),
        b"".join(bytes(row.vector) for row in rows),
    )


_VECTORS = text("""
    SELECT number, source_type, vector FROM chunk_vectors
    WHERE project_id = :project_id AND generation > :after AND config = :config ORDER BY generation, number
""")


def numbers(tx: Tx, project_id: str) -> tuple[int, ...]:
    """All chunks of a project that have a vector."""
    return tuple(row.number for row in tx.execute(_NUMBERS, project_id=project_id))


_NUMBERS = text("SELECT number FROM chunk_vectors WHERE project_id = :project_id")
