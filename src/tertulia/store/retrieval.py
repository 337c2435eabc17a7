"""Retrieval: full-text search and vector search over chunks, within filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import islice
from typing import NamedTuple

from tertulia.core.chunks import Filters, Source, Weights
from tertulia.core.serialization import from_json
from tertulia.store.sql import Statement, sql
from tertulia.store.text_index import ENOUGH, phrases, scope
from tertulia.store.transactions import Row, Tx
from tertulia.store.vector_index import EXACT


class ScoredChunk(NamedTuple):
    number: int
    score: float
    """A higher score is better. Scores are comparable only within one result."""


@dataclass(frozen=True, slots=True)
class ResolvedFilters:
    """Filters resolved to ids, a speaker and a time range. None means no limit; an empty tuple, no match."""

    file_ids: tuple[str, ...] | None = None
    conversation_ids: tuple[str, ...] | None = None
    speaker: str | None = None
    since: int | None = None
    until: int | None = None

    @property
    def is_open(self) -> bool:
        return self == _OPEN


_OPEN = ResolvedFilters()


def filter_for(tx: Tx, project_ids: Sequence[str], source: Source, filters: Filters) -> ResolvedFilters:
    if source is Source.MESSAGE:
        return ResolvedFilters(
            conversation_ids=filters.conversations or None,
            speaker=filters.speaker,
            since=filters.since,
            until=filters.until,
        )
    if not (filters.file_types or filters.paths or filters.tags):
        return ResolvedFilters(since=filters.since, until=filters.until)
    rows = [row for project_id in project_ids for row in tx.execute(_FILES, project_id=project_id)]
    file_ids = tuple(row.id for row in rows if _matches(row, filters))
    return ResolvedFilters(file_ids=file_ids, since=filters.since, until=filters.until)


_FILES = sql("SELECT id, path, tags FROM project_files WHERE project_id = :project_id")


def _matches(row: Row, filters: Filters) -> bool:
    path = row.path.casefold()
    endings = tuple(f".{file_type.lstrip('*.')}".casefold() for file_type in filters.file_types)
    return (
        (not endings or path.endswith(endings))
        and (not filters.paths or any(_is_under(path, pattern.casefold()) for pattern in filters.paths))
        and (not filters.tags or not set(filters.tags).isdisjoint(from_json(tuple[str, ...], row.tags)))
    )


def _is_under(path: str, pattern: str) -> bool:
    """Whether a path matches a file, a folder or a pattern: docs, docs/plan.md, docs/*, *.py."""
    pattern = pattern.removeprefix("./").strip("/")
    if pattern in ("", "."):
        return True
    return (
        path == pattern or path.startswith(f"{pattern}/") or ("*" in pattern and fnmatchcase(path, pattern))
    )


PHRASES = 128
"""The most phrases of a query. A page in a script without spaces is one word with a phrase per character."""
MANY = 50_000
"""From this number of chunks on, a search without a project filter can be much faster."""
SAMPLE = 50
SPARE = 3
"""A search without a project filter fetches this many times the limit.

The projects hold more than half of all chunks, so enough of the rows are theirs.
"""


def by_words(
    tx: Tx,
    project_ids: Sequence[str],
    source: Source,
    words: Sequence[str],
    weights: Weights,
    limit: int,
    within: ResolvedFilters = _OPEN,
    many: int = MANY,
) -> tuple[ScoredChunk, ...]:
    """Full-text search: the chunks with any of the words, best first.

    The words are data: operators of the query language in them have no effect.
    """
    all_phrases = (phrase for word in words for phrase in phrases(word))  # a repeated phrase counts twice
    query_phrases = list(islice(all_phrases, PHRASES))
    if not query_phrases or not project_ids or within.file_ids == ():
        return ()
    if within.is_open and _hold_most_chunks(tx, project_ids, source, many if len(project_ids) == 1 else 0):
        best = _by_words_everywhere(tx, project_ids, source, query_phrases, weights, limit)
        if best is not None:
            return best
    limits = _limits(tx, within)
    rows = tx.execute(
        tx.text_index.find(weights, _conditions(tx.text_index.in_list, tuple(limits))),
        query=tx.text_index.query([scope(id, source) for id in project_ids], query_phrases),
        project_ids=tx.text_index.list_param(project_ids),
        source_type=source.value,
        limit=limit,
        **limits,
    )
    return tuple(ScoredChunk(row.number, float(row.score)) for row in rows)


def _hold_most_chunks(tx: Tx, project_ids: Sequence[str], source: Source, minimum: int) -> bool:
    """Whether these projects hold most of all chunks, estimated from a sample."""
    last: int = tx.one(_LAST).number or 0 if tx.text_index.prefers_global_query else 0
    if last < minimum:
        return False
    numbers = tx.text_index.list_param([last * part // SAMPLE for part in range(1, SAMPLE + 1)])
    projects = tx.text_index.list_param(project_ids)
    row = tx.one(
        _sample(tx.text_index.in_list), project_ids=projects, source_type=source.value, numbers=numbers
    )
    return bool(row.its * 2 > row.rows)


_LAST = sql("SELECT MAX(number) AS number FROM content_chunks")


@cache
def _sample(in_list: str) -> Statement:
    return sql(f"""
        SELECT COUNT(*) AS rows, COUNT(CASE WHEN source_type = :source_type
            AND {in_list.format(column="project_id", name="project_ids")} THEN 1 END) AS its
        FROM content_chunks WHERE {in_list.format(column="number", name="numbers")}
    """)


def _by_words_everywhere(
    tx: Tx,
    project_ids: Sequence[str],
    source: Source,
    query_phrases: Sequence[str],
    weights: Weights,
    limit: int,
) -> tuple[ScoredChunk, ...] | None:
    """Searches all projects and drops the rows of others: here the project filter costs more than it saves.

    None when too few rows are left although there may be more.
    """
    rows = {
        phrase: tx.one(tx.text_index.count, query=tx.text_index.query((), [phrase]), limit=ENOUGH).rows
        for phrase in dict.fromkeys(query_phrases)
    }
    query, factor = tx.text_index.global_query(query_phrases, rows)
    matches = tx.execute(tx.text_index.find(weights, ""), query=query, limit=SPARE * limit)
    scored = [ScoredChunk(row.number, row.score / factor) for row in matches]
    own = _only_of_projects(tx, project_ids, source, scored[:limit])
    if len(own) < limit:
        own += _only_of_projects(tx, project_ids, source, scored[limit:])
    return None if len(own) < limit and len(scored) == SPARE * limit else tuple(own[:limit])


def _only_of_projects(
    tx: Tx, project_ids: Sequence[str], source: Source, scored: Sequence[ScoredChunk]
) -> list[ScoredChunk]:
    numbers, projects = (
        tx.text_index.list_param([chunk.number for chunk in scored]),
        tx.text_index.list_param(project_ids),
    )
    rows = tx.execute(
        _select_of_projects(tx.text_index.in_list),
        project_ids=projects,
        source_type=source.value,
        numbers=numbers,
    )
    own_numbers = {row.number for row in rows}
    return [chunk for chunk in scored if chunk.number in own_numbers]


@cache
def _select_of_projects(in_list: str) -> Statement:
    return sql(f"""
        SELECT number FROM content_chunks
        WHERE {in_list.format(column="number", name="numbers")}
            AND {in_list.format(column="project_id", name="project_ids")} AND source_type = :source_type
    """)


def by_meaning(
    tx: Tx,
    config: int,
    project_ids: Sequence[str],
    source: Source,
    vector: bytes,
    limit: int,
    within: ResolvedFilters = _OPEN,
    exact: int = EXACT,
) -> tuple[ScoredChunk, ...] | None:
    """Vector search: the nearest chunks, best first.

    None where the database does not compare vectors, or cannot compare all of them yet.
    """
    index = tx.vector_index
    if not index.is_in_database or tx.maybe(index.without_near, config=config, limit=1):
        return None
    if not project_ids or within.file_ids == ():
        return ()
    limits = _limits(tx, within)
    use_index = within.is_open and _count_near(tx, config, project_ids, exact + 1) > exact
    if use_index:
        tx.execute(index.scan_further)
    rows = tx.execute(
        index.find(config, len(vector) // 2, _conditions(tx.text_index.in_list, tuple(limits)), use_index),
        asked=index.near(vector),
        project_ids=tx.text_index.list_param(project_ids),
        source_type=source.value,
        limit=limit,
        **limits,
    )
    return tuple(ScoredChunk(row.number, float(row.score)) for row in rows)


def _count_near(tx: Tx, config: int, project_ids: Sequence[str], limit: int) -> int:
    projects = tx.text_index.list_param(project_ids)
    number: int = tx.one(tx.vector_index.count, config=config, project_ids=projects, limit=limit).number
    return number


def _limits(tx: Tx, within: ResolvedFilters) -> dict[str, object]:
    """The parameters of the limits that are set. Others are left out: even a trivial condition costs time."""
    values = {
        "file_ids": None if within.file_ids is None else tx.text_index.list_param(within.file_ids),
        "conversation_ids": None
        if within.conversation_ids is None
        else tx.text_index.list_param(within.conversation_ids),
        "speaker": within.speaker,
        "since": within.since,
        "until": within.until,
    }
    return {name: value for name, value in values.items() if value is not None}


_CONDITIONS = {
    "speaker": """(c.speaker = CAST(:speaker AS TEXT)
        OR SUBSTR(c.heading, 1, LENGTH(CAST(:speaker AS TEXT)) + 2) = CAST(:speaker AS TEXT) || ', ')""",
    "since": "c.created_at >= :since",
    "until": "c.created_at <= :until",
}


@cache
def _conditions(in_list: str, names: tuple[str, ...]) -> str:
    conditions = _CONDITIONS | {
        name: in_list.format(column=f"c.{name[:-1]}", name=name) for name in ("file_ids", "conversation_ids")
    }
    return "".join(f" AND {conditions[name]}" for name in names)


def within(tx: Tx, project_id: str, source: Source, limits: ResolvedFilters) -> tuple[int, ...]:
    """The numbers of the chunks that pass the filters, for a vector search in the server's memory."""
    params = _limits(tx, limits)
    statement = _within(_conditions(tx.text_index.in_list, tuple(params)))
    rows = tx.execute(statement, project_id=project_id, source_type=source.value, **params)
    return tuple(row.number for row in rows)


@cache
def _within(conditions: str) -> Statement:
    return sql(f"""
        SELECT c.number FROM content_chunks AS c
        WHERE c.project_id = :project_id AND c.source_type = :source_type {conditions}
    """)
