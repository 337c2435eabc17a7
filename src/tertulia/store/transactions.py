"""One transaction: what a noun's functions are handed to read, write and say what changed."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import TextClause, text

from tertulia.core.errors import Busy, NotFound, TertuliaError
from tertulia.core.events import Event, Kind
from tertulia.core.ids import Clock, NewId
from tertulia.core.plain import to_json
from tertulia.core.text import storable
from tertulia.store.nearness import Nearness
from tertulia.store.words import Words

GONE = "This does not exist, or you may not see it."
"""The one sentence for what is missing and for what is hidden, so that nobody can tell them apart."""

WAITING_LIMIT = 10_000
"""More work than this in one line is refused: whoever waits that long has given up."""


Row = Any
"""A named tuple of the columns a statement asks for."""


class Cursor(Protocol):
    """The driver's own. SQLAlchemy's results cost five times the statement they come from."""

    @property
    def description(self) -> Any: ...
    def execute(self, sql: Any, params: Any, /) -> Any: ...
    def executemany(self, sql: Any, rows: Any, /) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class Dialect(Protocol):
    """What differs between the databases while a transaction runs."""

    error: type[Exception]
    """What everything the driver raises has in common."""

    skip_locked: str
    """Ends a SELECT that takes a row nobody else has taken."""

    words: Words
    """Its index of words."""

    nearness: Nearness
    """How it keeps vectors, and whether it compares them."""

    node: str
    """Who writes: the name of this server among those that share the database."""

    def render(self, statement: TextClause) -> str:
        """The statement in the driver's own style of parameters."""

    def hold(self, tx: Tx, name: str) -> None:
        """Until this transaction ends, nobody else gets past holding the same name."""

    def numbered(self, tx: Tx, places: Sequence[str]) -> None:
        """Called while the transaction holds these places and nobody else can write in them."""

    def translate(self, error: Exception) -> TertuliaError | None:
        """What a driver's error means to a person; None when it is a mistake of ours."""


class Tx:
    """A running transaction. Its events get their numbers when the work is done, in one go."""

    __slots__ = ("_cursor", "_dialect", "_said", "events", "new_id", "now")

    def __init__(self, cursor: Cursor, dialect: Dialect, clock: Clock, new_id: NewId) -> None:
        self._cursor = cursor
        self._dialect = dialect
        self._said: dict[tuple[str, str, str], tuple[Kind, object]] = {}
        self.events: tuple[Event, ...] = ()
        self.now = clock()
        self.new_id = new_id

    def execute(self, statement: TextClause, **params: object) -> list[Row]:
        self._cursor.execute(self._dialect.render(statement), _storable(params))
        if statement not in _SHAPES:
            _SHAPES[statement] = _shape(self._cursor)
        shape = _SHAPES[statement]
        return [] if shape is None else [shape(row) for row in self._cursor.fetchall()]

    def execute_many(self, statement: TextClause, rows: Sequence[Mapping[str, object]]) -> None:
        if rows:
            self._cursor.executemany(self._dialect.render(statement), [_storable(row) for row in rows])

    def one(self, statement: TextClause, **params: object) -> Row:
        rows = self.execute(statement, **params)
        if not rows:
            raise NotFound(GONE)
        return rows[0]

    def maybe(self, statement: TextClause, **params: object) -> Row | None:
        rows = self.execute(statement, **params)
        return rows[0] if rows else None

    @property
    def skip_locked(self) -> str:
        return self._dialect.skip_locked

    @property
    def words(self) -> Words:
        return self._dialect.words

    @property
    def nearness(self) -> Nearness:
        return self._dialect.nearness

    @property
    def node(self) -> str:
        return self._dialect.node

    def hold(self, name: str) -> None:
        """Keeps others out from here to the commit, where what is written depends on what was read."""
        self._dialect.hold(self, name)

    def emit(self, place: str, kind: Kind, noun: str, id: str, value: object | None = None) -> None:
        """Says that something changed. Said twice in one transaction, only the last word counts."""
        self._said.pop((place, noun, id), None)
        self._said[place, noun, id] = (kind, value)

    def number_events(self) -> None:
        """Appends what was said to the log, place by place in order of name so that no two wait in a ring."""
        if not self._said:
            return
        said, self._said = self._said, {}
        counts: dict[str, int] = {}
        for place, _, _ in said:
            counts[place] = counts.get(place, 0) + 1
        places = sorted(counts)
        last = {place: self._take_numbers(place, counts[place]) - counts[place] for place in places}
        self._dialect.numbered(self, places)
        fresh = []
        for (place, noun, id), (kind, value) in said.items():
            last[place] += 1
            fresh.append(
                Event(place, last[place], kind, noun, id, None if value is None else as_json(value), self.now)
            )
        self.execute_many(_APPEND, [_row(event) for event in fresh])
        self.events += tuple(fresh)

    def _take_numbers(self, place: str, count: int) -> int:
        number: int = self.one(_TAKE_NUMBERS, place=place, count=count).number
        return number


