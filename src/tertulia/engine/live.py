"""Live: what is happening now, for everyone who watches.

A running turn keeps one numbered log. A watcher is only a cursor into it, so a slow reader costs nothing but
its own place, and many readers share one text. Committed events are kept per place for a while likewise.

Began ─▶ (Waited | Delta)* ─▶ Finished   per reply;   Ended   once, last
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tertulia.core.blind import anonymised_draft, anonymised_message, anonymised_retry_notice, anonymised_turn
from tertulia.core.events import Event
from tertulia.core.messages import Message
from tertulia.core.serialization import from_json
from tertulia.core.turns import Draft, RetryNotice, Turn

KEPT_LOG = 100_000
"""Log entries of ended turns that can still be replayed; older turns are told from the store."""
FRAME_CHARS = 256 << 10
KEPT_EVENTS = 1024
"""Events kept per place while someone watches it."""


@dataclass(frozen=True, slots=True)
class ReplyStarted:
    draft: Draft


@dataclass(frozen=True, slots=True)
class Delta:
    reply_id: str
    number: int
    """Counts the deltas of one reply from 1."""
    text: str
    is_thought: bool = False


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    reply_id: str
    waiting: RetryNotice | None


@dataclass(frozen=True, slots=True)
class ReplyFinished:
    message: Message


@dataclass(frozen=True, slots=True)
class TurnEnded:
    turn: Turn


TurnEvent = ReplyStarted | Delta | RetryScheduled | ReplyFinished | TurnEnded


def anonymised(event: TurnEvent) -> TurnEvent:
    """As it may be told while its turn is blind."""
    match event:
        case ReplyStarted(draft):
            return ReplyStarted(anonymised_draft(draft))
        case RetryScheduled(reply_id, waiting):
            return RetryScheduled(reply_id, anonymised_retry_notice(waiting) if waiting else None)
        case ReplyFinished(message):
            return ReplyFinished(anonymised_message(message))
        case TurnEnded(turn):
            return TurnEnded(anonymised_turn(turn))
        case Delta():
            return event


class LiveReply:
    """The text of a reply while it is written."""

    __slots__ = ("_draft", "_text", "_thinking", "number", "waiting")

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._text = [draft.content] if draft.content else []
        self._thinking = [draft.thinking] if draft.thinking else []
        self.number = draft.number
        self.waiting = draft.waiting

    def add(self, text: str, is_thought: bool) -> int:
        (self._thinking if is_thought else self._text).append(text)
        self.number += 1
        return self.number

    @property
    def text(self) -> str:
        self._text = ["".join(self._text)]
        return self._text[0]

    @property
    def thinking(self) -> str:
        self._thinking = ["".join(self._thinking)]
        return self._thinking[0]

    def draft(self) -> Draft:
        return replace(
            self._draft, content=self.text, thinking=self.thinking, number=self.number, waiting=self.waiting
        )


@dataclass(slots=True)
class LiveTurn:
    """A turn that runs, or ended a short while ago, with everything that was seen of it."""

    turn: Turn
    log: list[TurnEvent] = field(default_factory=list)
    replies: dict[str, LiveReply] = field(default_factory=dict)
    watchers: set[Callable[[], None]] = field(default_factory=set)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the last word of the last reply is on disk."""
    mirror_id: str = ""
    """Empty where the turn runs; elsewhere the name of this mirror of it (herald.py)."""

    def after(self, number: int) -> Sequence[TurnEvent]:
        """What follows a number, up to a frame's worth of text: who is far behind catches up in steps."""
        size, end = 0, number
        while end < len(self.log) and size < FRAME_CHARS:
            event = self.log[end]
            size += len(event.text) if isinstance(event, Delta) else 0
            end += 1
        return self.log[number:end]

    @property
    def number(self) -> int:
        return len(self.log)

    @property
    def name(self) -> str:
        """Of its log. A mirror's has numbers of its own, and nobody may resume one by those of another."""
        return f"{self.turn.id}-{self.mirror_id}" if self.mirror_id else self.turn.id

    @property
    def is_here(self) -> bool:
        return not self.mirror_id

    @property
    def is_over(self) -> bool:
        return self.turn.state.is_over

    def drafts(self) -> tuple[Draft, ...]:
        """The running replies, as they may be told."""
        drafts = (reply.draft() for reply in self.replies.values())
        return tuple(anonymised_draft(draft) if self.turn.is_blind else draft for draft in drafts)

    def has_ended(self, reply_id: str) -> bool:
        """Whether it is a message already; where another server runs it, its last words may come later."""
        if reply_id in self.replies:
            return False
        return any(isinstance(event, ReplyFinished) and event.message.id == reply_id for event in self.log)

    def append(self, event: TurnEvent) -> None:
        self.log.append(event)
        for wake in self.watchers:
            wake()


