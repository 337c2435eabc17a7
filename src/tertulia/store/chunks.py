"""Chunks: writes and reads the searchable pieces of files and messages.

`store/retrieval.py` searches them and `store/vectors.py` stores their embedding vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from tertulia.core.chunks import Chunk, Location, Source
from tertulia.core.passages import SearchScope
from tertulia.core.serialization import from_json
from tertulia.core.users import Actor
from tertulia.store.column_values import as_json
from tertulia.store.sql import Statement, sql
from tertulia.store.text_index import plain, scope
from tertulia.store.transactions import Row, Tx


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A chunk to index, with the texts of its full-text index columns."""

    content: str
    heading: str
    location: Location
    summary: str
    token_count: int
    place: str
    """Full-text column: the file's path; for a message, its date in words."""
    around: str
    """Full-text column: the words in a file's identifiers; for a message, the texts before and after it."""
    called: str = ""
    """Text for the heading column of the full-text index, if not the heading itself: a speaker's name."""


@dataclass(frozen=True, slots=True)
class FoundChunk:
    """A chunk with its number and the title of its source: the file's path or the conversation's title."""

    number: int
    chunk: Chunk
    title: str


# ── writing


def remove_file(tx: Tx, file_id: str) -> None:
    tx.execute(_REMOVE_FILE, file_id=file_id)


_REMOVE_FILE = sql("DELETE FROM content_chunks WHERE file_id = :file_id")


def add_to_file(
    tx: Tx, file_id: str, project_id: str, first: int, new: Sequence[NewChunk]
) -> tuple[int, ...]:
    """Adds chunks to a file from index `first` on, dated like its newest version; returns their numbers."""
    at = tx.one(_LATEST_VERSION_DATE, file_id=file_id).created_at
    return _add(tx, _ChunkSource(Source.FILE, project_id, file_id=file_id, at=at), first, new)


_LATEST_VERSION_DATE = sql("""
    SELECT created_at FROM file_versions WHERE file_id = :file_id ORDER BY number DESC LIMIT 1
""")


def replace_message(
    tx: Tx, message_id: str, conversation_id: str, project_id: str, created_at: int, new: Sequence[NewChunk]
) -> tuple[int, ...]:
    """Replaces the chunks of a message; returns their numbers. Vectors stay if only texts around changed."""
    source = _ChunkSource(
        Source.MESSAGE, project_id, created_at, message_id=message_id, conversation_id=conversation_id
    )
    rows = tx.execute(_OF_MESSAGE, message_id=message_id)
    if [(row.content, row.heading) for row in rows] == [(chunk.content, chunk.heading) for chunk in new]:
        for row, chunk in zip(rows, new, strict=True):
            _add_to_text_index(tx, row.number, source, chunk)
        return tuple(row.number for row in rows)
    tx.execute(_REMOVE_MESSAGE, message_id=message_id)
    return _add(tx, source, 0, new)


_OF_MESSAGE = sql("""
    SELECT number, content, heading FROM content_chunks WHERE message_id = :message_id ORDER BY chunk_index
""")

_REMOVE_MESSAGE = sql("DELETE FROM content_chunks WHERE message_id = :message_id")


@dataclass(frozen=True, slots=True)
class _ChunkSource:
    type: Source
    project_id: str
    at: int
    file_id: str | None = None
    message_id: str | None = None
    conversation_id: str | None = None


def _add(tx: Tx, source: _ChunkSource, first: int, new: Sequence[NewChunk]) -> tuple[int, ...]:
    """Inserts the chunks, indexes them and marks them as due for vectors; returns their numbers."""
    numbers = []
    for index, chunk in enumerate(new, start=first):
        number: int = tx.one(
            _ADD,
            id=tx.new_id(),
            source_type=source.type.value,
            file_id=source.file_id,
            message_id=source.message_id,
            conversation_id=source.conversation_id,
            project_id=source.project_id,
            speaker=chunk.location.speaker,
            chunk_index=index,
            token_count=chunk.token_count,
            created_at=source.at,
            location=as_json(chunk.location),
            heading=chunk.heading,
            summary=chunk.summary,
            content=chunk.content,
        ).number
        _add_to_text_index(tx, number, source, chunk)
        tx.execute(_DUE, number=number, project_id=source.project_id)
        numbers.append(number)
    return tuple(numbers)


_ADD = sql("""
    INSERT INTO content_chunks (
        id, source_type, file_id, message_id, conversation_id, project_id, speaker, chunk_index, token_count,
        created_at, location, heading, summary, content
    )
    VALUES (
        :id, :source_type, :file_id, :message_id, :conversation_id, :project_id, :speaker, :chunk_index,
        :token_count, :created_at, :location, :heading, :summary, :content
    )
    RETURNING number
""")


def _add_to_text_index(tx: Tx, number: int, source: _ChunkSource, chunk: NewChunk) -> None:
    tx.execute(
        tx.text_index.add,
        number=number,
        scope=scope(source.project_id, source.type),
        body=plain(chunk.content),
        heading=plain(chunk.called or chunk.heading),
        place=plain(chunk.place),
        around=plain(chunk.around),
    )


_DUE = sql("INSERT INTO vectors_due (number, project_id) VALUES (:number, :project_id)")


def remove_message(tx: Tx, message_id: str) -> None:
    tx.execute(_REMOVE_MESSAGE, message_id=message_id)


def all_files(tx: Tx, project_id: str | None) -> tuple[tuple[str, str], ...]:
    """(file id, project id) of every file in a project, or in all projects, whether indexed or not."""
    return tuple((row.id, row.project_id) for row in tx.execute(_ALL_FILES, project_id=project_id))


