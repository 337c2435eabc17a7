"""Live subscriptions: the topics that one tab follows, and how far it has received each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tertulia.app import Tertulia
from tertulia.core.errors import TertuliaError
from tertulia.core.events import Event
from tertulia.core.users import Actor
from tertulia.engine.topic_feeds import TopicFeed
from tertulia.engine.turn_events import anonymised
from tertulia.server.live_backlog import LOG_PAGE, Backlog, read_backlog
from tertulia.server.live_frames import (
    FrameBuilder,
    draft_item,
    event_item,
    following_item,
    gone_item,
    reset_item,
)
from tertulia.store import events

TOPICS_LIMIT = 64


@dataclass(slots=True)
class Subscription:
    feed: TopicFeed
    cursor: int
    """The number of the last event that was sent."""
    turns: dict[str, int] = field(default_factory=dict)
    """For each running turn of the conversation, how many entries of its log were sent."""

    @property
    def conversation_id(self) -> str | None:
        kind, _, conversation_id = self.feed.name.partition(":")
        return conversation_id if kind == "conversation" else None


class Subscriptions:
    def __init__(self, tertulia: Tertulia, actor: Actor, wake: Callable[[], None]) -> None:
        self._tertulia = tertulia
        self._actor = actor
        self._wake = wake
        self._by_topic: dict[str, Subscription] = {}

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(self._by_topic)

    async def follow(self, topic: str, after: int) -> list[str]:
        """Follows a topic from a cursor. Returns the missed items, or an item that says why it is refused.

        It watches the topic before it reads the log, so that no event falls between.
        """
        if len(self._by_topic) >= TOPICS_LIMIT and topic not in self._by_topic:
            return [gone_item(topic, "too_many")]
        self.leave(topic)
        feed = self._tertulia.live.feeds.watch(topic, self._wake)
        backlog = await self._read_backlog(topic, after)
        if backlog is None or backlog.is_reset:
            self._tertulia.live.feeds.leave(topic, self._wake)
            return [gone_item(topic, "not_found") if backlog is None else reset_item(topic)]
        subscription = self._by_topic[topic] = Subscription(feed, backlog.number)
        return [
            *map(event_item, backlog.events),
            *self._drafts(subscription),
            following_item(topic, backlog.number),
        ]

    async def _read_backlog(self, topic: str, after: int) -> Backlog | None:
        try:
            return await self._tertulia.db.read(lambda tx: read_backlog(tx, self._actor, topic, after))
        except TertuliaError:
            return None

    def _drafts(self, subscription: Subscription) -> Iterator[str]:
        """The replies that are being written in the conversation, as far as they have come."""
        if subscription.conversation_id:
            for live in self._tertulia.live.running_in(subscription.conversation_id):
                subscription.turns[live.turn.id] = live.number
                yield from map(draft_item, live.drafts())

    def leave(self, topic: str) -> None:
        if self._by_topic.pop(topic, None) is not None:
            self._tertulia.live.feeds.leave(topic, self._wake)

    def close(self) -> None:
        for topic in self.topics:
            self.leave(topic)

    async def collect(self, frame: FrameBuilder) -> None:
        """Adds everything new. Deltas come before events, so a reply's last text precedes its message."""
        for subscription in tuple(self._by_topic.values()):
            if subscription.conversation_id:
                self._collect_turns(subscription, subscription.conversation_id, frame)
            for event in await self._new_events(subscription):
                frame.add_event(event)

    def _collect_turns(self, subscription: Subscription, conversation_id: str, frame: FrameBuilder) -> None:
        running = {live.turn.id: live for live in self._tertulia.live.running_in(conversation_id)}
        for turn_id in {*running, *subscription.turns}:
            live = running.get(turn_id) or self._tertulia.live.find(turn_id)
            if live is None:
                del subscription.turns[turn_id]
                continue
            after = subscription.turns.get(turn_id, 0)
            log = live.after(after)
            frame.add_turn_events(map(anonymised, log) if live.turn.is_blind else log)
            subscription.turns[turn_id] = after + len(log)
            if subscription.turns[turn_id] < live.number:
                self._wake()
            elif live.is_over:
                del subscription.turns[turn_id]

    async def _new_events(self, subscription: Subscription) -> list[Event]:
        """The recent events from memory; for a tab that is far behind, a page of the log."""
        recent = subscription.feed.after(subscription.cursor)
        if recent is None:
            topic, after = subscription.feed.name, subscription.cursor
            recent = await self._tertulia.db.read(lambda tx: events.after(tx, topic, after, LOG_PAGE))
            self._wake()
        new_events = list(recent)
        if new_events:
            subscription.cursor = new_events[-1].number
        return new_events
