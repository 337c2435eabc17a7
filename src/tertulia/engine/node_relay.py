"""The herald: what is said on one server is heard on every other that shares its database.

Facts cross in the log of events. What is not logged crosses here: the words of running replies, bundled, and
the wish to stop. A turn that runs elsewhere has a mirror, and whoever follows it here reads the same log.

own turn ─▶ told ─▶ one bundle per EVERY_S ─▶ the other servers ─▶ heard ─▶ mirror
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from tertulia.core.ids import NewId
from tertulia.core.serialization import from_plain, to_json
from tertulia.core.turns import Draft, RetryNotice, Turn, TurnState
from tertulia.engine.live import LiveHub
from tertulia.engine.live_turn import LiveTurn
from tertulia.engine.turn_events import Delta, ReplyStarted, RetryScheduled, TurnEvent
from tertulia.engine.wake_up import WakeUp
from tertulia.store import turns
from tertulia.store.database import Database

EVERY_S = 0.03
UNSAID_LIMIT = 20_000
"""Words that wait for a database that is away; more of them are dropped, and asked for again."""


@dataclass(frozen=True, slots=True)
class ReplySnapshot:
    """A reply as it stands."""

    turn: Turn
    draft: Draft


@dataclass(frozen=True, slots=True)
class DeltaBatch:
    turn_id: str
    reply_id: str
    after: int
    """The number of the delta before the first of these."""
    texts: tuple[str, ...]
    """One of each delta, so that the numbers are the same everywhere."""
    is_thought: bool


@dataclass(frozen=True, slots=True)
class RetryUpdate:
    turn_id: str
    reply_id: str
    waiting: RetryNotice | None


@dataclass(frozen=True, slots=True)
class ResyncRequest:
    """Whoever runs this turn is asked to tell how its replies stand."""

    turn_id: str


@dataclass(frozen=True, slots=True)
class StopRequest:
    """A person who may has stopped this turn, or one of its replies."""

    turn_id: str
    reply_id: str | None


@dataclass(frozen=True, slots=True)
class RetryNowRequest:
    """A person who may does not want to wait for a provider any longer."""

    turn_id: str
    reply_id: str | None


@dataclass(frozen=True, slots=True)
class ConversationsDeleted:
    """These conversations are gone."""

    conversation_ids: tuple[str, ...]


RelayMessage = (
    ReplySnapshot
    | DeltaBatch
    | RetryUpdate
    | ResyncRequest
    | StopRequest
    | RetryNowRequest
    | ConversationsDeleted
)
RelayCommand = StopRequest | RetryNowRequest | ConversationsDeleted

_KINDS: dict[str, type[RelayMessage]] = {
    kind.__name__: kind
    for kind in (
        ReplySnapshot,
        DeltaBatch,
        RetryUpdate,
        ResyncRequest,
        StopRequest,
        RetryNowRequest,
        ConversationsDeleted,
    )
}


class NodeRelay:
    def __init__(
        self,
        db: Database,
        live: LiveHub,
        new_id: NewId,
        report: Callable[[Exception], str],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._db = db
        self._live = live
        self._new_id = new_id
        self._report = report
        self._sleep = sleep
        self._wish: Callable[[RelayCommand], None] = lambda wish: None
        self._unsaid: list[RelayMessage] = []
        self._wake_up = WakeUp()
        if db.is_shared:
            live.on_event = self.told
            db.on_words(self.heard)

    def on_wish(self, listener: Callable[[RelayCommand], None]) -> None:
        """Who is told what a person on another server wants of a turn here."""
        self._wish = listener

    # ── what is said here

    def told(self, live: LiveTurn, event: TurnEvent) -> None:
        """How replies end is told by the log of events."""
        match event:
            case Delta(reply_id, number, text, is_thought):
                self.say(DeltaBatch(live.turn.id, reply_id, number - 1, (text,), is_thought))
            case ReplyStarted(draft):
                self.say(ReplySnapshot(live.turn, draft))
            case RetryScheduled(reply_id, waiting):
                self.say(RetryUpdate(live.turn.id, reply_id, waiting))

    def say(self, word: RelayMessage) -> None:
        if not self._db.is_shared:
            return
        if len(self._unsaid) >= UNSAID_LIMIT:
            self._unsaid = [word for word in self._unsaid if not isinstance(word, ReplySnapshot | DeltaBatch)]
        self._unsaid.append(word)
        self._wake_up.wake()

    async def run(self) -> None:
        while self._db.is_shared:
            await self._wake_up.wait()
            await self.flush()
            await self._sleep(EVERY_S)

    async def flush(self) -> None:
        """What cannot be said is asked for again by whoever misses it."""
        unsaid, self._unsaid = self._unsaid, []
        text = to_json([(type(word).__name__, word) for word in _joined(unsaid)])
        try:
            await self._db.say(text)
        except Exception as error:  # noqa: BLE001 - whatever became of one bundle, the next must go out
            self._report(error)

    # ── what others say

    def heard(self, text: str) -> None:
        for word in _read(text):
            match word:
                case ReplySnapshot(turn, draft):
                    self._begin(turn, draft)
                case DeltaBatch():
                    self._add(word)
                case RetryUpdate(turn_id, reply_id, waiting):
                    self._pause(turn_id, reply_id, waiting)
                case ResyncRequest(turn_id):
                    self._tell_again(turn_id)
                case StopRequest() | RetryNowRequest() | ConversationsDeleted():
                    self._wish(word)

    def _begin(self, turn: Turn, draft: Draft) -> None:
        live = self._live.find(turn.id) or self._live.open(turn, self._new_id())
        known = live.replies.get(draft.id)
        is_news = known is None or known.number < draft.number
        if not live.is_here and not live.is_over and is_news and not live.has_ended(draft.id):
            self._live.start_reply(live, draft)

    def _add(self, words: DeltaBatch) -> None:
        live = self._live.find(words.turn_id)
        if live is None or live.is_here or live.is_over or live.has_ended(words.reply_id):
            return
        reply = live.replies.get(words.reply_id)
        if reply is None or words.after > reply.number:
            self.say(ResyncRequest(words.turn_id))
            return
        for text in words.texts[reply.number - words.after :]:
            self._live.append_text(live, reply, words.reply_id, text, words.is_thought)

    def _pause(self, turn_id: str, reply_id: str, waiting: RetryNotice | None) -> None:
        live = self._live.find(turn_id)
        if live is not None and not live.is_here and (reply := live.replies.get(reply_id)):
            self._live.set_retry(live, reply, reply_id, waiting)

    def _tell_again(self, turn_id: str) -> None:
        live = self._live.find(turn_id)
        if live is not None and live.is_here and not live.is_over:
            for reply in live.replies.values():
                self.say(ReplySnapshot(live.turn, reply.draft()))

    # ── what others run

    def mirrored(self, turn: Turn) -> LiveTurn | None:
        """A turn of another server, to be followed here; None for one that is over."""
        if turn.state.is_over or not self._db.is_shared:
            return None
        self.say(ResyncRequest(turn.id))
        return self._live.open(turn, self._new_id())

    async def look(self) -> None:
        """Whatever was missed while the line was down: events of watched places, turns that began elsewhere
        and those that ended."""
        if watched := self._live.feeds.watched():
            await self._db.catch_up(watched)
        elsewhere = {turn.id: turn for turn in await self._db.read(turns.owned_by_other_nodes)}
        for live in self._live.mirrors():
            if live.turn.id not in elsewhere and not live.is_over:
                turn_id = live.turn.id
                ended = await self._db.read(lambda tx, turn_id=turn_id: turns.find(tx, turn_id))  # type: ignore[misc]
                self._live.end_turn(live, ended or replace(live.turn, state=TurnState.STOPPED))
        for turn in elsewhere.values():
            if self._live.find(turn.id) is None:
                self.mirrored(turn)


def _joined(words: Iterable[RelayMessage]) -> Iterator[RelayMessage]:
    """Neighbouring words of one reply go together."""
    run: list[DeltaBatch] = []
    for word in words:
        if run and not (isinstance(word, DeltaBatch) and _follows(word, run[-1])):
            yield _one(run)
            run = []
        if isinstance(word, DeltaBatch):
            run.append(word)
        else:
            yield word
    if run:
        yield _one(run)


def _follows(word: DeltaBatch, last: DeltaBatch) -> bool:
    return (word.reply_id, word.is_thought) == (last.reply_id, last.is_thought)


def _one(run: list[DeltaBatch]) -> DeltaBatch:
    return replace(run[0], texts=tuple(text for words in run for text in words.texts))


def _read(text: str) -> Iterator[RelayMessage]:
    """A newer server may say what this one does not understand."""
    for name, value in json.loads(text):
        if name in _KINDS:
            yield from_plain(_KINDS[name], value)
