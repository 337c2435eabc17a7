"""Live hub: the running turns of all nodes and the topic feeds, for everyone who watches them.

ask.py and node_relay.py report progress here; the hub appends it to the turn's log and wakes the watchers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator

from tertulia.core.events import conversation_topic
from tertulia.core.messages import Message
from tertulia.core.turns import Draft, RetryNotice, Turn
from tertulia.engine.live_turn import LiveReply, LiveTurn
from tertulia.engine.topic_feeds import TopicFeeds
from tertulia.engine.turn_events import (
    Delta,
    ReplyFinished,
    ReplyStarted,
    RetryScheduled,
    TurnEnded,
    TurnEvent,
)

LOG_ENTRIES_KEPT = 100_000
"""The log entries of ended turns that can still be replayed; older turns are read from the store."""


class LiveHub:
    def __init__(self) -> None:
        self.feeds = TopicFeeds()
        self._turns: OrderedDict[str, LiveTurn] = OrderedDict()
        self._by_conversation: dict[str, dict[str, LiveTurn]] = {}
        """The turns that are not over, by conversation and id."""
        self._entries_kept = 0
        self.on_event: Callable[[LiveTurn, TurnEvent], None] | None = None
        """Sends the events of this node's turns to the other nodes."""

    # ── turns

    def open(self, turn: Turn, mirror_id: str = "") -> LiveTurn:
        live = self._turns.get(turn.id) or LiveTurn(turn)  # A reader may have opened it as a mirror before.
        live.mirror_id = mirror_id
        self._turns[turn.id] = live
        self._by_conversation.setdefault(turn.conversation_id, {})[turn.id] = live
        self.feeds.wake(conversation_topic(turn.conversation_id))
        return live

    def find(self, turn_id: str) -> LiveTurn | None:
        return self._turns.get(turn_id)

    def running_in(self, conversation_id: str) -> Iterator[LiveTurn]:
        yield from tuple(self._by_conversation.get(conversation_id, {}).values())

    def running(self) -> Iterator[LiveTurn]:
        """The turns that this node runs."""
        return (live for live in self._all_running() if live.is_here)

    def mirrors(self) -> Iterator[LiveTurn]:
        """The copies of turns that other nodes run."""
        return (live for live in self._all_running() if not live.is_here)

    def _all_running(self) -> Iterator[LiveTurn]:
        for turns in tuple(self._by_conversation.values()):
            yield from tuple(turns.values())

    # ── progress

    def start_reply(self, live: LiveTurn, draft: Draft) -> LiveReply:
        reply = live.replies[draft.id] = LiveReply(draft)
        self._append(live, ReplyStarted(draft))
        return reply

    def append_text(
        self, live: LiveTurn, reply: LiveReply, reply_id: str, text: str, is_thought: bool
    ) -> None:
        if reply.waiting is not None:
            self.set_retry(live, reply, reply_id, None)
        self._append(live, Delta(reply_id, reply.add(text, is_thought), text, is_thought))

    def set_retry(self, live: LiveTurn, reply: LiveReply, reply_id: str, waiting: RetryNotice | None) -> None:
        reply.waiting = waiting
        self._append(live, RetryScheduled(reply_id, waiting))

    def finish_reply(self, live: LiveTurn, message: Message) -> None:
        live.replies.pop(message.id, None)
        self._append(live, ReplyFinished(message))

    def end_turn(self, live: LiveTurn, turn: Turn) -> None:
        live.turn = turn
        running = self._by_conversation.get(turn.conversation_id, {})
        running.pop(turn.id, None)
        if not running:
            self._by_conversation.pop(turn.conversation_id, None)
        self._append(live, TurnEnded(turn))
        live.over.set()
        self._entries_kept += live.number
        self._drop_oldest()

    def _append(self, live: LiveTurn, event: TurnEvent) -> None:
        live.append(event)
        if self.on_event is not None and live.is_here:
            self.on_event(live, event)
        self.feeds.wake(conversation_topic(live.turn.conversation_id))

    def _drop_oldest(self) -> None:
        while self._entries_kept > LOG_ENTRIES_KEPT and (oldest := self._oldest_ended()):
            self._entries_kept -= self._turns.pop(oldest).number

    def _oldest_ended(self) -> str | None:
        return next((turn_id for turn_id, live in self._turns.items() if live.is_over), None)
