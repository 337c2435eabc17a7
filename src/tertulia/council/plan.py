"""Turn plan: the mode and the voices of a turn, and what is left to ask in a round that has replies already.

A turn may come back to a round: to retry a reply, to continue one, to add a synthesis. Its mode then runs
again over the same table, and each reply that the plan allows to reuse is not asked for again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from tertulia import council
from tertulia.core.messages import Message, Round, Status, Step, speaker_of
from tertulia.core.step_instructions import ShownReply, StepInstructions
from tertulia.core.turns import Purpose, Turn
from tertulia.core.voices import Voice
from tertulia.council.table import has_usable_text

Slot = tuple[int, Step]
"""The place of a reply in its round: the seat and the step. The chair has seat 0 in its steps."""

_CLOSING = (Step.SYNTHESIS, Step.OUTLINE)


@dataclass(frozen=True, slots=True)
class TurnPlan:
    turn: Turn
    opening_turn: Turn | None = None
    """The turn that opened the round, if this is a later one."""
    here: Round | None = None
    """The round when this turn started."""
    target: Message | None = None
    """The reply that this turn retries or continues."""
    has_company: bool = False
    """Whether other turns are answering the round at the same time."""

    # ── the mode and its voices

    @property
    def mode(self) -> council.Mode:
        if self.turn.purpose is Purpose.SYNTHESIS:
            return council.SYNTHESIS
        if self._first.purpose is Purpose.SUMMARY:
            return council.SUMMARY
        mode = council.get(self._first.mode)
        is_added_synthesis = not mode.has_chair and self.target is not None and not self._is_for_table
        return council.SYNTHESIS if is_added_synthesis else mode

    @property
    def voices(self) -> Sequence[Voice]:
        """The table that opened the round, with the voices that have replaced others in their seats."""
        if self.opening_turn is None:
            return self.turn.table
        replies = self.here.replies if self.here else ()
        answered = (reply.voice for reply in replies if reply.step is Step.ANSWER)
        by_seat = {voice.seat: voice for voice in answered if voice}
        if self._is_for_table:
            by_seat |= {voice.seat: voice for voice in self.turn.table}
        return [by_seat.get(voice.seat, voice) for voice in self.opening_turn.table]

    def chair(self, replies: Sequence[Message]) -> Voice:
        """The voice that a person named, or else the first one whose answer has text."""
        if (named := self._named_chair) is not None:
            return named
        answered = {
            reply.voice.seat: reply.voice
            for reply in replies
            if reply.voice and reply.step is Step.ANSWER and has_usable_text(reply)
        }
        voices = self.voices
        return next((answered[voice.seat] for voice in voices if voice.seat in answered), voices[0])

    @property
    def brief(self) -> str:
        """The person's instructions for the synthesis."""
        return self.turn.brief or self._first.brief

    @property
    def _named_chair(self) -> Voice | None:
        if self.opening_turn is not None and self.target is not None and not self._is_for_table:
            return self.turn.table[0]
        return self.turn.chair or self._first.chair

    @property
    def _first(self) -> Turn:
        """The turn whose mode this one follows."""
        return self.opening_turn or self.turn

    @property
    def _is_for_table(self) -> bool:
        """Whether the target was written by a voice of the table, not by the chair."""
        return self.target is not None and self.target.step not in _CLOSING

    # ── what is asked

    @property
    def runs_later_steps(self) -> bool:
        """Whether the turn also runs the steps after its target.

        The retry of an answer runs only that answer, because other answers of the round may be retried at the
        same time. The retry of a later step also runs all missing steps of the round, unless another turn is
        working on the round.
        """
        if self.target is None or not self.turn.purpose.starts_at_once:
            return True
        return self.target.step is not Step.ANSWER and not self.has_company

    def is_target(self, standing: Message | None, step: StepInstructions) -> bool:
        """Whether this step writes the reply that the turn retries; an outline belongs to its synthesis."""
        if self.target is None:
            return False
        is_its_outline = step.step is Step.OUTLINE and self.target.step is Step.SYNTHESIS
        return is_its_outline or (standing is not None and standing.id == self.target.id)

    def can_reuse(self, reply: Message, step: StepInstructions, written_ids: Collection[str]) -> bool:
        """Whether a reply of the round is good for this step.

        The target and what was made of it are asked for again, and so is a later step without text.
        `written_ids` are the replies that this turn has written itself.
        """
        if reply.id in written_ids:
            return True
        if self.target is not None and reply.id == self.target.id:
            return False
        is_synthesis_retried = self.target is not None and self.target.step is Step.SYNTHESIS
        if is_synthesis_retried and reply.step is Step.REVIEW:
            return has_usable_text(reply) and _has_read(reply, step)
        if self.turn.purpose is Purpose.SYNTHESIS and reply.step in _CLOSING:
            return False
        if is_synthesis_retried and reply.step is Step.OUTLINE:
            return False
        return reply.step is Step.ANSWER or has_usable_text(reply)

    def was_deleted(self, step: StepInstructions) -> bool:
        """Whether a missing reply was deleted by a person: in a later turn every voice has answered once."""
        return self.opening_turn is not None and step.step is Step.ANSWER and self.mode.asks_at_once

    def as_begun(self, step: StepInstructions, replaced: Message | None) -> StepInstructions:
        """The step as its voice read it first, if its reply is continued: the same replies and names."""
        target = self.target
        is_continued = self.turn.purpose is Purpose.CONTINUE and replaced == target
        if not is_continued or self.here is None or target is None or not target.read_replies:
            return step
        by_id = {message.id: message for message in self.here.messages}
        shown = (
            ShownReply(read.label or read.name, by_id[read.message_id])
            for read in target.read_replies
            if read.message_id in by_id
        )
        return replace(step, shown=tuple(shown))

    def partial_reply(self, replaced: Message | None) -> str:
        """The text that a continued reply begins with; empty for every other one."""
        target = self.target
        is_continued = self.turn.purpose is Purpose.CONTINUE and replaced == target
        return target.content if is_continued and target else ""

    def may_go_on(self, *, has_left: bool) -> bool:
        """Whether the mode can have more to ask after this turn, of what other turns have written."""
        return has_left or self.mode.has_chair or not self.mode.asks_at_once


def slot(voice: Voice, step: Step) -> Slot:
    """A round has one synthesis, whichever voice is in the chair."""
    return (0 if step in _CLOSING else voice.seat, step)


def slot_of(reply: Message) -> Slot:
    assert reply.voice is not None
    return slot(reply.voice, reply.step)


def is_closing(reply: Message) -> bool:
    """Whether the reply is the chair's."""
    return reply.step in _CLOSING


def placeholder(question: Message, turn: Turn, voice: Voice) -> Message:
    """A failed reply without text, in the place of one that is not asked for."""
    return replace(
        question, id="", turn_id=turn.id, speaker=speaker_of(voice.model), content="", voice=voice,
        status=Status.FAILED,
    )  # fmt: skip


def _has_read(reply: Message, step: StepInstructions) -> bool:
    """Whether the reply was written from the replies shown now; a ranking of other versions is no good."""
    return {read.message_id for read in reply.read_replies} == {shown.message.id for shown in step.shown}
