"""Transactions: `Tx` runs the store's statements and numbers the events that they emit."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from tertulia.core.errors import NotFound, TertuliaError
from tertulia.core.events import Event, EventKind
from tertulia.core.ids import Clock, NewId
from tertulia.store.column_values import as_json, storable_params
from tertulia.store.sql import Statement, sql
from tertulia.store.text_index import TextIndex
from tertulia.store.vector_index import VectorIndex

GONE = "This does not exist, or you may not see it."
"""The same message for missing and for hidden things, so that no client can tell them apart."""

Row = Any
"""A named tuple of the columns that a statement selects."""


class Cursor(Protocol):
    """The driver's own cursor."""

    @property
    def description(self) -> Any: ...
    def execute(self, sql: Any, params: Any, /) -> Any: ...
    def executemany(self, sql: Any, rows: Any, /) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class Dialect(Protocol):
    """The differences between the databases during a transaction."""

    error: type[Exception]
    """The base class of the driver's exceptions."""

    skip_locked: str
    """The clause at the end of a SELECT that skips rows which another transaction has locked."""

    text_index: TextIndex
    """The full-text index."""

    vector_index: VectorIndex
    """The vector index."""

    node: str
    """The name of this node among those that share the database."""

    def render(self, statement: Statement) -> str:
        """The statement with placeholders in the driver's style."""

    def lock(self, tx: Tx, name: str) -> None:
        """Takes the advisory lock of this name until the transaction ends."""

    def register_commit_order(self, tx: Tx, topics: Sequence[str]) -> None:
        """Registers a transaction for the commit order, while it holds the locks of these topics."""

    def translate(self, error: Exception) -> TertuliaError | None:
        """Converts a driver's error to an error for people; None if it shows a bug in this program."""


class Tx:
    """A running transaction. Its events are numbered together before the commit."""

    __slots__ = ("_cursor", "_dialect", "_pending", "events", "new_id", "now")

    def __init__(self, cursor: Cursor, dialect: Dialect, clock: Clock, new_id: NewId) -> None:
        self._cursor = cursor
        self._dialect = dialect
        self._pending: dict[tuple[str, str, str], tuple[EventKind, object]] = {}
        self.events: tuple[Event, ...] = ()
        self.now = clock()
        self.new_id = new_id

    def execute(self, statement: Statement, **params: object) -> list[Row]:
        self._cursor.execute(self._dialect.render(statement), storable_params(params))
        if statement not in _SHAPES:
            _SHAPES[statement] = _shape(self._cursor)
        shape = _SHAPES[statement]
        return [] if shape is None else [shape(row) for row in self._cursor.fetchall()]

    def execute_many(self, statement: Statement, rows: Sequence[Mapping[str, object]]) -> None:
        if rows:
            self._cursor.executemany(self._dialect.render(statement), [storable_params(row) for row in rows])

    def one(self, statement: Statement, **params: object) -> Row:
        rows = self.execute(statement, **params)
        if not rows:
            raise NotFound(GONE)
        return rows[0]

    def maybe(self, statement: Statement, **params: object) -> Row | None:
        rows = self.execute(statement, **params)
        return rows[0] if rows else None

    @property
    def skip_locked(self) -> str:
        return self._dialect.skip_locked

    @property
    def text_index(self) -> TextIndex:
        return self._dialect.text_index

    @property
    def vector_index(self) -> VectorIndex:
        return self._dialect.vector_index

    @property
    def node(self) -> str:
        return self._dialect.node

    def lock(self, name: str) -> None:
        """Takes an advisory lock until the commit, for writes that depend on what was read before."""
        self._dialect.lock(self, name)

    def emit(self, topic: str, kind: EventKind, noun: str, id: str, value: object | None = None) -> None:
        """Emits an event. Of several for one thing in a topic, only the transaction's last one is logged."""
        self._pending.pop((topic, noun, id), None)
        self._pending[topic, noun, id] = (kind, value)

    def number_events(self) -> None:
        """Appends the emitted events to the log.

        Topics are numbered in the order of their names, so that two transactions cannot deadlock.
        """
        if not self._pending:
            return
        pending, self._pending = self._pending, {}
        counts: dict[str, int] = {}
        for topic, _, _ in pending:
            counts[topic] = counts.get(topic, 0) + 1
        topics = sorted(counts)
        last = {topic: self._reserve_numbers(topic, counts[topic]) - counts[topic] for topic in topics}
        self._dialect.register_commit_order(self, topics)
        new_events = []
        for (topic, noun, id), (kind, value) in pending.items():
            last[topic] += 1
            new_events.append(
                Event(topic, last[topic], kind, noun, id, None if value is None else as_json(value), self.now)
            )
        self.execute_many(_APPEND, [_row(event) for event in new_events])
        self.events += tuple(new_events)

    def _reserve_numbers(self, topic: str, count: int) -> int:
        number: int = self.one(_RESERVE_NUMBERS, place=topic, count=count).number
        return number


_SHAPES: dict[Statement, Callable[[Iterable[Any]], Row] | None] = {}
"""The row constructor of each statement; None for a statement without result rows."""


def _shape(cursor: Cursor) -> Callable[[Iterable[Any]], Row] | None:
    if cursor.description is None:
        return None
    names = [column[0] for column in cursor.description]
    row: Any = namedtuple("Row", names, rename=True)  # type: ignore[misc]  # the names are known only at run time
    make: Callable[[Iterable[Any]], Row] = row._make
    return make


_RESERVE_NUMBERS = sql("""
    INSERT INTO places (place, number) VALUES (:place, :count)
    ON CONFLICT (place) DO UPDATE SET number = places.number + excluded.number
    RETURNING number
""")

_APPEND = sql("""
    INSERT INTO events (place, number, kind, noun, id, value, at)
    VALUES (:place, :number, :kind, :noun, :id, :value, :at)
""")


def _row(event: Event) -> dict[str, object]:
    return {
        "place": event.topic,
        "number": event.number,
        "kind": event.kind.value,
        "noun": event.noun,
        "id": event.id,
        "value": event.value,
        "at": event.at,
    }
