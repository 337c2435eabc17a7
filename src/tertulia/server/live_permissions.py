"""The rights of an open connection: they can end while it is open, and within five seconds so does it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tertulia.app import Tertulia
from tertulia.core.events import Event, user_topic
from tertulia.core.users import Actor
from tertulia.store import events, sessions
from tertulia.store.database import Tx

LOOK_AGAIN_S = 4.0


@dataclass(frozen=True, slots=True)
class RevokedTopics:
    is_signed_out: bool
    places: tuple[str, ...]


class LivePermissions:
    """Watches the actor's own place, where every change to an account is told, and the clock besides."""

    def __init__(self, tertulia: Tertulia, actor: Actor, wake: Callable[[], None]) -> None:
        self._tertulia = tertulia
        self._actor = actor
        self._wake = wake
        self.place = user_topic(actor.user_id)
        self._watched = tertulia.live.feeds.watch(self.place, wake)
        self._seen = self._newest()
        self._looked_at = tertulia.dependencies.monotonic()

    @property
    def are_in_doubt(self) -> bool:
        """Something happened to the account, or nobody has looked for a while."""
        return (
            self._newest() is not self._seen
            or self._tertulia.dependencies.monotonic() - self._looked_at >= LOOK_AGAIN_S
        )

    async def lost(self, places: Sequence[str]) -> RevokedTopics:
        """Which of these places may no longer be seen."""
        self._seen, self._looked_at = self._newest(), self._tertulia.dependencies.monotonic()
        return await self._tertulia.db.read(lambda tx: _lost(tx, self._actor, places))

    def close(self) -> None:
        self._tertulia.live.feeds.leave(self.place, self._wake)

    def _newest(self) -> Event | None:
        return self._watched.events[-1] if self._watched.events else None


def _lost(tx: Tx, actor: Actor, places: Sequence[str]) -> RevokedTopics:
    is_signed_out = actor.session_id is not None and not sessions.is_open(tx, actor.session_id)
    return RevokedTopics(
        is_signed_out, tuple(place for place in places if not events.may_follow(tx, actor, place))
    )