_ALL_FILES = sql("""
    SELECT id, project_id FROM project_files
    WHERE project_id = COALESCE(CAST(:project_id AS TEXT), project_id) ORDER BY id
""")


def all_conversations(tx: Tx, project_id: str | None) -> tuple[tuple[str, str, int], ...]:
    """(conversation id, project id, round count) of every conversation in a project, or in all projects."""
    rows = tx.execute(_ALL_CONVERSATIONS, project_id=project_id)
    return tuple((row.id, row.project_id, row.round_count) for row in rows)


_ALL_CONVERSATIONS = sql("""
    SELECT id, project_id, round_count FROM conversations
    WHERE project_id = COALESCE(CAST(:project_id AS TEXT), project_id) ORDER BY id
""")


# ── reading


class RankingFacts(NamedTuple):
    """The facts of a chunk that ranking needs. A tuple, because a search makes hundreds and shows ten."""

    number: int
    group: str
    """The id of its file or conversation."""
    path: str
    heading: str
    created_at: int
    source_id: str

    @property
    def name(self) -> str:
        """The speaker of a message; empty for a file."""
        return "" if self.path else self.heading.rpartition(", ")[0]


def facts(tx: Tx, actor: Actor, numbers: Sequence[int]) -> dict[int, RankingFacts]:
    """The ranking facts of the chunks with these numbers, as far as the actor may see them."""
    rows = tx.execute(
        _facts(tx.text_index.in_list), actor_id=actor.user_id, numbers=tx.text_index.list_param(numbers)
    )
    return {row.number: RankingFacts._make(row) for row in rows}


@cache
def _facts(in_list: str) -> Statement:
    return sql(f"""
        SELECT c.number, COALESCE(c.file_id, c.conversation_id) AS belongs_to, COALESCE(f.path, '') AS path,
            c.heading, c.created_at, COALESCE(c.file_id, c.message_id) AS source_id
        FROM content_chunks AS c {_MEMBERS} LEFT JOIN project_files AS f ON f.id = c.file_id
        WHERE {in_list.format(column="c.number", name="numbers")} {_IS_VISIBLE}
    """)


_MEMBERS = "CROSS JOIN project_members AS seen"
_IS_VISIBLE = "AND seen.project_id = c.project_id AND seen.user_id = :actor_id"
"""The CROSS JOIN makes SQLite read the chunks first: a member of a hundred projects reads no more rows."""


def get_many(tx: Tx, actor: Actor, numbers: Sequence[int]) -> dict[int, FoundChunk]:
    """The chunks with these numbers, as far as the actor may see them."""
    rows = tx.execute(
        _get(tx.text_index.in_list), actor_id=actor.user_id, numbers=tx.text_index.list_param(numbers)
    )
    return {row.number: _found_chunk(row) for row in rows}


@cache
def _get(in_list: str) -> Statement:
    return sql(f"""
        SELECT c.number, c.id, c.source_type, c.file_id, c.message_id, c.project_id, c.chunk_index, c.content,
            c.heading, c.location, c.summary, c.token_count, c.created_at,
            COALESCE(f.path, t.title, '') AS title
        FROM content_chunks AS c {_MEMBERS}
        LEFT JOIN project_files AS f ON f.id = c.file_id
        LEFT JOIN conversations AS t ON t.id = c.conversation_id
        WHERE {in_list.format(column="c.number", name="numbers")} {_IS_VISIBLE}
    """)


def _found_chunk(row: Row) -> FoundChunk:
    chunk = Chunk(
        id=row.id,
        source_type=Source(row.source_type),
        source_id=row.file_id or row.message_id,
        project_id=row.project_id,
        chunk_index=row.chunk_index,
        content=row.content,
        heading=row.heading,
        location=from_json(Location, row.location),
        summary=row.summary,
        token_count=row.token_count,
        created_at=row.created_at,
    )
    return FoundChunk(row.number, chunk, row.title)


def count(tx: Tx, project_ids: Sequence[str], limit: int) -> int:
    """The number of chunks in these projects; counting stops at the limit."""
    number: int = tx.one(
        _count(tx.text_index.in_list), project_ids=tx.text_index.list_param(project_ids), limit=limit
    ).number
    return number


@cache
def _count(in_list: str) -> Statement:
    return sql(f"""
        SELECT COUNT(*) AS number FROM (
            SELECT 1 FROM content_chunks WHERE {in_list.format(column="project_id", name="project_ids")}
            LIMIT :limit
        ) AS counted
    """)


def has_outside(tx: Tx, project_id: str, conversation_id: str, first_round: int, scope: SearchScope) -> bool:
    """True if a search could find chunks outside the rounds of a conversation from `first_round` on.

    Rounds before `first_round` may be inherited, and then their chunks belong to another conversation.
    """
    row = tx.maybe(
        _HAS_OUTSIDE,
        project_id=project_id,
        conversation_id=conversation_id,
        first_round=first_round,
        files=scope.files,
        others=scope.conversations or first_round > 1,
    )
    return row is not None


_HAS_OUTSIDE = sql("""
    SELECT 1 FROM content_chunks AS c LEFT JOIN conversation_messages AS m ON m.id = c.message_id
    WHERE c.project_id = :project_id
        AND (
            (m.id IS NULL AND :files) OR (m.conversation_id <> :conversation_id AND :others)
            OR (m.conversation_id = :conversation_id AND m.round_number < :first_round)
        )
    LIMIT 1
""")
