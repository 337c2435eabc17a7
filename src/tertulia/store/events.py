"""Event log: the committed changes of each topic, in order, which clients follow; old ones are pruned."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from tertulia.core.events import Event, EventKind
from tertulia.core.users import Actor
from tertulia.store.sql import Statement, sql
from tertulia.store.transactions import Row, Tx

PAGE = 1000


def after(tx: Tx, topic: str, number: int, limit: int = PAGE) -> tuple[Event, ...]:
    """The events of a topic after this number, oldest first."""
    tx.number_events()
    return tuple(_event(row) for row in tx.execute(_AFTER, place=topic, number=number, limit=limit))


_AFTER = sql("""
    SELECT place, number, kind, noun, id, value, at FROM events
    WHERE place = :place AND number > :number ORDER BY number LIMIT :limit
""")


def _event(row: Row) -> Event:
    return Event(row.place, row.number, EventKind(row.kind), row.noun, row.id, row.value, row.at)


def last_number(tx: Tx, topic: str) -> int:
    """The number of a topic's newest event; 0 if it has none."""
    tx.number_events()
    row = tx.maybe(_LAST, place=topic)
    return row.number if row else 0


_LAST = sql("SELECT number FROM places WHERE place = :place")


def last_numbers(tx: Tx, topics: Sequence[str]) -> dict[str, int]:
    """The number of each topic's newest event, without topics that have none."""
    rows = tx.execute(_last_of(tx.text_index.in_list), places=tx.text_index.list_param(topics))
    return {row.place: row.number for row in rows}


@cache
def _last_of(in_list: str) -> Statement:
    return sql(f"SELECT place, number FROM places WHERE {in_list.format(column='place', name='places')}")


def first_number(tx: Tx, topic: str) -> int:
    """The number of a topic's oldest event in the log. A cursor must be at least this number minus one."""
    tx.number_events()
    row = tx.maybe(_FIRST, place=topic)
    return row.number if row else 1


_FIRST = sql("""
    SELECT COALESCE((SELECT MIN(number) FROM events WHERE place = :place), number + 1) AS number
    FROM places WHERE place = :place
""")


def prune(tx: Tx, before_ms: int, limit: int) -> int:
    """Deletes at most `limit` events from before this time, oldest first; returns how many. Numbers go on."""
    return len(tx.execute(_PRUNE, before=before_ms, limit=limit))


_PRUNE = sql("""
    DELETE FROM events WHERE (place, number) IN (
        SELECT place, number FROM events WHERE at < :before ORDER BY at LIMIT :limit
    ) RETURNING number
""")


def forget(tx: Tx, topic: str) -> None:
    """Deletes the events of a topic that no longer exists. Its numbers are not used again."""
    tx.execute(_REMOVE_TOPIC, place=topic)


_REMOVE_TOPIC = sql("DELETE FROM events WHERE place = :place")


def redact(tx: Tx, topic: str, noun: str, id: str) -> None:
    """Turns all events of a deleted thing into `removed` events without a value, under their old numbers."""
    tx.execute(_REDACT, place=topic, noun=noun, id=id)


_REDACT = sql("""
    UPDATE events SET kind = 'removed', value = NULL WHERE place = :place AND noun = :noun AND id = :id
""")


def rewrite(tx: Tx, topic: str, noun: str, id: str, value: str) -> None:
    """Writes this value into all `changed` events of a thing, since old values name something deleted."""
    tx.execute(_REWRITE, place=topic, noun=noun, id=id, value=value)


_REWRITE = sql("""
    UPDATE events SET value = :value
    WHERE place = :place AND noun = :noun AND id = :id AND kind = 'changed'
""")


def may_follow(tx: Tx, actor: Actor, topic: str) -> bool:
    """True if the actor may follow the events of a topic; False for unknown topics."""
    kind, _, id = topic.partition(":")
    if kind == "user":
        return id == actor.user_id
    statement = _MAY_FOLLOW.get(kind)
    return statement is not None and tx.maybe(statement, id=id, actor_id=actor.user_id) is not None


_MAY_FOLLOW = {
    "project": sql("SELECT 1 FROM project_members WHERE project_id = :id AND user_id = :actor_id"),
    "conversation": sql("""
        SELECT 1 FROM conversations AS c
        JOIN project_members AS seen ON seen.project_id = c.project_id AND seen.user_id = :actor_id
        WHERE c.id = :id
    """),
}
