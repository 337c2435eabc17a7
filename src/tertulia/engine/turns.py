"""Turns: opened by a request, run by the engine, ended by the last word of the last reply.

A turn belongs to the engine: whoever asked may leave. One conversation answers one question at a time; what
is said meanwhile waits in line. A retry of one reply starts at once, beside what runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from tertulia.core.errors import Busy, NotFound, TertuliaError, UnknownModel
from tertulia.core.events import conversation_topic
from tertulia.core.messages import Message, Round, Status
from tertulia.core.turns import Purpose, Turn, TurnState
from tertulia.core.users import Actor
from tertulia.core.voices import SeatRequest, Voice
from tertulia.engine import branching, open_turn, recovery
from tertulia.engine.context_retrieval import look_up
from tertulia.engine.dependencies import Dependencies
from tertulia.engine.live import LiveTurn
from tertulia.engine.node_relay import (
    ConversationsDeleted,
    NodeRelay,
    RelayCommand,
    RetryNowRequest,
    StopRequest,
)
from tertulia.engine.open_turn import OpenedTurn, OpenResult
from tertulia.engine.queue import QueuedTurn, TurnQueue
from tertulia.engine.requests import (
    BringBackRequest,
    NewEdit,
    NewSynthesis,
    NewTurn,
    RetryRequest,
    available,
    check,
    check_branch_id,
    check_brief,
    check_id,
    fingerprint,
)
from tertulia.engine.turn_inputs import TurnInputs, gather
from tertulia.engine.turn_table import TurnStopped, TurnTable
from tertulia.engine.voice_resolution import ProjectScope, seated, seated_chair
from tertulia.store import attachments, conversations, drafts, jobs, messages, turns
from tertulia.store.database import Tx
from tertulia.store.transactions import GONE

OTHER_NODE_POLL_S = 0.5
"""How often a round looks whether others are done: on another server, or where its branch left."""
SHUTDOWN_S = 10.0
"""How long the end of the server waits for the last replies to be written."""


@dataclass(frozen=True, slots=True)
class StopTarget:
    turn: Turn
    is_here: bool
    """Or over; False while another server runs it or has it in line."""


class Turns:
    def __init__(
        self,
        dependencies: Dependencies,
        job_left: Callable[[], None],
        relay: NodeRelay,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._dependencies = dependencies
        self._relay = relay
        relay.on_wish(self._hear)
        self._job_left = job_left
        self._sleep = sleep
        self._queue = TurnQueue(self._run)
        self._starting: dict[str, bool] = {}
        """Turns between the line and the table; True when one was stopped on the way."""
        self._seatings: dict[str, TurnTable] = {}
        self._stopping: set[asyncio.Task[Turn]] = set()
        """What people on other servers have stopped."""
        self._is_closing = False

    # ── what a person does

    async def open(self, actor: Actor, request: NewTurn) -> OpenedTurn:
        self._must_be_open()
        check(request)
        mark = fingerprint(request)

        def begin(tx: Tx) -> OpenResult:
            try:
                table, chair = self._seat(
                    tx, actor, ProjectScope(request.conversation_id, request.project_id), request
                )
            except (NotFound, UnknownModel):  # Whoever cannot be seated now may have been, when it was sent.
                if before := open_turn.find_duplicate(tx, actor, request.id, mark):
                    return before
                raise
            return open_turn.open_round(tx, actor, request, table, mark, chair)

        return self._begin(actor, await self._dependencies.db.write(begin))

    def _seat(
        self, tx: Tx, actor: Actor, spot: ProjectScope, request: NewTurn | NewEdit
    ) -> tuple[tuple[Voice, ...], Voice | None]:
        """The table, and whoever is in its chair."""
        table = seated(tx, actor, spot, request.voices, self._dependencies.providers)
        return table, seated_chair(tx, actor, spot, request.chair, table, self._dependencies.providers)

    async def ask_again(self, actor: Actor, request: NewTurn, asked: Message) -> OpenedTurn:
        """A question asked before, elsewhere: what it brought along comes with it."""
        self._must_be_open()
        check(request)
        mark = fingerprint(request)

        def begin(tx: Tx) -> OpenResult:
            spot = ProjectScope(request.conversation_id, request.project_id)
            table, chair = self._seat(tx, actor, spot, request)
            ids = [one.id for one in asked.attachments]
            brought = attachments.again(tx, actor, spot.project(tx, actor), asked, ids)
            return open_turn.open_round(tx, actor, replace(request, attachments=brought), table, mark, chair)

        return self._begin(actor, await self._dependencies.db.write(begin))

    async def edit(self, actor: Actor, conversation_id: str, number: int, request: NewEdit) -> OpenedTurn:
        """A question asked differently, in a branch beside the first."""
        self._must_be_open()
        check(request.turn_in(conversation_id))
        check_branch_id(request.branch_id)
        mark = fingerprint(request, f"edit:{conversation_id}:{number}")

        def begin(tx: Tx) -> OpenResult:
            table, chair = self._seat(tx, actor, ProjectScope(conversation_id), request)
            return branching.open_edit(tx, actor, conversation_id, number, request, table, mark, chair)

        return self._begin(actor, await self._dependencies.db.write(begin))

    async def bring_back(self, actor: Actor, conversation_id: str, request: BringBackRequest) -> OpenedTurn:
        """One voice reads a branch, and tells the conversation it left what came of it."""
        self._must_be_open()
        check_id(request.id)
        mark = fingerprint(request, f"return:{conversation_id}")

        def begin(tx: Tx) -> OpenResult:
            spot = ProjectScope(conversation_id)
            [voice] = seated(tx, actor, spot, (request.voice,), self._dependencies.providers)
            return branching.open_return(tx, actor, conversation_id, request, voice, mark)

        return self._begin(actor, await self._dependencies.db.write(begin))

    async def bring_again(
        self, actor: Actor, conversation_id: str, asked: Message, request: BringBackRequest
    ) -> OpenedTurn:
        """A branch that was brought back before, told of once more elsewhere."""
        self._must_be_open()
        mark = fingerprint(request, f"return:{asked.brings_id}:{conversation_id}")

        def begin(tx: Tx) -> OpenResult:
            [voice] = seated(
                tx, actor, ProjectScope(conversation_id), (request.voice,), self._dependencies.providers
            )
            return branching.open_return_again(tx, actor, conversation_id, asked, request.id, voice, mark)

        return self._begin(actor, await self._dependencies.db.write(begin))

    async def synthesise(
        self, actor: Actor, conversation_id: str, number: int, request: NewSynthesis
    ) -> OpenedTurn:
        """The chair reads a round that was answered before, and closes it."""
        self._must_be_open()
        check_id(request.id)
        check_brief(request.brief)
        mark = fingerprint(request, f"synthesis:{conversation_id}:{number}")

        def begin(tx: Tx) -> OpenResult:
            spot = ProjectScope(conversation_id)
            question = messages.round(tx, conversation_id, number).question
            table = turns.get(tx, actor, question.turn_id).table
            chair = seated_chair(tx, actor, spot, request.chair, table, self._dependencies.providers)
            return open_turn.open_synthesis(tx, actor, conversation_id, number, request, chair, mark)

        return self._begin(actor, await self._dependencies.db.write(begin))

    async def retry(self, actor: Actor, message_id: str, request: RetryRequest) -> OpenedTurn:
        """The same voice once more, or the same seat with another model."""

        def voice_for(reply: Message, others: Sequence[Voice]) -> Voice:
            assert reply.voice is not None
            model = available(request.model or reply.voice.model, self._dependencies.providers)
            if request.model in (None, reply.voice.model):
                return reply.voice
            wanted = SeatRequest(model.key, model.display_name, effort=model.effort(reply.voice.effort))
            return open_turn.with_model(reply.voice, wanted, others)

        return await self._again(actor, message_id, request, Purpose.RETRY, voice_for)

    async def resume(self, actor: Actor, message_id: str, request: RetryRequest) -> OpenedTurn:
        """Goes on where a reply broke off."""

        def voice_for(reply: Message, others: Sequence[Voice]) -> Voice:
            assert reply.voice is not None
            available(reply.voice.model, self._dependencies.providers)
            return reply.voice

        return await self._again(actor, message_id, request, Purpose.CONTINUE, voice_for)

    async def over(self, actor: Actor, turn: Turn) -> Turn:
        """Waits for its last word, whichever server runs it."""
        live = self._dependencies.live.find(turn.id) or self._relay.mirrored(turn)
        if live is not None:
            await live.over.wait()
        return await self._dependencies.db.read(lambda tx: turns.get(tx, actor, turn.id))

    async def stop(self, actor: Actor, turn_id: str, reply_id: str | None = None) -> Turn:
        """Stops all voices, or one; a turn that is over stays as it is."""
        found = await self._find(actor, turn_id, reply_id)
        if not found.is_here:
            self._relay.say(StopRequest(turn_id, reply_id))
            return found.turn
        return await self._stop(found.turn, reply_id)

    async def retry_now(self, actor: Actor, turn_id: str, reply_id: str | None = None) -> Turn:
        """Voices that wait for their provider, or one of them, try again at once."""
        found = await self._find(actor, turn_id, reply_id)
        if found.is_here:
            self._retry_now(turn_id, reply_id)
        else:
            self._relay.say(RetryNowRequest(turn_id, reply_id))
        return found.turn

    def _retry_now(self, turn_id: str, reply_id: str | None) -> None:
        if seating := self._seatings.get(turn_id):
            seating.retry_now(reply_id)

    async def _find(self, actor: Actor, turn_id: str, reply_id: str | None) -> StopTarget:
        """For someone who may write in its conversation."""
        seating = self._seatings.get(turn_id)
        ended_id = None if seating and seating.is_speaking(reply_id) else reply_id
        return await self._dependencies.db.read(lambda tx: self._stoppable(tx, actor, turn_id, ended_id))

    async def _stop(self, turn: Turn, reply_id: str | None) -> Turn:
        if not self._halt(turn, reply_id) and reply_id is None and not turn.state.is_over:
            turn = await self._end(self._dependencies.live.find(turn.id), turn, TurnState.STOPPED) or turn
            if not self._halt(turn, None):  # it may have come into the line while this was written
                self._forget(turn)
        return turn

    def _halt(self, turn: Turn, reply_id: str | None) -> bool:
        """Whether it was found at the table or on its way there; out of the line it is simply taken."""
        if turn.id in self._seatings:
            self._seatings[turn.id].stop(reply_id)
            return True
        if turn.id in self._starting:
            self._starting[turn.id] |= reply_id is None
            return True
        if reply_id is None:
            self._queue.remove(turn)
        return False

    def _stoppable(self, tx: Tx, actor: Actor, turn_id: str, ended_id: str | None) -> StopTarget:
        """A reply that is not speaking has ended in this turn, or it is none of its replies."""
        turn = turns.get(tx, actor, turn_id)
        open_turn.writable(tx, actor, turn.conversation_id)
        is_here = turn.state.is_over or turns.is_here(tx, turn_id)
        if is_here and ended_id is not None and messages.get(tx, actor, ended_id).turn_id != turn.id:
            raise NotFound(GONE)
        return StopTarget(turn, is_here)

    def _hear(self, wish: RelayCommand) -> None:
        """What was wanted on another server, by someone who may."""
        match wish:
            case ConversationsDeleted(conversation_ids):
                self._withdraw(conversation_ids)
            case RetryNowRequest(turn_id, reply_id):
                self._retry_now(turn_id, reply_id)
            case StopRequest(turn_id, reply_id):
                live = self._dependencies.live.find(turn_id)
                if live is not None and live.is_here:
                    task = asyncio.create_task(self._stop(live.turn, reply_id))
                    self._stopping.add(task)
                    task.add_done_callback(self._stopping.discard)

    def withdraw(self, conversation_ids: Sequence[str]) -> None:
        """The conversations are gone: nothing may go on answering in them, wherever it is asked."""
        self._withdraw(conversation_ids)
        self._relay.say(ConversationsDeleted(tuple(conversation_ids)))

    def _withdraw(self, conversation_ids: Sequence[str]) -> None:
        for conversation_id in conversation_ids:
            for turn in self._queue.clear(conversation_id):
                self._forget(turn)
            for live in self._dependencies.live.running_in(conversation_id):
                self._halt(live.turn, None)

    def _forget(self, turn: Turn) -> None:
        """Over in the store already, or gone from it; whoever watches it is told."""
        live = self._dependencies.live.find(turn.id)
        if live is not None and not live.is_over:
            self._dependencies.live.ended(live, replace(turn, state=TurnState.STOPPED))

    # ── opening

    async def _again(
        self,
        actor: Actor,
        message_id: str,
        request: RetryRequest,
        purpose: Purpose,
        voice_for: open_turn.VoiceFor,
    ) -> OpenedTurn:
        self._must_be_open()
        check_id(request.id)
        check_branch_id(request.branch_id)
        mark = fingerprint(request, f"{purpose}:{message_id}")
        opened = await self._dependencies.db.write(
            lambda tx: open_turn.open_again(tx, actor, message_id, request, purpose, voice_for, mark)
        )
        return self._begin(actor, opened, frozenset(request.without))

    def _must_be_open(self) -> None:
        if self._is_closing:
            raise Busy("The server is being restarted. Try again in a moment.", retry_after_s=2)

    def _begin(self, actor: Actor, opened: OpenResult, without: frozenset[str] = frozenset()) -> OpenedTurn:
        if opened.is_new:
            self._enqueue(QueuedTurn(opened.opened.turn, actor, without))
        return opened.opened

    def _enqueue(self, waiting: QueuedTurn) -> None:
        self._dependencies.live.open(waiting.turn)
        if not waiting.turn.purpose.starts_at_once:
            return self._queue.add(waiting)
        self._starting[waiting.turn.id] = False
        self._queue.start(waiting)

    # ── running

    async def _run(self, waiting: QueuedTurn) -> None:
        live = self._dependencies.live.find(waiting.turn.id) or self._dependencies.live.open(waiting.turn)
        try:
            await self._answer(waiting, live)
        except NotFound:
            await self._end_or_report(live, waiting.turn, TurnState.STOPPED)
        except Exception as error:  # noqa: BLE001 - the queue must go on whatever one turn did
            self._dependencies.report(error)
            await self._end_or_report(live, waiting.turn, TurnState.FAILED)

    async def _answer(self, waiting: QueuedTurn, live: LiveTurn) -> None:
        seating = await self._sit_down(waiting, live)
        try:
            is_over = False
            while not is_over:
                with suppress(TurnStopped):
                    await seating.mode.run(seating)
                is_over = await self._end_or_report(live, waiting.turn, self._verdict(seating), seating)
        finally:
            del self._seatings[waiting.turn.id]

    async def _sit_down(self, waiting: QueuedTurn, live: LiveTurn) -> TurnTable:
        turn = waiting.turn
        self._starting.setdefault(turn.id, False)
        try:
            gathered = await self._gather(waiting)
            gathered = replace(gathered, without=gathered.without | waiting.without)
            gathered = await look_up(self._dependencies, waiting.actor, gathered)
        finally:
            is_stopped = self._starting.pop(turn.id)
        live.turn = gathered.turn
        seating = self._seatings[turn.id] = TurnTable(self._dependencies, live, gathered)
        if is_stopped:
            seating.stop(None)
        if self._is_closing:
            seating.interrupt()
        return seating

    async def _gather(self, waiting: QueuedTurn) -> TurnInputs:
        if waiting.turn.state is TurnState.RUNNING:
            return await self._dependencies.db.read(
                lambda tx: gather(tx, waiting.actor, waiting.turn, self._dependencies.providers.find)
            )
        while (gathered := await self._dependencies.db.write(lambda tx: self._start(tx, waiting))) is None:
            await self._sleep(OTHER_NODE_POLL_S)
        return gathered

    def _start(self, tx: Tx, waiting: QueuedTurn) -> TurnInputs | None:
        """It was this turn's place in the line; now it runs. None while others have to be waited for."""
        turn = waiting.turn
        tx.lock(conversation_topic(turn.conversation_id))
        is_called_off = self._starting[turn.id] or self._is_closing
        if self._must_wait(tx, turn) and not is_called_off:
            return None
        running = turns.set_state(tx, turn.id, TurnState.RUNNING)
        return gather(tx, waiting.actor, running, self._dependencies.providers.find)

    def _must_wait(self, tx: Tx, turn: Turn) -> bool:
        """Another server answers here, or what the branch goes on from is not said yet."""
        return turns.must_wait(tx, turn) or turns.is_inheriting(tx, turn.conversation_id)

    def _verdict(self, seating: TurnTable) -> TurnState:
        if seating.is_stopped:
            return TurnState.STOPPED
        if self._is_closing and any(reply.status is Status.INTERRUPTED for reply in seating.replies):
            return TurnState.INTERRUPTED
        if seating.replies and all(reply.status is Status.FAILED for reply in seating.replies):
            return TurnState.FAILED
        return TurnState.COMPLETE

    async def _end_or_report(
        self, live: LiveTurn, turn: Turn, state: TurnState, seating: TurnTable | None = None
    ) -> bool:
        """False when there is more to ask, so that the turn goes on."""
        try:
            return await self._end(live, turn, state, seating) is not None
        except TertuliaError as error:
            # The store cannot take it now; whoever watches is told, and the next start mends the rest.
            self._dependencies.report(error)
            self._dependencies.live.ended(live, replace(turn, state=TurnState.INTERRUPTED))
            return True

    async def _end(
        self, live: LiveTurn | None, turn: Turn, state: TurnState, seating: TurnTable | None = None
    ) -> Turn | None:
        """None when the turn goes on: that and its end are decided in one transaction, so that of the turns
        that answer one round at the same time the last one does what is left."""

        def close(tx: Tx) -> tuple[Turn, bool] | Round:
            more = seating.left_to_do(tx) if seating else None
            return more or self._close(tx, turn, state)

        closed = await self._dependencies.db.write(close)
        if seating is not None and isinstance(closed, Round):
            seating.take_up(closed)
            return None
        assert isinstance(closed, tuple)
        ended, left_job = closed
        if live is not None:
            self._dependencies.live.ended(live, ended)
        if left_job:
            self._job_left()
        return ended

    def _close(self, tx: Tx, turn: Turn, state: TurnState) -> tuple[Turn, bool]:
        try:
            ended = turns.set_state(tx, turn.id, state)
        except NotFound:
            return replace(turn, state=state), False
        drafts.remove_of_turn(tx, turn.id)
        conversation = conversations.changed(tx, turn.conversation_id)
        if state is TurnState.COMPLETE and conversations.needs_name(tx, conversation.id):
            jobs.add(tx, "title", conversation.id, key=f"title:{conversation.id}")
        jobs.add_once(tx, "index_round", f"{turn.conversation_id}:{turn.round_number}")
        return ended, True

    # ── the end of the server

    async def close(self) -> None:
        """Every running reply is kept with its text so far and says why it ended; nobody waits any longer."""
        self._is_closing = True
        queued = self._queue.clear_all()
        for seating in tuple(self._seatings.values()):
            seating.interrupt()
        await asyncio.gather(*map(self._interrupt, queued))
        if running := tuple(self._queue.tasks()):
            await asyncio.wait(running, timeout=SHUTDOWN_S)

    async def _interrupt(self, turn: Turn) -> None:
        """One that still stood in line; what cannot be written now is mended at the next start."""
        try:
            ended = await self._dependencies.db.write(lambda tx: recovery.interrupt(tx, turn))
        except TertuliaError as error:
            self._dependencies.report(error)
            ended = replace(turn, state=TurnState.INTERRUPTED)
        if live := self._dependencies.live.find(turn.id):
            self._dependencies.live.ended(live, ended)
