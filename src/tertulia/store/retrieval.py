"""Retrieval: which chunks have the words of a question, or its meaning, within what filters leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import islice
from typing import NamedTuple

from sqlalchemy import TextClause, text

from tertulia.core.chunks import Filters, Source, Weights
from tertulia.core.plain import from_json
from tertulia.store.nearness import EXACT
from tertulia.store.transactions import Row, Tx
from tertulia.store.words import ENOUGH, phrases, scope


class Scored(NamedTuple):
    number: int
    score: float
    """The higher the better; comparable only within one answer."""


@dataclass(frozen=True, slots=True)
class Narrowed:
    """Filters, worked out: which files, whose words, which time; None and nothing mean no limit."""

    file_ids: tuple[str, ...] | None = None
    conversation_ids: tuple[str, ...] | None = None
    speaker: str | None = None
    since: int | None = None
    until: int | None = None

    @property
    def is_open(self) -> bool:
        return self == _OPEN


_OPEN = Narrowed()


def narrowed(tx: Tx, project_ids: Sequence[str], source: Source, filters: Filters) -> Narrowed:
    if source is Source.MESSAGE:
        return Narrowed(
            conversation_ids=filters.conversations or None,
            speaker=filters.speaker,
            since=filters.since,
            until=filters.until,
        )
    if not (filters.file_types or filters.paths or filters.tags):
        return Narrowed(since=filters.since, until=filters.until)
    rows = [row for project_id in project_ids for row in tx.execute(_FILES, project_id=project_id)]
    fitting = tuple(row.id for row in rows if _fits(row, filters))
    return Narrowed(file_ids=fitting, since=filters.since, until=filters.until)


_FILES = text("SELECT id, path, tags FROM project_files WHERE project_id = :project_id")


def _fits(row: Row, filters: Filters) -> bool:
    path = row.path.casefold()
    endings = tuple(f".{kind.lstrip('*.')}".casefold() for kind in filters.file_types)
    return (
        (not endings or path.endswith(endings))
        and (not filters.paths or any(_is_in(path, place.casefold()) for place in filters.paths))
        and (not filters.tags or not set(filters.tags).isdisjoint(from_json(tuple[str, ...], row.tags)))
    )


def _is_in(path: str, place: str) -> bool:
    """A place is a file, a folder, or a pattern of either: docs, docs/plan.md, docs/*, *.py."""
    place = place.removeprefix("./").strip("/")
    if place in ("", "."):
        return True
    return path == place or path.startswith(f"{place}/") or ("*" in place and fnmatchcase(path, place))


PHRASES = 128
"""A page of a script without spaces is one word, and as many phrases as it has characters."""
MANY = 50_000
"""From so many chunks on it matters how they are searched."""
SAMPLE = 50
SPARE = 3
"""So many times what is wanted is looked through: the project has more than half of everything."""


def by_words(
    tx: Tx,
    project_ids: Sequence[str],
    source: Source,
    words: Sequence[str],
    weights: Weights,
    limit: int,
    within: Narrowed = _OPEN,
    many: int = MANY,
) -> tuple[Scored, ...]:
    """Those with any of the words, best first; whatever is written in them is only looked for."""
    every = (phrase for word in words for phrase in phrases(word))  # one that comes twice counts twice
    wanted = list(islice(every, PHRASES))
    if not wanted or not project_ids or within.file_ids == ():
        return ()
    if within.is_open and _is_most(tx, project_ids, source, many if len(project_ids) == 1 else 0):
        best = _among_all(tx, project_ids, source, wanted, weights, limit)
        if best is not None:
            return best
    limits = _limits(tx, within)
    rows = tx.execute(
        tx.words.find(weights, _conditions(tx.words.among, tuple(limits))),
        query=tx.words.query([scope(id, source) for id in project_ids], wanted),
        project_ids=tx.words.many(project_ids),
        source_type=source.value,
        limit=limit,
        **limits,
    )
    return tuple(Scored(row.number, float(row.score)) for row in rows)


def _is_most(tx: Tx, project_ids: Sequence[str], source: Source, many: int) -> bool:
    """Whether what is said in these projects, or their files, is most of all there is; by a sample."""
    last: int = tx.one(_LAST).number or 0 if tx.words.hurries else 0
    if last < many:
        return False
    numbers = tx.words.many([last * part // SAMPLE for part in range(1, SAMPLE + 1)])
    projects = tx.words.many(project_ids)
    row = tx.one(_sample(tx.words.among), project_ids=projects, source_type=source.value, numbers=numbers)
    return bool(row.its * 2 > row.rows)


_LAST = text("SELECT MAX(number) AS number FROM content_chunks")


@cache
def _sample(among: str) -> TextClause:
    return text(f"""
        SELECT COUNT(*) AS rows, COUNT(CASE WHEN source_type = :source_type
            AND {among.format(column="project_id", name="project_ids")} THEN 1 END) AS its
        FROM content_chunks WHERE {among.format(column="number", name="numbers")}
    """)


def _among_all(
    tx: Tx, project_ids: Sequence[str], source: Source, wanted: Sequence[str], weights: Weights, limit: int
) -> tuple[Scored, ...] | None:
    """Searched without a scope, which costs more than it narrows; what is not its own is left out then.

    None when that leaves too few, and there may be more.
    """
    rows = {
        phrase: tx.one(tx.words.count, query=tx.words.query((), [phrase]), limit=ENOUGH).rows
        for phrase in dict.fromkeys(wanted)
    }
    query, times = tx.words.hurried(wanted, rows)
    found = tx.execute(tx.words.find(weights, ""), query=query, limit=SPARE * limit)
    scored = [Scored(row.number, row.score / times) for row in found]
    own = _own(tx, project_ids, source, scored[:limit])
    if len(own) < limit:
        own += _own(tx, project_ids, source, scored[limit:])
    return None if len(own) < limit and len(scored) == SPARE * limit else tuple(own[:limit])


def _own(tx: Tx, project_ids: Sequence[str], source: Source, scored: Sequence[Scored]) -> list[Scored]:
    numbers, projects = tx.words.many([one.number for one in scored]), tx.words.many(project_ids)
    rows = tx.execute(
        _of_projects(tx.words.among), project_ids=projects, source_type=source.value, numbers=numbers
    )
    its = {row.number for row in rows}
    return [one for one in scored if one.number in its]


@cache
def _of_projects(among: str) -> TextClause:
    return text(f"""
        SELECT number FROM content_chunks
        WHERE {among.format(column="number", name="numbers")}
            AND {among.format(column="project_id", name="project_ids")} AND source_type = :source_type
    """)


def by_meaning(
    tx: Tx,
    config: int,
    project_ids: Sequence[str],
    source: Source,
    vector: bytes,
    limit: int,
    within: Narrowed = _OPEN,
    exact: int = EXACT,
) -> tuple[Scored, ...] | None:
    """The nearest, best first; None where the database does not compare vectors, or not all of them yet."""
    near = tx.nearness
    if not near.is_in_database or tx.maybe(near.unplaced, config=config, limit=1):
        return None
    if not project_ids or within.file_ids == ():
        return ()
    limits = _limits(tx, within)
    is_walk = within.is_open and _count_near(tx, config, project_ids, exact + 1) > exact
    if is_walk:
        tx.execute(near.walk)
    rows = tx.execute(
        near.find(config, len(vector) // 2, _conditions(tx.words.among, tuple(limits)), is_walk),
        asked=near.near(vector),
        project_ids=tx.words.many(project_ids),
        source_type=source.value,
        limit=limit,
        **limits,
    )
    return tuple(Scored(row.number, float(row.score)) for row in rows)


def _count_near(tx: Tx, config: int, project_ids: Sequence[str], limit: int) -> int:
    projects = tx.words.many(project_ids)
    number: int = tx.one(tx.nearness.count, config=config, project_ids=projects, limit=limit).number
    return number


def _limits(tx: Tx, within: Narrowed) -> dict[str, object]:
    """Only those there are: a condition that is always true still costs."""
    given = {
        "file_ids": None if within.file_ids is None else tx.words.many(within.file_ids),
        "conversation_ids": None
        if within.conversation_ids is None
        else tx.words.many(within.conversation_ids),
        "speaker": within.speaker,
        "since": within.since,
        "until": within.until,
    }
    return {name: value for name, value in given.items() if value is not None}


_CONDITIONS = {
    "speaker": """(c.speaker = CAST(:speaker AS TEXT)
        OR SUBSTR(c.heading, 1, LENGTH(CAST(:speaker AS TEXT)) + 2) = CAST(:speaker AS TEXT) || ', ')""",
    "since": "c.created_at >= :since",
    "until": "c.created_at <= :until",
}


@cache
def _conditions(among: str, names: tuple[str, ...]) -> str:
    conditions = _CONDITIONS | {
        name: among.format(column=f"c.{name[:-1]}", name=name) for name in ("file_ids", "conversation_ids")
    }
    return "".join(f" AND {conditions[name]}" for name in names)


def within(tx: Tx, project_id: str, source: Source, limits: Narrowed) -> tuple[int, ...]:
    """The chunks that filters leave, for a search that is not made in the database."""
    given = _limits(tx, limits)
    statement = _within(_conditions(tx.words.among, tuple(given)))
    rows = tx.execute(statement, project_id=project_id, source_type=source.value, **given)
    return tuple(row.number for row in rows)


@cache
def _within(more: str) -> TextClause:
    return text(f"""
        SELECT c.number FROM content_chunks AS c
        WHERE c.project_id = :project_id AND c.source_type = :source_type {more}
    """)
