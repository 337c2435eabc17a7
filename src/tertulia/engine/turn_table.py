"""The table of a running turn: seats the voices and asks them.

A turn may come back to a round that was answered before: to retry a reply, to go on with one, to add a
synthesis. Its mode then runs again over the same table. What stands in the round already is not asked for
again, so the mode goes on where it had stopped.

Several turns may answer one round at the same time: a voice is retried while another still writes. Such a
retry asks for its own reply alone. The turn that opened the round does what follows in the mode (rebuttals,
the synthesis); where that turn is over, the retry that ends last does it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tertulia import council
from tertulia.core.events import conversation_topic
from tertulia.core.messages import Message, Round, Status, Step, speaker_of
from tertulia.core.step_instructions import ANSWER, ShownReply, StepInstructions
from tertulia.core.turns import Purpose, Turn
from tertulia.core.voices import Voice
from tertulia.council.table import ask_each, was_heard
from tertulia.engine.ask import Ask
from tertulia.engine.dependencies import Dependencies
from tertulia.engine.live import LiveTurn
from tertulia.engine.turn_inputs import TurnInputs
from tertulia.store import messages, turns
from tertulia.store.database import Tx

_CLOSING = (Step.SYNTHESIS, Step.OUTLINE)


class TurnStopped(Exception):
    """The turn was stopped, and what its mode would still ask for is not asked."""


class TurnTable:
    """What a mode talks to."""

    def __init__(self, dependencies: Dependencies, live: LiveTurn, gathered: TurnInputs) -> None:
        self._dependencies = dependencies
        self._live = live
        self._gathered = gathered
        self._asks: dict[str, Ask] = {}
        self._end_early: Callable[[Ask], None] | None = None
        self.replies: list[Message] = []
        """Those of this turn."""
        self._standing: dict[tuple[int, str], Message] = {}
        """What the round holds already, by who said it in which step."""
        self._known: set[str] = set()
        """Ids of the messages that have been read of the round."""
        if gathered.here is not None:
            self._read(gathered.here)
        self.mode = _mode(gathered)
        self._does_all = _does_all(gathered)
        """False: only its own reply is asked for; what follows is left."""
        self._has_left_some = False
        self.voices: Sequence[Voice] = _seated(gathered)
        self._named = _chair(gathered)
        self.wish = gathered.turn.brief or gathered.began.brief

    @property
    def chair(self) -> Voice:
        """Whom a person named; otherwise the first who was heard, so that one failure does not take two."""
        answers = (*self._standing.values(), *self.replies)
        heard = {one.voice.seat: one.voice for one in answers if one.voice and _is_heard_answer(one)}
        first = next((heard[voice.seat] for voice in self.voices if voice.seat in heard), self.voices[0])
        return self._named or first

    @property
    def said(self) -> Sequence[Message]:
        unsaid = (*_CLOSING, Step.REVIEW)
        return [reply for reply in self._standing.values() if reply.step not in unsaid]

    @property
    def reviews(self) -> Sequence[Message]:
        return [reply for reply in self._standing.values() if reply.step is Step.REVIEW]

    @property
    def can_outline(self) -> bool:
        model = self._dependencies.providers.find(self.chair.model)
        return model is not None and not model.is_demo

    # ── asking

    async def ask(self, voice: Voice, brief: StepInstructions = ANSWER) -> Message:
        standing = self._standing.get(_place_of(voice, brief.step))
        if standing is not None and self._stands(standing, brief):
            return standing
        if standing is None and self._has_left(brief):
            return self._absent(voice)
        if not self._does_all and not self._is_own(standing, brief):
            return self._left(voice, standing)
        if self._end_early and self.replies:
            raise TurnStopped
        return await self._ask_now(voice, brief, standing)

    def _is_own(self, standing: Message | None, brief: StepInstructions) -> bool:
        """The reply that is tried again; an outline belongs to its synthesis."""
        target = self._gathered.replaced
        if target is None:
            return False
        is_its_outline = brief.step is Step.OUTLINE and target.step is Step.SYNTHESIS
        return is_its_outline or (standing is not None and standing.id == target.id)

    def _left(self, voice: Voice, standing: Message | None) -> Message:
        """Once its own reply is written, a turn with company goes no further."""
        self._has_left_some = True
        if self.replies:
            raise TurnStopped
        return standing or self._absent(voice)

    async def _ask_now(self, voice: Voice, brief: StepInstructions, replaced: Message | None) -> Message:
        brief = self._as_begun(brief, replaced)
        ask = Ask(self._dependencies, self._live, self._gathered, voice, brief, replaced)
        self._asks[ask.id] = ask
        if self._end_early:
            self._end_early(ask)
        try:
            message = await ask.run()
        finally:
            del self._asks[ask.id]
        self.replies.append(message)
        self._known.add(message.id)
        return message

    async def ask_all(
        self, voices: Sequence[Voice] | None = None, brief: StepInstructions = ANSWER
    ) -> Sequence[Message]:
        return await ask_each(self, ((voice, brief) for voice in (self.voices if voices is None else voices)))

    # ── what other turns write in the round

    async def current(self, replies: Sequence[Message]) -> Sequence[Message]:
        turn = self._gathered.turn
        self._read(
            await self._dependencies.db.read(
                lambda tx: messages.round(tx, turn.conversation_id, turn.round_number)
            )
        )
        return [self._standing.get(_place(reply), reply) for reply in replies]

    def _read(self, here: Round) -> None:
        self._standing = {_place(reply): reply for reply in here.replies}
        self._known.update(message.id for message in here.messages)

    def left_to_do(self, tx: Tx) -> Round | None:
        """The round, when its mode goes on from there: this is the last turn that answers it, and something
        was left to it, or was written meanwhile by others."""
        if self._end_early is not None or not self._may_go_on:
            return None
        turn = self._gathered.turn
        tx.hold(conversation_topic(turn.conversation_id))
        if turns.has_company(tx, turn):
            return None
        here = messages.round(tx, turn.conversation_id, turn.round_number)
        is_news = not self._known.issuperset(message.id for message in here.messages)
        return here if self._has_left_some or is_news else None

    @property
    def _may_go_on(self) -> bool:
        return self._has_left_some or self.mode.has_chair or not self.mode.asks_at_once

    def take_up(self, here: Round) -> None:
        """The next run of the mode does all that is left."""
        self._read(here)
        self._does_all = True
        self._has_left_some = False

    # ── coming back to a round

    def _as_begun(self, brief: StepInstructions, replaced: Message | None) -> StepInstructions:
        """A reply that goes on reads what its beginning had read, under the same names."""
        here, target = self._gathered.here, self._gathered.replaced
        is_continued = self._gathered.turn.purpose is Purpose.CONTINUE and replaced == target
        if not is_continued or here is None or target is None or not target.read_replies:
            return brief
        there = {message.id: message for message in here.messages}
        known = (one for one in target.read_replies if one.message_id in there)
        return replace(
            brief, shown=tuple(ShownReply(one.label or one.name, there[one.message_id]) for one in known)
        )

    def _stands(self, reply: Message, brief: StepInstructions) -> bool:
        """Not the one that is tried again, nor what was made of it, nor a later step that said nothing."""
        if any(own.id == reply.id for own in self.replies):
            return True
        target = self._gathered.replaced
        if target is not None and reply.id == target.id:
            return False
        if target is not None and target.step is Step.SYNTHESIS and reply.step is Step.REVIEW:
            return was_heard(reply) and _has_read(reply, brief)
        is_closing = reply.step in _CLOSING
        if self._gathered.turn.purpose is Purpose.SYNTHESIS and is_closing:
            return False
        if target is not None and target.step is Step.SYNTHESIS and reply.step is Step.OUTLINE:
            return False
        return reply.step is Step.ANSWER or was_heard(reply)

    def _has_left(self, brief: StepInstructions) -> bool:
        """An answer that is gone from a round everyone had answered was taken out by a person."""
        return self._gathered.asked is not None and brief.step is Step.ANSWER and self.mode.asks_at_once

    def _absent(self, voice: Voice) -> Message:
        question, turn = self._gathered.question, self._gathered.turn
        return replace(
            question, id="", turn_id=turn.id, speaker=speaker_of(voice.model), content="", voice=voice,
            status=Status.FAILED,
        )  # fmt: skip

    # ── ending early

    def stop(self, reply_id: str | None) -> None:
        """Stops one reply, or all of them and those that would still come."""
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
        """The server goes down."""
        self._end(Ask.interrupt)

    def _end(self, early: Callable[[Ask], None]) -> None:
        self._end_early = self._end_early or early
        for ask in tuple(self._asks.values()):
            self._end_early(ask)

    @property
    def is_stopped(self) -> bool:
        return self._end_early is Ask.stop


def _has_read(reply: Message, brief: StepInstructions) -> bool:
    """Whether it was written from what is shown now: a ranking of other versions ranks something else."""
    return {one.message_id for one in reply.read_replies} == {shown.message.id for shown in brief.shown}


def _place(reply: Message) -> tuple[int, str]:
    assert reply.voice is not None
    return _place_of(reply.voice, reply.step)


def _place_of(voice: Voice, step: Step) -> tuple[int, str]:
    """A round has one synthesis, whoever was in the chair."""
    return (0 if step in _CLOSING else voice.seat, step)


def _is_heard_answer(reply: Message) -> bool:
    return reply.step is Step.ANSWER and was_heard(reply)


def _does_all(gathered: TurnInputs) -> bool:
    """An answer is asked for alone first, because others of its round may be retried in the same breath; what
    reads the others is asked for with all that it still lacks, unless somebody is at it."""
    target = gathered.replaced
    if target is None or not gathered.turn.purpose.starts_at_once:
        return True
    return target.step is not Step.ANSWER and not gathered.has_company


def _mode(gathered: TurnInputs) -> council.Mode:
    if gathered.turn.purpose is Purpose.SYNTHESIS:
        return council.SYNTHESIS
    if gathered.began.purpose is Purpose.SUMMARY:
        return council.SUMMARY
    mode = council.get(gathered.began.mode)
    is_closed_later = not mode.has_chair and gathered.replaced is not None and not _is_of_table(gathered)
    return council.SYNTHESIS if is_closed_later else mode


def _seated(gathered: TurnInputs) -> Sequence[Voice]:
    """Who sat there when the round was opened; in a seat that was asked again, whoever sits there now."""
    if gathered.asked is None:
        return gathered.turn.table
    replies = gathered.here.replies if gathered.here else ()
    now = {one.voice.seat: one.voice for one in replies if one.voice and one.step is Step.ANSWER}
    if _is_of_table(gathered):
        now |= {voice.seat: voice for voice in gathered.turn.table}
    return [now.get(voice.seat, voice) for voice in gathered.asked.table]


def _is_of_table(gathered: TurnInputs) -> bool:
    """Whether the reply that is asked for again is one of the table's, not the chair's."""
    return gathered.replaced is not None and gathered.replaced.step not in _CLOSING


def _chair(gathered: TurnInputs) -> Voice | None:
    turn: Turn = gathered.turn
    if gathered.asked is not None and gathered.replaced is not None and not _is_of_table(gathered):
        return turn.table[0]
    return turn.chair or gathered.began.chair
