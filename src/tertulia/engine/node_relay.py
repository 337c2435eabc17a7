"""Node relay: what one node does reaches every other that shares its database.

Committed facts cross in the log of events. The relay carries what is not logged: the text of running replies,
in bundles, and the commands of people (stop, retry now). A turn of another node has a mirror here, whose log
is read like that of an own turn.

own turn ─▶ on_turn_event ─▶ one bundle every EVERY_S ─▶ the other nodes ─▶ receive ─▶ mirror
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
UNSENT_LIMIT = 20_000
"""The most messages that wait while the database is away; more text is dropped, and requested again later."""


@dataclass(frozen=True, slots=True)
class ReplySnapshot:
    """The text of a running reply so far."""

    turn: Turn
    draft: Draft


@dataclass(frozen=True, slots=True)
class DeltaBatch:
    turn_id: str
    reply_id: str
    after: int
    """The number of the delta before the first of these."""
    texts: tuple[str, ...]
    """Keeps each delta as its own text, so that all nodes number them alike."""
    is_thought: bool


@dataclass(frozen=True, slots=True)
class RetryUpdate:
    turn_id: str
    reply_id: str
    waiting: RetryNotice | None


@dataclass(frozen=True, slots=True)
class ResyncRequest:
    """Asks the node that runs this turn for snapshots of its replies."""

    turn_id: str


@dataclass(frozen=True, slots=True)
class StopRequest:
    """A person has stopped this turn or one of its replies; the sender has checked the permission."""

    turn_id: str
    reply_id: str | None


@dataclass(frozen=True, slots=True)
class RetryNowRequest:
    """A person has ended the wait before a retry; the sender has checked the permission."""

    turn_id: str
    reply_id: str | None


@dataclass(frozen=True, slots=True)
class ConversationsDeleted:
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
        self._carry_out: Callable[[RelayCommand], None] = lambda command: None
        self._unsent: list[RelayMessage] = []
        self._wake_up = WakeUp()
        if db.is_shared:
            live.on_event = self.on_turn_event
            db.on_notify(self.receive)

    def on_command(self, listener: Callable[[RelayCommand], None]) -> None:
        """Sets the listener for commands that arrive from other nodes."""
        self._carry_out = listener

    # ── to other nodes

    def on_turn_event(self, live: LiveTurn, event: TurnEvent) -> None:
        """Sends the progress of an own turn. The ends of replies and turns cross in the log of events."""
        match event:
            case Delta(reply_id, number, text, is_thought):
                self.send(DeltaBatch(live.turn.id, reply_id, number - 1, (text,), is_thought))
            case ReplyStarted(draft):
                self.send(ReplySnapshot(live.turn, draft))
            case RetryScheduled(reply_id, waiting):
                self.send(RetryUpdate(live.turn.id, reply_id, waiting))

    def send(self, message: RelayMessage) -> None:
        if not self._db.is_shared:
            return
        if len(self._unsent) >= UNSENT_LIMIT:
            text = ReplySnapshot | DeltaBatch
            self._unsent = [unsent for unsent in self._unsent if not isinstance(unsent, text)]
        self._unsent.append(message)
        self._wake_up.wake()

    async def run(self) -> None:
        while self._db.is_shared:
            await self._wake_up.wait()
            await self.flush()
            await self._sleep(EVERY_S)

    async def flush(self) -> None:
        """Sends the bundle. If that fails, the nodes that miss something request it again."""
        unsent, self._unsent = self._unsent, []
        bundle = to_json([(type(message).__name__, message) for message in _joined(unsent)])
        try:
            await self._db.notify(bundle)
        except Exception as error:  # noqa: BLE001 - one failed bundle must not stop the next
            self._report(error)

    # ── from other nodes

    def receive(self, bundle: str) -> None:
        for message in _decode(bundle):
            match message:
                case ReplySnapshot(turn, draft):
                    self._start_reply(turn, draft)
                case DeltaBatch():
                    self._append_text(message)
                case RetryUpdate(turn_id, reply_id, waiting):
                    self._set_retry(turn_id, reply_id, waiting)
                case ResyncRequest(turn_id):
                    self._send_snapshots(turn_id)
                case StopRequest() | RetryNowRequest() | ConversationsDeleted():
                    self._carry_out(message)

    def _start_reply(self, turn: Turn, draft: Draft) -> None:
        live = self._live.find(turn.id) or self._live.open(turn, self._new_id())
        reply = live.replies.get(draft.id)
        is_newer = reply is None or reply.number < draft.number
        if not live.is_here and not live.is_over and is_newer and not live.has_ended(draft.id):
            self._live.start_reply(live, draft)

    def _append_text(self, batch: DeltaBatch) -> None:
        live = self._live.find(batch.turn_id)
        if live is None or live.is_here or live.is_over or live.has_ended(batch.reply_id):
            return
        reply = live.replies.get(batch.reply_id)
        if reply is None or batch.after > reply.number:
            self.send(ResyncRequest(batch.turn_id))
            return
        for text in batch.texts[reply.number - batch.after :]:
            self._live.append_text(live, reply, batch.reply_id, text, batch.is_thought)

    def _set_retry(self, turn_id: str, reply_id: str, waiting: RetryNotice | None) -> None:
        live = self._live.find(turn_id)
        if live is not None and not live.is_here and (reply := live.replies.get(reply_id)):
            self._live.set_retry(live, reply, reply_id, waiting)

    def _send_snapshots(self, turn_id: str) -> None:
        live = self._live.find(turn_id)
        if live is not None and live.is_here and not live.is_over:
            for reply in live.replies.values():
                self.send(ReplySnapshot(live.turn, reply.draft()))

    # ── mirrors

    def mirror(self, turn: Turn) -> LiveTurn | None:
        """Opens the mirror of a turn that another node runs; None if the turn is over."""
        if turn.state.is_over or not self._db.is_shared:
            return None
        self.send(ResyncRequest(turn.id))
        return self._live.open(turn, self._new_id())

    async def reconcile(self) -> None:
        """Catches up on what a broken connection has missed: the events of watched topics, and the turns that
        other nodes have begun or ended."""
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
                self.mirror(turn)


def _joined(messages: Iterable[RelayMessage]) -> Iterator[RelayMessage]:
    """The messages in order, with neighbouring deltas of one reply joined to a batch."""
    run: list[DeltaBatch] = []
    for message in messages:
        if run and not (isinstance(message, DeltaBatch) and _follows(message, run[-1])):
            yield _one_batch(run)
            run = []
        if isinstance(message, DeltaBatch):
            run.append(message)
        else:
            yield message
    if run:
        yield _one_batch(run)


def _follows(batch: DeltaBatch, last: DeltaBatch) -> bool:
    return (batch.reply_id, batch.is_thought) == (last.reply_id, last.is_thought)


def _one_batch(run: list[DeltaBatch]) -> DeltaBatch:
    return replace(run[0], texts=tuple(text for batch in run for text in batch.texts))


def _decode(bundle: str) -> Iterator[RelayMessage]:
    """The messages of a bundle; a kind that only a newer server knows is skipped."""
    for name, value in json.loads(bundle):
        if name in _KINDS:
            yield from_plain(_KINDS[name], value)