class LiveHub:
    """All that is live on this server: running turns by id and recent events by place."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str, LiveTurn] = OrderedDict()
        self._by_conversation: dict[str, dict[str, LiveTurn]] = {}
        self._places: dict[str, TopicFeed] = {}
        self._kept = 0
        self.pass_on: Callable[[LiveTurn, TurnEvent], None] | None = None
        """Who tells other servers what is said here."""

    # ── turns

    def open(self, turn: Turn, mirror_id: str = "") -> LiveTurn:
        live = self._turns.get(turn.id) or LiveTurn(turn)  # a reader may have come before its own engine
        live.mirror_id = mirror_id
        self._turns[turn.id] = live
        self._by_conversation.setdefault(turn.conversation_id, {})[turn.id] = live
        self._wake(f"conversation:{turn.conversation_id}")
        return live

    def find(self, turn_id: str) -> LiveTurn | None:
        return self._turns.get(turn_id)

    def running_in(self, conversation_id: str) -> Iterator[LiveTurn]:
        yield from tuple(self._by_conversation.get(conversation_id, {}).values())

    def running(self) -> Iterator[LiveTurn]:
        """Those of this server."""
        return (live for live in self._all() if live.is_here)

    def mirrors(self) -> Iterator[LiveTurn]:
        """Those of others."""
        return (live for live in self._all() if not live.is_here)

    def _all(self) -> Iterator[LiveTurn]:
        for turns in tuple(self._by_conversation.values()):
            yield from tuple(turns.values())

    def began(self, live: LiveTurn, draft: Draft) -> LiveReply:
        reply = live.replies[draft.id] = LiveReply(draft)
        self._append(live, ReplyStarted(draft))
        return reply

    def said(self, live: LiveTurn, reply: LiveReply, reply_id: str, text: str, is_thought: bool) -> None:
        if reply.waiting is not None:
            self.waits(live, reply, reply_id, None)
        self._append(live, Delta(reply_id, reply.add(text, is_thought), text, is_thought))

    def waits(self, live: LiveTurn, reply: LiveReply, reply_id: str, waiting: RetryNotice | None) -> None:
        reply.waiting = waiting
        self._append(live, RetryScheduled(reply_id, waiting))

    def finished(self, live: LiveTurn, message: Message) -> None:
        live.replies.pop(message.id, None)
        self._append(live, ReplyFinished(message))

    def ended(self, live: LiveTurn, turn: Turn) -> None:
        live.turn = turn
        running = self._by_conversation.get(turn.conversation_id, {})
        running.pop(turn.id, None)
        if not running:
            self._by_conversation.pop(turn.conversation_id, None)
        self._append(live, TurnEnded(turn))
        live.over.set()
        self._kept += live.number
        self._forget_oldest()

    def _append(self, live: LiveTurn, event: TurnEvent) -> None:
        live.append(event)
        if self.pass_on is not None and live.is_here:
            self.pass_on(live, event)
        self._wake(f"conversation:{live.turn.conversation_id}")

    def _forget_oldest(self) -> None:
        while self._kept > KEPT_LOG and (oldest := self._oldest_ended()):
            self._kept -= self._turns.pop(oldest).number

    def _oldest_ended(self) -> str | None:
        return next((turn_id for turn_id, live in self._turns.items() if live.is_over), None)

    # ── places

    def publish(self, events: Iterable[Event]) -> None:
        """Called after each commit."""
        for event in events:
            if event.noun == "message":
                self._settle(event)
            elif event.noun == "turn":
                self._turn_on(event)
            place = self._places.get(event.topic)
            if place is not None:
                place.events.append(event)
                place.wake()

    def _settle(self, event: Event) -> None:
        """A reply that is a message now is no draft any more, whoever asks in the meantime."""
        for live in self.running_in(event.topic.partition(":")[2]):
            if live.is_here or event.value is None:
                live.replies.pop(event.id, None)
            elif not live.has_ended(event.id):
                self._reflect(live, from_json(Message, event.value))

    def _reflect(self, mirror: LiveTurn, message: Message) -> None:
        if message.turn_id == mirror.turn.id and message.voice is not None:
            self._complete(mirror, message)
            self.finished(mirror, message)

    def _complete(self, mirror: LiveTurn, message: Message) -> None:
        """The message has overtaken the last of its words: whoever follows them hears them before it."""
        reply = mirror.replies.get(message.id)
        if reply is None:
            return
        thought = message.thinking.text if message.thinking else ""
        for said, whole, is_thought in (
            (reply.thinking, thought, True),
            (reply.text, message.content, False),
        ):
            if len(said) < len(whole) and whole.startswith(said):
                self.said(mirror, reply, message.id, whole[len(said) :], is_thought)

    def _turn_on(self, event: Event) -> None:
        """What another server says of its turn is true of the mirror."""
        live = self._turns.get(event.id)
        if live is None or live.is_here or live.is_over or event.value is None:
            return
        live.turn = from_json(Turn, event.value)
        if live.turn.state.is_over:
            self.ended(live, live.turn)

    def watch(self, place: str, wake: Callable[[], None]) -> TopicFeed:
        watched = self._places.setdefault(place, TopicFeed(place))
        watched.watchers.add(wake)
        return watched

    def watched(self) -> tuple[str, ...]:
        """The places somebody looks at."""
        return tuple(self._places)

    def leave(self, place: str, wake: Callable[[], None]) -> None:
        watched = self._places.get(place)
        if watched is not None:
            watched.watchers.discard(wake)
            if not watched.watchers:
                del self._places[place]

    def _wake(self, place: str) -> None:
        watched = self._places.get(place)
        if watched is not None:
            watched.wake()


class TopicFeed:
    """The recent events of one place, and who watches it."""

    __slots__ = ("events", "name", "watchers")

    def __init__(self, name: str) -> None:
        self.name = name
        self.events: deque[Event] = deque(maxlen=KEPT_EVENTS)
        self.watchers: set[Callable[[], None]] = set()

    def wake(self) -> None:
        for wake in self.watchers:
            wake()

    def after(self, number: int) -> Sequence[Event] | None:
        """The events after a number; None when some of them are no longer kept here."""
        if not self.events or self.events[-1].number <= number:
            return ()
        missing = self.events[0].number > number + 1
        return None if missing else [event for event in self.events if event.number > number]


class WakeUp:
    """Rung by writers, awaited by one reader; many rings before it looks are one."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        self._event.set()

    async def rung(self) -> None:
        await self._event.wait()
        self._event.clear()
