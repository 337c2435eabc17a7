"""The log every client follows: what was committed in a place, in order, until it is pruned."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from sqlalchemy import TextClause, text

from tertulia.core.events import Event, Kind
from tertulia.core.users import Actor
from tertulia.store.transactions import Row, Tx

PAGE = 1000


def after(tx: Tx, place: str, number: int, limit: int = PAGE) -> tuple[Event, ...]:
    """The events that follow a number, oldest first."""
    tx.number_events()
    return tuple(_event(row) for row in tx.execute(_AFTER, place=place, number=number, limit=limit))


_AFTER = text("""
    SELECT place, number, kind, noun, id, value, at FROM events
    WHERE place = :place AND number > :number ORDER BY number LIMIT :limit
""")


def _event(row: Row) -> Event:
    return Event(row.place, row.number, Kind(row.kind), row.noun, row.id, row.value, row.at)


def last_number(tx: Tx, place: str) -> int:
    """The cursor of someone who has read everything; 0 where nothing has happened yet."""
    tx.number_events()
    row = tx.maybe(_LAST, place=place)
    return row.number if row else 0


_LAST = text("SELECT number FROM places WHERE place = :place")


def last_numbers(tx: Tx, places: Sequence[str]) -> dict[str, int]:
    """How far the log has come in each of these places; nothing of one where nothing has happened yet."""
    rows = tx.execute(_last_of(tx.words.among), places=tx.words.many(places))
    return {row.place: row.number for row in rows}


@cache
def _last_of(among: str) -> TextClause:
    return text(f"SELECT place, number FROM places WHERE {among.format(column='place', name='places')}")


def first_number(tx: Tx, place: str) -> int:
    """The oldest number that is still kept: a cursor below the one before it is too old to go on from."""
    tx.number_events()
    row = tx.maybe(_FIRST, place=place)
    return row.number if row else 1


_FIRST = text("""
    SELECT COALESCE((SELECT MIN(number) FROM events WHERE place = :place), number + 1) AS number
    FROM places WHERE place = :place
""")


def prune(tx: Tx, before_ms: int, limit: int) -> int:
    """Forgets what is older, the oldest first; the numbering goes on where it was. Says how many went."""
    return len(tx.execute(_PRUNE, before=before_ms, limit=limit))


_PRUNE = text("""
    DELETE FROM events WHERE (place, number) IN (
        SELECT place, number FROM events WHERE at < :before ORDER BY at LIMIT :limit
    ) RETURNING number
""")


def forget(tx: Tx, place: str) -> None:
    """What happened in a place that no longer exists; its numbers are not used again."""
    tx.execute(_FORGET, place=place)


_FORGET = text("DELETE FROM events WHERE place = :place")


def redact(tx: Tx, place: str, noun: str, id: str) -> None:
    """What was said of a thing that is gone: each event stays in its place and says only that it is gone."""
    tx.execute(_REDACT, place=place, noun=noun, id=id)


_REDACT = text("""
    UPDATE events SET kind = 'removed', value = NULL WHERE place = :place AND noun = :noun AND id = :id
""")


def rewrite(tx: Tx, place: str, noun: str, id: str, value: str) -> None:
    """What was said of a thing that names something which is gone: each event says how the thing is now."""
    tx.execute(_REWRITE, place=place, noun=noun, id=id, value=value)


_REWRITE = text("""
    UPDATE events SET value = :value
    WHERE place = :place AND noun = :noun AND id = :id AND kind = 'changed'
""")


def may_follow(tx: Tx, actor: Actor, place: str) -> bool:
    """Whether the actor may see what happens in a place; a place nobody knows is nobody's to follow."""
    kind, _, id = place.partition(":")
    if kind == "user":
        return id == actor.user_id
    statement = _MAY_FOLLOW.get(kind)
    return statement is not None and tx.maybe(statement, id=id, actor_id=actor.user_id) is not None


_MAY_FOLLOW = {
    "project": text("SELECT 1 FROM project_members WHERE project_id = :id AND user_id = :actor_id"),
    "conversation": text("""
        SELECT 1 FROM conversations AS c
        JOIN project_members AS seen ON seen.project_id = c.project_id AND seen.user_id = :actor_id
        WHERE c.id = :id
    """),
}
