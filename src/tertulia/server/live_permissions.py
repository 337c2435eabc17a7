"""Live permissions: rechecks an open connection, so that a lost permission ends it within five seconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tertulia.app import Tertulia
from tertulia.core.events import Event, user_topic
from tertulia.core.users import Actor
from tertulia.store import events, sessions
from tertulia.store.database import Tx

CHECK_INTERVAL_S = 4.0


@dataclass(frozen=True, slots=True)
class RevokedTopics:
    is_signed_out: bool
    topics: tuple[str, ...]


class LivePermissions:
    """Asks for a check after each event of the user's own topic, and when the interval is over.

    Every change to an account emits such an event, but not every change to a project does so for each member.
    """

    def __init__(self, tertulia: Tertulia, actor: Actor, wake: Callable[[], None]) -> None:
        self._tertulia = tertulia
        self._actor = actor
        self._wake = wake
        self._topic = user_topic(actor.user_id)
        self._feed = tertulia.live.feeds.watch(self._topic, self._on_event)
        self._checked_event = self._newest_event()
        self._checked_at = tertulia.dependencies.monotonic()

    @property
    def are_due(self) -> bool:
        """True if the permissions must be checked before anything else is sent."""
        return (
            self._newest_event() is not self._checked_event
            or self._tertulia.dependencies.monotonic() - self._checked_at >= CHECK_INTERVAL_S
        )

    async def check(self, topics: Sequence[str]) -> RevokedTopics:
        """Which of these topics the user may no longer follow."""
        self._checked_event, self._checked_at = self._newest_event(), self._tertulia.dependencies.monotonic()
        return await self._tertulia.db.read(lambda tx: _revoked(tx, self._actor, topics))

    def close(self) -> None:
        self._tertulia.live.feeds.leave(self._topic, self._on_event)

    def _on_event(self) -> None:
        """Separate from the reader's own callback, which may leave the topic while this one still watches."""
        self._wake()

    def _newest_event(self) -> Event | None:
        return self._feed.events[-1] if self._feed.events else None


def _revoked(tx: Tx, actor: Actor, topics: Sequence[str]) -> RevokedTopics:
    is_signed_out = actor.session_id is not None and not sessions.is_open(tx, actor.session_id)
    return RevokedTopics(
        is_signed_out, tuple(topic for topic in topics if not events.may_follow(tx, actor, topic))
    )
