"""Chunks: what can be found, by its words and by its meaning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import NamedTuple

from sqlalchemy import TextClause, text

from tertulia.core.chunks import Chunk, Filters, Location, Source, Weights
from tertulia.core.plain import from_json
from tertulia.core.users import Actor
from tertulia.store.nearness import EXACT
from tertulia.store.transactions import Row, Tx, as_json
from tertulia.store.words import ENOUGH, phrases, plain


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A piece to be found, and the columns it is found by."""

    content: str
    heading: str
    location: Location
    summary: str
    token_count: int
    place: str
    """A file's path; for a message, its date written out."""
    around: str
    """A file's identifiers taken apart; for a message, what was said before and after."""
    called: str = ""
    """What its heading is searched by, where that is not the heading itself: a speaker's name."""


class Scored(NamedTuple):
    number: int
    score: float
    """The higher the better; comparable only within one answer."""


@dataclass(frozen=True, slots=True)
class Found:
    """A chunk, where it belongs and what people call that."""

    number: int
    chunk: Chunk
    title: str


# ── writing


def remove_file(tx: Tx, file_id: str) -> None:
    tx.execute(_REMOVE_FILE, file_id=file_id)


_REMOVE_FILE = text("DELETE FROM content_chunks WHERE file_id = :file_id")


def add_to_file(tx: Tx, file_id: str, project_id: str, first: int, new: Sequence[NewChunk]) -> None:
    """The next chunks of a file, from this index on."""
    _add(tx, _Source(Source.FILE, project_id, file_id=file_id, at=tx.now), first, new)


def replace_message(
    tx: Tx, message_id: str, conversation_id: str, project_id: str, said_at: int, new: Sequence[NewChunk]
) -> None:
    """All chunks of a message at once. Where only what is around it changed, its vectors stay."""
    source = _Source(
        Source.MESSAGE, project_id, said_at, message_id=message_id, conversation_id=conversation_id
    )
    old = tx.execute(_OF_MESSAGE, message_id=message_id)
    if [(row.content, row.heading) for row in old] == [(chunk.content, chunk.heading) for chunk in new]:
        for row, chunk in zip(old, new, strict=True):
            _add_words(tx, row.number, source, chunk)
        return
    tx.execute(_REMOVE_MESSAGE, message_id=message_id)
    _add(tx, source, 0, new)


_OF_MESSAGE = text("""
    SELECT number, content, heading FROM content_chunks WHERE message_id = :message_id ORDER BY chunk_index
""")

_REMOVE_MESSAGE = text("DELETE FROM content_chunks WHERE message_id = :message_id")


@dataclass(frozen=True, slots=True)
class _Source:
    type: Source
    project_id: str
    at: int
    file_id: str | None = None
    message_id: str | None = None
    conversation_id: str | None = None


def _add(tx: Tx, source: _Source, first: int, new: Sequence[NewChunk]) -> None:
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
        _add_words(tx, number, source, chunk)
        tx.execute(_DUE, number=number)