_SHAPES: dict[TextClause, Callable[[Iterable[Any]], Row] | None] = {}
"""How the rows of each statement are made; None for one that gives none."""


def _shape(cursor: Cursor) -> Callable[[Iterable[Any]], Row] | None:
    if cursor.description is None:
        return None
    names = [column[0] for column in cursor.description]
    row: Any = namedtuple("Row", names, rename=True)  # type: ignore[misc]  # the names are known only now
    make: Callable[[Iterable[Any]], Row] = row._make
    return make


_TAKE_NUMBERS = text("""
    INSERT INTO places (place, number) VALUES (:place, :count)
    ON CONFLICT (place) DO UPDATE SET number = places.number + excluded.number
    RETURNING number
""")

_APPEND = text("""
    INSERT INTO events (place, number, kind, noun, id, value, at)
    VALUES (:place, :number, :kind, :noun, :id, :value, :at)
""")


def _row(event: Event) -> dict[str, object]:
    return {
        "place": event.place,
        "number": event.number,
        "kind": event.kind.value,
        "noun": event.noun,
        "id": event.id,
        "value": event.value,
        "at": event.at,
    }


def as_json(value: object) -> str:
    """The value as JSON that any database can hold, and that reads back as it is stored."""
    written = to_json(value)
    if "\\u0000" in written:
        written = json.dumps(_without_nul(json.loads(written)), ensure_ascii=False, separators=(",", ":"))
    return storable(written)


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_without_nul(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): _without_nul(item) for key, item in value.items()}
    return value


def _storable(params: Mapping[str, object]) -> Mapping[str, object]:
    """Copied only where something may have to be mended: nearly all that is written is plain ASCII."""
    for value in params.values():
        if isinstance(value, str) and (not value.isascii() or "\0" in value):
            return {name: storable(one) if isinstance(one, str) else one for name, one in params.items()}
    return params


@dataclass(slots=True, eq=False)
class Work:
    """Something to do in a transaction of its own, and who waits for it."""

    run: Callable[[Tx], Any]
    future: asyncio.Future[Any] | concurrent.futures.Future[Any]
    loop: asyncio.AbstractEventLoop | None
    """Where the one who waits lives; None when a thread waits."""
    result: Any = None
    error: Exception | None = None
    events: tuple[Event, ...] = ()

    def perform(self, tx: Tx, dialect: Dialect) -> None:
        """Does it, up to the commit; what goes wrong is kept for the one who waits."""
        try:
            self.result = self.run(tx)
            tx.number_events()
        except dialect.error as error:
            self.fail(meaning(error, dialect))
        except Exception as error:  # noqa: BLE001  handed on to the one who waits
            self.error = error
        else:
            self.error, self.events = None, tx.events

    def fail(self, error: Exception) -> None:
        self.error, self.result, self.events = error, None, ()

    def settle(self) -> None:
        """Tells the one who waits, unless it has stopped waiting."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


def meaning(error: Exception, dialect: Dialect) -> Exception:
    """What a person is told; the driver's error itself when it is a mistake of ours."""
    told = dialect.translate(error)
    if told is None:
        return error
    told.__cause__ = error
    return told


def refuse(is_closed: bool, waiting: int) -> None:
    """No work for a database that is closing, nor more than it can do while someone still waits for it."""
    if is_closed:
        raise Busy("The server is stopping. Try again when it is back.")
    if waiting >= WAITING_LIMIT:
        raise Busy("The database has more to do than it can keep up with. Try again in a few seconds.", 5)
