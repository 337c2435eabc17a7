"""Live backlog: the events that a tab missed in a topic since its cursor, unless there are too many."""

from __future__ import annotations

from dataclasses import dataclass

from tertulia.core.events import Event
from tertulia.core.users import Actor
from tertulia.store import events
from tertulia.store.database import Tx

LOG_PAGE = 100
MISSED_LIMIT = 1000
MISSED_CHARS = 2 << 20
"""A tab that missed more events or characters than this fetches the page again, which is shorter."""


@dataclass(frozen=True, slots=True)
class Backlog:
    events: tuple[Event, ...]
    number: int
    """The number of the topic's last event."""
    is_reset: bool = False
    """True if the cursor cannot be served and the tab must fetch the page again."""


def read_backlog(tx: Tx, actor: Actor, topic: str, after: int) -> Backlog | None:
    """None if the topic does not exist or the actor may not follow it."""
    if not events.may_follow(tx, actor, topic):
        return None
    last = events.last_number(tx, topic)
    if not 0 <= after <= last or last - after > MISSED_LIMIT or after < events.first_number(tx, topic) - 1:
        return Backlog((), last, is_reset=True)
    missed: list[Event] = []
    while after < last:
        missed += events.after(tx, topic, after, LOG_PAGE)
        after = missed[-1].number
        if sum(len(event.value or "") for event in missed) > MISSED_CHARS:
            return Backlog((), last, is_reset=True)
    return Backlog(tuple(missed), last)