_ADD = text("""
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


def _add_words(tx: Tx, number: int, source: _Source, chunk: NewChunk) -> None:
    tx.execute(
        tx.words.add,
        number=number,
        scope=f"{_project(source.project_id)} {_kind(source.type)}",
        body=plain(chunk.content),
        heading=plain(chunk.called or chunk.heading),
        place=plain(chunk.place),
        around=plain(chunk.around),
    )


_DUE = text("INSERT INTO vectors_due (number) VALUES (:number)")


def _project(project_id: str) -> str:
    """A word nobody writes, to filter by inside MATCH; the 0 at the end keeps the stemmer away."""
    return f"p{project_id.lower()}0"


def _kind(source: Source) -> str:
    return "kfile0" if source is Source.FILE else "ktalk0"


def remove_message(tx: Tx, message_id: str) -> None:
    tx.execute(_REMOVE_MESSAGE, message_id=message_id)


def all_files(tx: Tx, project_id: str | None) -> tuple[str, ...]:
    """The files of a project, or of all: what there is to index, whether or not it is."""
    return tuple(row.id for row in tx.execute(_ALL_FILES, project_id=project_id))


_ALL_FILES = text("""
    SELECT id FROM project_files
    WHERE project_id = COALESCE(CAST(:project_id AS TEXT), project_id) ORDER BY id
""")


def all_conversations(tx: Tx, project_id: str | None) -> tuple[tuple[str, int], ...]:
    """The conversations of a project, or of all, with how many rounds each has."""
    return tuple((row.id, row.round_count) for row in tx.execute(_ALL_TALK, project_id=project_id))


_ALL_TALK = text("""
    SELECT id, round_count FROM conversations
    WHERE project_id = COALESCE(CAST(:project_id AS TEXT), project_id) ORDER BY id
""")


# ── vectors


@dataclass(frozen=True, slots=True)
class Due:
    """A chunk that waits for its vector, with what it is embedded under."""

    number: int
    source: Source
    file_id: str | None
    title: str
    heading: str
    content: str


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
    INSERT INTO vectors_due (number) SELECT number FROM content_chunks WHERE TRUE ON CONFLICT DO NOTHING
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


# The newest are embedded first, so what another model has made waits at the other end.
_IS_REPLACING = text("""
    SELECT 1 FROM (SELECT number FROM vectors_due ORDER BY number LIMIT 100) AS d
    JOIN chunk_vectors AS v ON v.number = d.number WHERE v.config <> :config LIMIT 1
""")


def due(tx: Tx, limit: int) -> tuple[Due, ...]:
    """Chunks without a vector, the newest first."""
    return tuple(
        Due(row.number, Source(row.source_type), row.file_id, row.path or "", row.heading, row.content)
        for row in tx.execute(_NEXT_DUE, limit=limit)
    )


_NEXT_DUE = text("""
    SELECT c.number, c.source_type, c.file_id, c.heading, c.content, f.path
    FROM (SELECT number FROM vectors_due ORDER BY number DESC LIMIT :limit) AS d
    JOIN content_chunks AS c ON c.number = d.number LEFT JOIN project_files AS f ON f.id = c.file_id
    ORDER BY c.number DESC
""")


def is_due(tx: Tx) -> bool:
    return tx.maybe(_ANY_DUE) is not None


_ANY_DUE = text("SELECT number FROM vectors_due LIMIT 1")


def count_due_in_file(tx: Tx, file_id: str) -> tuple[int, int]:
    """How many of a file's chunks have no vector yet, and how many chunks it has."""
    row = tx.one(_COUNT_DUE, file_id=file_id)
    return row.due, row.chunks


_COUNT_DUE = text("""
    SELECT COUNT(d.number) AS due, COUNT(*) AS chunks
    FROM content_chunks AS c LEFT JOIN vectors_due AS d ON d.number = c.number WHERE c.file_id = :file_id
""")


def save_vectors(tx: Tx, config: int, vectors: Iterable[tuple[int, bytes]]) -> None:
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


def place_vectors(tx: Tx, limit: int) -> int:
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


def vectors(tx: Tx, project_id: str, config: int, after: int = 0) -> Vectors:
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


# ── finding


@dataclass(frozen=True, slots=True)
class Narrowed:
    """Filters, worked out: which files, whose words, which time; None and nothing mean no limit."""

    file_ids: tuple[str, ...] | None = None
    speaker: str | None = None
    since: int | None = None
    until: int | None = None

    @property
    def is_open(self) -> bool:
        return self == _OPEN


_OPEN = Narrowed()


def narrowed(tx: Tx, project_ids: Sequence[str], source: Source, filters: Filters) -> Narrowed:
    if source is Source.MESSAGE:
        return Narrowed(None, filters.speaker, filters.since, filters.until)
    if not (filters.file_types or filters.paths or filters.tags):
        return Narrowed(None, None, filters.since, filters.until)
    rows = [row for project_id in project_ids for row in tx.execute(_FILES, project_id=project_id)]
    return Narrowed(tuple(row.id for row in rows if _fits(row, filters)), None, filters.since, filters.until)


_FILES = text("SELECT id, path, tags FROM project_files WHERE project_id = :project_id")


def _fits(row: Row, filters: Filters) -> bool:
    path = row.path.casefold()
    endings = tuple(f".{kind.lstrip('.')}".casefold() for kind in filters.file_types)
    places = tuple(place.strip("/").casefold() for place in filters.paths)
    return (
        (not endings or path.endswith(endings))
        and (not places or any(path == place or path.startswith(f"{place}/") for place in places))
        and (not filters.tags or not set(filters.tags).isdisjoint(from_json(tuple[str, ...], row.tags)))
    )


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
    if within.is_open and len(project_ids) == 1 and _is_most(tx, project_ids[0], source, many):
        best = _among_all(tx, project_ids[0], source, wanted, weights, limit)
        if len(best) == limit:
            return best
    limits = _limits(tx, within)
    rows = tx.execute(
        tx.words.find(weights, _conditions(tx.words.among, tuple(limits))),
        query=tx.words.query([f"{_project(id)} {_kind(source)}" for id in project_ids], wanted),
        project_ids=tx.words.many(project_ids),
        source_type=source.value,
        limit=limit,
        **limits,
    )
    return tuple(Scored(row.number, float(row.score)) for row in rows)


def _is_most(tx: Tx, project_id: str, source: Source, many: int) -> bool:
    """Whether what is said in this project, or its files, is most of all there is; by a sample."""
    last: int = tx.one(_LAST).number or 0 if tx.words.hurries else 0
    if last < many:
        return False
    numbers = tx.words.many([last * part // SAMPLE for part in range(1, SAMPLE + 1)])
    row = tx.one(_sample(tx.words.among), project_id=project_id, source_type=source.value, numbers=numbers)
    return bool(row.its * 2 > row.rows)


_LAST = text("SELECT MAX(number) AS number FROM content_chunks")


@cache
def _sample(among: str) -> TextClause:
    return text(f"""
        SELECT COUNT(*) AS rows,
            COUNT(CASE WHEN project_id = :project_id AND source_type = :source_type THEN 1 END) AS its
        FROM content_chunks WHERE {among.format(column="number", name="numbers")}
    """)


def _among_all(
    tx: Tx, project_id: str, source: Source, wanted: Sequence[str], weights: Weights, limit: int
) -> tuple[Scored, ...]:
    """Searched without a scope, which costs more than it narrows; what is not its own is left out then."""
    rows = {
        phrase: tx.one(tx.words.count, query=tx.words.query((), [phrase]), limit=ENOUGH).rows
        for phrase in dict.fromkeys(wanted)
    }
    query, times = tx.words.hurried(wanted, rows)
    found = tx.execute(tx.words.find(weights, ""), query=query, limit=SPARE * limit)
    scored = [Scored(row.number, row.score / times) for row in found]
    own = _own(tx, project_id, source, scored[:limit])
    if len(own) < limit:
        own += _own(tx, project_id, source, scored[limit:])
    return tuple(own[:limit])


def _own(tx: Tx, project_id: str, source: Source, scored: Sequence[Scored]) -> list[Scored]:
    numbers = tx.words.many([one.number for one in scored])
    rows = tx.execute(
        _of_project(tx.words.among), project_id=project_id, source_type=source.value, numbers=numbers
    )
    its = {row.number for row in rows}
    return [one for one in scored if one.number in its]


@cache
def _of_project(among: str) -> TextClause:
    return text(f"""
        SELECT number FROM content_chunks
        WHERE {among.format(column="number", name="numbers")}
            AND project_id = :project_id AND source_type = :source_type
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
        "speaker": within.speaker,
        "since": within.since,
        "until": within.until,
    }
    return {name: value for name, value in given.items() if value is not None}


_CONDITIONS = {
    "speaker": "c.speaker = :speaker",
    "since": "c.created_at >= :since",
    "until": "c.created_at <= :until",
}


@cache
def _conditions(among: str, names: tuple[str, ...]) -> str:
    conditions = _CONDITIONS | {"file_ids": among.format(column="c.file_id", name="file_ids")}
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


class Facts(NamedTuple):
    """What ranking looks at. A tuple: a search makes hundreds, and shows ten."""

    number: int
    group: str
    """The file or the conversation it belongs to."""
    path: str
    heading: str
    created_at: int
    source_id: str

    @property
    def name(self) -> str:
        """Who said it."""
        return "" if self.path else self.heading.rpartition(", ")[0]


def facts(tx: Tx, actor: Actor, numbers: Sequence[int]) -> dict[int, Facts]:
    """Of the chunks of these numbers that the actor may see."""
    rows = tx.execute(_facts(tx.words.among), actor_id=actor.user_id, numbers=tx.words.many(numbers))
    return {row.number: Facts._make(row) for row in rows}


@cache
def _facts(among: str) -> TextClause:
    return text(f"""
        SELECT c.number, COALESCE(c.file_id, c.conversation_id) AS belongs_to, COALESCE(f.path, '') AS path,
            c.heading, c.created_at, COALESCE(c.file_id, c.message_id) AS source_id
        FROM content_chunks AS c {_SEEN} LEFT JOIN project_files AS f ON f.id = c.file_id
        WHERE {among.format(column="c.number", name="numbers")} {_IS_SEEN}
    """)


_SEEN = "CROSS JOIN project_members AS seen"
_IS_SEEN = "AND seen.project_id = c.project_id AND seen.user_id = :actor_id"
"""By the chunk first: whoever is a member of a hundred projects has the same few chunks looked at."""


def get_many(tx: Tx, actor: Actor, numbers: Sequence[int]) -> dict[int, Found]:
    """The chunks of these numbers that the actor may see."""
    rows = tx.execute(_get(tx.words.among), actor_id=actor.user_id, numbers=tx.words.many(numbers))
    return {row.number: _found(row) for row in rows}


@cache
def _get(among: str) -> TextClause:
    return text(f"""
        SELECT c.number, c.id, c.source_type, c.file_id, c.message_id, c.project_id, c.chunk_index, c.content,
            c.heading, c.location, c.summary, c.token_count, c.created_at,
            COALESCE(f.path, t.title, '') AS title
        FROM content_chunks AS c {_SEEN}
        LEFT JOIN project_files AS f ON f.id = c.file_id
        LEFT JOIN conversations AS t ON t.id = c.conversation_id
        WHERE {among.format(column="c.number", name="numbers")} {_IS_SEEN}
    """)


def _found(row: Row) -> Found:
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
    return Found(row.number, chunk, row.title)


def has_outside(tx: Tx, project_id: str, conversation_id: str, first_round: int) -> bool:
    """Whether anything could be found that a conversation does not show from a round on."""
    return (
        tx.maybe(
            _HAS_OUTSIDE, project_id=project_id, conversation_id=conversation_id, first_round=first_round
        )
        is not None
    )


_HAS_OUTSIDE = text("""
    SELECT 1 FROM content_chunks AS c LEFT JOIN conversation_messages AS m ON m.id = c.message_id
    WHERE c.project_id = :project_id
        AND (m.id IS NULL OR m.conversation_id <> :conversation_id OR m.round_number < :first_round)
    LIMIT 1
""")
