"""The table of a running turn: asks the voices that its mode calls and reuses the replies that exist.

Several turns may answer one round at the same time: a voice is retried while another still writes. Such a
retry asks for its own reply alone. The turn that opened the round does what follows in the mode (rebuttals,
the synthesis); if that turn is over, the retry that ends last does it. council/plan.py decides what is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tertulia.core.events import conversation_topic
from tertulia.core.messages import Message, Round, Step
from tertulia.core.step_instructions import ANSWER, StepInstructions
from tertulia.core.voices import Voice
from tertulia.council.plan import Slot, is_closing, placeholder, slot, slot_of
from tertulia.council.table import ask_each
from tertulia.engine.ask import Ask
from tertulia.engine.dependencies import Dependencies
from tertulia.engine.live_turn import LiveTurn
from tertulia.engine.turn_inputs import TurnInputs
from tertulia.store import messages, turns
from tertulia.store.database import Tx


class TurnStopped(Exception):
    """The turn was stopped; its mode asks for nothing more."""


class TurnTable:
    def __init__(self, dependencies: Dependencies, live: LiveTurn, inputs: TurnInputs) -> None:
        self._dependencies = dependencies
        self._live = live
        self._inputs = inputs
        self._turn = inputs.turn
        self._plan = inputs.plan
        self._asks: dict[str, Ask] = {}
        self._end_early: Callable[[Ask], None] | None = None
        """How each ask is ended, once the turn is stopped or interrupted."""
        self.replies: list[Message] = []
        """The replies that this turn has written."""
        self._standing: dict[Slot, Message] = {}
        """The replies that the round has, by seat and step."""
        self._read_ids: set[str] = set()
        """Ids of the messages of the round that this turn has read or written."""
        if self._plan.here is not None:
            self._read(self._plan.here)
        self.mode = self._plan.mode
        self.voices: Sequence[Voice] = self._plan.voices
        self.brief = self._plan.brief
        self._runs_later_steps = self._plan.runs_later_steps
        self._has_left_some = False
        """Whether the mode asked for a reply that this turn leaves to another."""

    @property
    def chair(self) -> Voice:
        return self._plan.chair((*self._standing.values(), *self.replies))

    @property
    def earlier_replies(self) -> Sequence[Message]:
        standing = self._standing.values()
        return [reply for reply in standing if not is_closing(reply) and reply.step is not Step.REVIEW]

    @property
    def earlier_reviews(self) -> Sequence[Message]:
        return [reply for reply in self._standing.values() if reply.step is Step.REVIEW]

    @property
    def can_outline(self) -> bool:
        model = self._dependencies.providers.find(self.chair.model)
        return model is not None and not model.is_demo

    # ── asking

    async def ask(self, voice: Voice, step: StepInstructions = ANSWER) -> Message:
        standing = self._standing.get(slot(voice, step.step))
        written_ids = {reply.id for reply in self.replies}
        if standing is not None and self._plan.can_reuse(standing, step, written_ids):
            return standing
        if standing is None and self._plan.was_deleted(step):
            return placeholder(self._inputs.question, self._turn, voice)
        if not self._runs_later_steps and not self._plan.is_target(standing, step):
            return self._leave(voice, standing)
        if self._end_early and self.replies:
            raise TurnStopped
        return await self._ask_now(voice, step, standing)

    def _leave(self, voice: Voice, standing: Message | None) -> Message:
        """Leaves the reply to another turn, and ends the mode if this turn has written its own reply."""
        self._has_left_some = True
        if self.replies:
            raise TurnStopped
        return standing or placeholder(self._inputs.question, self._turn, voice)

    async def _ask_now(self, voice: Voice, step: StepInstructions, replaced: Message | None) -> Message:
        step = self._plan.as_begun(step, replaced)
        ask = Ask(self._dependencies, self._live, self._inputs, voice, step, replaced)
        self._asks[ask.id] = ask
        if self._end_early:
            self._end_early(ask)
        try:
            message = await ask.run()
        finally:
            del self._asks[ask.id]
        self.replies.append(message)
        self._read_ids.add(message.id)
        return message

    async def ask_all(
        self, voices: Sequence[Voice] | None = None, step: StepInstructions = ANSWER
    ) -> Sequence[Message]:
        return await ask_each(self, ((voice, step) for voice in (self.voices if voices is None else voices)))

    # ── what other turns write in the round

    async def current(self, replies: Sequence[Message]) -> Sequence[Message]:
        self._read(await self._dependencies.db.read(self._round))
        return [self._standing.get(slot_of(reply), reply) for reply in replies]

    def _round(self, tx: Tx) -> Round:
        return messages.round(tx, self._turn.conversation_id, self._turn.round_number)

    def _read(self, here: Round) -> None:
        self._standing = {slot_of(reply): reply for reply in here.replies}
        self._read_ids.update(message.id for message in here.messages)

    def left_to_do(self, tx: Tx) -> Round | None:
        """The round, if the mode has to run over it again: this is the last turn that answers it, and a reply
        was left to it or has been written by another turn."""
        if self._end_early is not None or not self._plan.may_go_on(has_left=self._has_left_some):
            return None
        tx.lock(conversation_topic(self._turn.conversation_id))
        if turns.has_company(tx, self._turn):
            return None
        here = self._round(tx)
        has_unread = not self._read_ids.issuperset(message.id for message in here.messages)
        return here if self._has_left_some or has_unread else None

    def take_up(self, here: Round) -> None:
        """Prepares the next run of the mode, which asks for everything that the round lacks."""
        self._read(here)
        self._runs_later_steps = True
        self._has_left_some = False

    # ── ending early

    def stop(self, reply_id: str | None) -> None:
        """Stops one reply, or all of them and those that the mode would ask for next."""
        if reply_id is None:
            self._end(Ask.stop)
        elif reply_id in self._asks:
            self._asks[reply_id].stop()

    def retry_now(self, reply_id: str | None) -> None:
        """Ends the wait before a retry: of one reply, or of all that wait."""
        for ask in tuple(self._asks.values()):
            if reply_id in (None, ask.id):
                ask.retry_now()

    def is_asking(self, reply_id: str | None) -> bool:
        return reply_id in self._asks

    def interrupt(self) -> None:
        """Ends all replies because the server shuts down."""
        self._end(Ask.interrupt)

    def _end(self, early: Callable[[Ask], None]) -> None:
        self._end_early = self._end_early or early
        for ask in tuple(self._asks.values()):
            self._end_early(ask)

    @property
    def is_stopped(self) -> bool:
        return self._end_early is Ask.stop
