"""Topic feeds: the recent committed events of each topic that somebody watches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from tertulia.core.events import Event

EVENTS_KEPT = 1024
"""The most events that a watched topic keeps."""


class TopicFeed:
    """The recent events of one topic, and its watchers."""

    __slots__ = ("events", "name", "watchers")

    def __init__(self, name: str) -> None:
        self.name = name
        self.events: deque[Event] = deque(maxlen=EVENTS_KEPT)
        self.watchers: set[Callable[[], None]] = set()

    def wake(self) -> None:
        for wake in self.watchers:
            wake()

    def after(self, number: int) -> Sequence[Event] | None:
        """The events after a number; None if some of them are no longer kept here."""
        if not self.events or self.events[-1].number <= number:
            return ()
        is_incomplete = self.events[0].number > number + 1
        return None if is_incomplete else [event for event in self.events if event.number > number]


class TopicFeeds:
    def __init__(self) -> None:
        self._feeds: dict[str, TopicFeed] = {}

    def watch(self, topic: str, wake: Callable[[], None]) -> TopicFeed:
        feed = self._feeds.setdefault(topic, TopicFeed(topic))
        feed.watchers.add(wake)
        return feed

    def leave(self, topic: str, wake: Callable[[], None]) -> None:
        feed = self._feeds.get(topic)
        if feed is not None:
            feed.watchers.discard(wake)
            if not feed.watchers:
                del self._feeds[topic]

    def watched(self) -> tuple[str, ...]:
        """The topics that have a watcher."""
        return tuple(self._feeds)

    def append(self, event: Event) -> None:
        feed = self._feeds.get(event.topic)
        if feed is not None:
            feed.events.append(event)
            feed.wake()

    def wake(self, topic: str) -> None:
        feed = self._feeds.get(topic)
        if feed is not None:
            feed.wake()
