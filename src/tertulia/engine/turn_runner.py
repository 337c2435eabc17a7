"""Turn runner: takes turns from the queue, runs their modes, and stops and ends them.

submit ─▶ queue ─▶ starting (inputs are collected) ─▶ at its table (the mode runs) ─▶ ended
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from tertulia.core.errors import NotFound, TertuliaError
from tertulia.core.events import conversation_topic
from tertulia.core.messages import Round
from tertulia.core.turns import Turn, TurnState
from tertulia.engine import recovery
from tertulia.engine.context_retrieval import retrieve
from tertulia.engine.dependencies import Dependencies
from tertulia.engine.end_turn import EndedTurn, end_turn, final_state
from tertulia.engine.live_turn import LiveTurn
from tertulia.engine.queue import QueuedTurn, TurnQueue
from tertulia.engine.turn_inputs import TurnInputs
from tertulia.engine.turn_records import TurnRecords, read_turn
from tertulia.engine.turn_table import TurnStopped, TurnTable
from tertulia.store import turns
from tertulia.store.database import Tx

OTHER_NODE_POLL_S = 0.5
"""The pause between two checks whether a turn may start that waits for another node or another branch."""
SHUTDOWN_S = 10.0
"""How long the shutdown waits until the last replies are written."""


class TurnRunner:
    def __init__(
        self,
        dependencies: Dependencies,
        wake_workers: Callable[[], None],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._dependencies = dependencies
        self._wake_workers = wake_workers
        self._sleep = sleep
        self._queue = TurnQueue(self._run)
        self._starting: dict[str, bool] = {}
        """Turns that have left the queue and have no table yet; True for those stopped in the meantime."""
        self._tables: dict[str, TurnTable] = {}
        """The tables of the running turns, by the id of the turn."""
        self.is_closing = False

    def submit(self, queued: QueuedTurn) -> None:
        """Queues a turn that was opened; a retry starts at once."""
        self._dependencies.live.open(queued.turn)
        if not queued.turn.purpose.starts_at_once:
            return self._queue.add(queued)
        self._starting[queued.turn.id] = False
        self._queue.start(queued)

    def is_asking(self, turn_id: str, reply_id: str | None) -> bool:
        """Whether this reply is being written at the turn's table."""
        table = self._tables.get(turn_id)
        return table is not None and table.is_asking(reply_id)

    # ── stopping

    async def stop(self, turn: Turn, reply_id: str | None) -> Turn:
        """Stops a turn of this node, or one of its replies."""
        if not self._stop_locally(turn, reply_id) and reply_id is None and not turn.state.is_over:
            turn = await self._end(self._dependencies.live.find(turn.id), turn, TurnState.STOPPED) or turn
            if not self._stop_locally(turn, None):  # It may have been queued while the end was written.
                self._mark_stopped(turn)
        return turn

    def cancel_in(self, conversation_ids: Sequence[str]) -> None:
        """Stops and removes the turns of conversations that were deleted."""
        for conversation_id in conversation_ids:
            for turn in self._queue.clear(conversation_id):
                self._mark_stopped(turn)
            for live in self._dependencies.live.running_in(conversation_id):
                self._stop_locally(live.turn, None)

    def retry_now(self, turn_id: str, reply_id: str | None) -> None:
        if table := self._tables.get(turn_id):
            table.retry_now(reply_id)

    def _stop_locally(self, turn: Turn, reply_id: str | None) -> bool:
        """True if the turn was running or starting here and has been told to stop. A queued turn is removed
        from the queue and gives False."""
        if turn.id in self._tables:
            self._tables[turn.id].stop(reply_id)
            return True
        if turn.id in self._starting:
            self._starting[turn.id] |= reply_id is None
            return True
        if reply_id is None:
            self._queue.remove(turn)
        return False

    def _mark_stopped(self, turn: Turn) -> None:
        """Tells the watchers of a turn that it is over; the store knows it already."""
        live = self._dependencies.live.find(turn.id)
        if live is not None and not live.is_over:
            self._dependencies.live.end_turn(live, replace(turn, state=TurnState.STOPPED))

    # ── running

    async def _run(self, queued: QueuedTurn) -> None:
        live = self._dependencies.live.find(queued.turn.id) or self._dependencies.live.open(queued.turn)
        try:
            await self._run_mode(queued, live)
        except NotFound:
            await self._end_or_report(live, queued.turn, TurnState.STOPPED)
        except Exception as error:  # noqa: BLE001 - one turn must not stop the queue
            self._dependencies.report(error)
            await self._end_or_report(live, queued.turn, TurnState.FAILED)

    async def _run_mode(self, queued: QueuedTurn, live: LiveTurn) -> None:
        table = await self._set_table(queued, live)
        try:
            is_over = False
            while not is_over:
                with suppress(TurnStopped):
                    await table.mode.run(table)
                state = final_state(table.replies, is_stopped=table.is_stopped, is_closing=self.is_closing)
                is_over = await self._end_or_report(live, queued.turn, state, table)
        finally:
            del self._tables[queued.turn.id]

    async def _set_table(self, queued: QueuedTurn, live: LiveTurn) -> TurnTable:
        turn = queued.turn
        self._starting.setdefault(turn.id, False)
        try:
            inputs = await self._collect(queued)
        finally:
            is_stopped = self._starting.pop(turn.id)
        live.turn = inputs.turn
        table = self._tables[turn.id] = TurnTable(self._dependencies, live, inputs)
        if is_stopped:
            table.stop(None)
        if self.is_closing:
            table.interrupt()
        return table

    async def _collect(self, queued: QueuedTurn) -> TurnInputs:
        records = await self._read_records(queued)
        return await retrieve(self._dependencies, queued.actor, records)

    async def _read_records(self, queued: QueuedTurn) -> TurnRecords:
        """Waits until the turn may start, and reads what it needs."""
        if queued.turn.state is TurnState.RUNNING:
            return await self._dependencies.db.read(lambda tx: self._read(tx, queued, queued.turn))
        while (records := await self._dependencies.db.write(lambda tx: self._start(tx, queued))) is None:
            await self._sleep(OTHER_NODE_POLL_S)
        return records

    def _start(self, tx: Tx, queued: QueuedTurn) -> TurnRecords | None:
        """Marks the first turn of the queue as running; None while it has to wait for others."""
        turn = queued.turn
        tx.lock(conversation_topic(turn.conversation_id))
        is_called_off = self._starting[turn.id] or self.is_closing
        if _must_wait(tx, turn) and not is_called_off:
            return None
        return self._read(tx, queued, turns.set_state(tx, turn.id, TurnState.RUNNING))

    def _read(self, tx: Tx, queued: QueuedTurn, turn: Turn) -> TurnRecords:
        return read_turn(tx, queued.actor, turn, self._dependencies.providers.find, queued.excluded_ids)

    # ── ending

    async def _end_or_report(
        self, live: LiveTurn, turn: Turn, state: TurnState, table: TurnTable | None = None
    ) -> bool:
        """False if the mode has to run again, since there is more to ask."""
        try:
            return await self._end(live, turn, state, table) is not None
        except TertuliaError as error:
            # The store refuses the write. Recovery at the next start ends the turn; the watchers know now.
            self._dependencies.report(error)
            self._dependencies.live.end_turn(live, replace(turn, state=TurnState.INTERRUPTED))
            return True

    async def _end(
        self, live: LiveTurn | None, turn: Turn, state: TurnState, table: TurnTable | None = None
    ) -> Turn | None:
        """Ends the turn and returns it; None if the round has missing steps, which its table runs next.

        One transaction looks for missing steps and ends the turn. So when several turns answer one round at
        the same time, the last one to end runs them.
        """
        result = await self._dependencies.db.write(lambda tx: _left_or_ended(tx, turn, state, table))
        if isinstance(result, Round):
            assert table is not None
            table.take_up(result)
            return None
        if live is not None:
            self._dependencies.live.end_turn(live, result.turn)
        if result.has_added_jobs:
            self._wake_workers()
        return result.turn

    # ── shutdown

    async def close(self) -> None:
        """Interrupts all turns; each running reply is stored with the text it has."""
        self.is_closing = True
        queued = self._queue.clear_all()
        for table in tuple(self._tables.values()):
            table.interrupt()
        await asyncio.gather(*map(self._interrupt, queued))
        if running := tuple(self._queue.tasks()):
            await asyncio.wait(running, timeout=SHUTDOWN_S)

    async def _interrupt(self, turn: Turn) -> None:
        """Interrupts a queued turn. If that cannot be written now, the next start does it."""
        try:
            ended = await self._dependencies.db.write(lambda tx: recovery.interrupt(tx, turn))
        except TertuliaError as error:
            self._dependencies.report(error)
            ended = replace(turn, state=TurnState.INTERRUPTED)
        if live := self._dependencies.live.find(turn.id):
            self._dependencies.live.end_turn(live, ended)


def _must_wait(tx: Tx, turn: Turn) -> bool:
    """Whether another node answers in the conversation, or a round that its branch inherits is unfinished."""
    return turns.must_wait(tx, turn) or turns.is_inheriting(tx, turn.conversation_id)


def _left_or_ended(tx: Tx, turn: Turn, state: TurnState, table: TurnTable | None) -> Round | EndedTurn:
    left = table.left_to_do(tx) if table else None
    return left or end_turn(tx, turn, state)
