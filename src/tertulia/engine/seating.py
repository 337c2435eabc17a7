"""The table of a running turn: seats the voices and asks them.

A turn may come back to a round that was answered before: to retry a reply, to go on with one, to add a
synthesis. Its mode then runs again over the same table. What stands in the round already is not asked for
again, so the mode goes on where it had stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from tertulia import council
from tertulia.core.briefs import ANSWER, Brief
from tertulia.core.messages import Message, Status, Step, speaker_of
from tertulia.core.turns import Purpose, Turn
from tertulia.core.voices import Voice
from tertulia.council.table import was_heard
from tertulia.engine.ask import Ask
from tertulia.engine.gather import Gathered
from tertulia.engine.live import LiveTurn
from tertulia.engine.means import Means

_CLOSING = (Step.SYNTHESIS, Step.OUTLINE)


class Adjourned(Exception):
    """The turn was stopped, and what its mode would still ask for is not asked."""


class Seating:
    """What a mode talks to."""

    def __init__(self, means: Means, live: LiveTurn, gathered: Gathered) -> None:
        self._means = means
        self._live = live
        self._gathered = gathered
        self._asks: dict[str, Ask] = {}
        self._end_early: Callable[[Ask], None] | None = None
        self.replies: list[Message] = []
        """Those of this turn."""
        self._standing = {_place(reply): reply for reply in gathered.here.replies} if gathered.here else {}
        """What the round holds already, by who said it in which step."""
        self.mode = _mode(gathered)
        self.voices: Sequence[Voice] = _seated(gathered)
        self._named = _chair(gathered)
        self.wish = gathered.turn.brief or gathered.began.brief

    @property
    def chair(self) -> Voice:
        """Whom a person named; otherwise the first who was heard, so that one failure does not take two."""
        answers = (*self._standing.values(), *self.replies)
        heard = {one.voice for one in answers if one.step is Step.ANSWER and was_heard(one)}
        return self._named or next((voice for voice in self.voices if voice in heard), self.voices[0])

    @property
    def said(self) -> Sequence[Message]:
        here = self._gathered.here
        unsaid = (*_CLOSING, Step.REVIEW)
        return [reply for reply in here.replies if reply.step not in unsaid] if here else []

    @property
    def can_outline(self) -> bool:
        model = self._means.providers.find(self.chair.model)
        return model is not None and not model.is_demo

    # ── asking

    async def ask(self, voice: Voice, brief: Brief = ANSWER) -> Message:
        standing = self._standing.get(_place_of(voice, brief.step))
        if standing is not None and self._stands(standing):
            return standing
        if standing is None and self._has_left(brief):
            return self._absent(voice)
        if self._end_early and self.replies:
            raise Adjourned
        return await self._ask_now(voice, brief, standing)

    async def _ask_now(self, voice: Voice, brief: Brief, replaced: Message | None) -> Message:
        ask = Ask(self._means, self._live, self._gathered, voice, brief, replaced)
        self._asks[ask.id] = ask
        if self._end_early:
            self._end_early(ask)
        try:
            message = await ask.run()
        finally:
            del self._asks[ask.id]
        self.replies.append(message)
        return message

    async def ask_all(
        self, voices: Sequence[Voice] | None = None, brief: Brief = ANSWER
    ) -> Sequence[Message]:
        """Whatever happens to one, the others are heard to their end."""
        asks = [self.ask(voice, brief) for voice in (self.voices if voices is None else voices)]
        asked = await asyncio.gather(*asks, return_exceptions=True)
        for one in asked:
            if isinstance(one, BaseException):
                raise one
        return [one for one in asked if isinstance(one, Message)]

    # ── coming back to a round

    def _stands(self, reply: Message) -> bool:
        """Not the one that is tried again, nor what was made of it, nor a later step that said nothing."""
        target = self._gathered.replaced
        if target is not None and reply.id == target.id:
            return False
        is_closing = reply.step in _CLOSING
        if self._gathered.turn.purpose is Purpose.SYNTHESIS and is_closing:
            return False
        if target is not None and target.step is Step.SYNTHESIS and reply.step is Step.OUTLINE:
            return False
        return reply.step is Step.ANSWER or was_heard(reply)

    def _has_left(self, brief: Brief) -> bool:
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

    def is_speaking(self, reply_id: str | None) -> bool:
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


def _place(reply: Message) -> tuple[int, str]:
    assert reply.voice is not None
    return _place_of(reply.voice, reply.step)


def _place_of(voice: Voice, step: Step) -> tuple[int, str]:
    """A round has one synthesis, whoever was in the chair."""
    return (0 if step in _CLOSING else voice.seat, step)


def _mode(gathered: Gathered) -> council.Mode:
    if gathered.turn.purpose is Purpose.SYNTHESIS:
        return council.SYNTHESIS
    if gathered.began.purpose is Purpose.SUMMARY:
        return council.SUMMARY
    mode = council.get(gathered.began.mode)
    is_closed_later = not mode.has_chair and gathered.replaced is not None and not _is_of_table(gathered)
    return council.SYNTHESIS if is_closed_later else mode


def _seated(gathered: Gathered) -> Sequence[Voice]:
    """Who sat there when the round was opened; in the seat that is asked again, whoever sits there now."""
    if gathered.asked is None:
        return gathered.turn.table
    now = {voice.seat: voice for voice in gathered.turn.table} if _is_of_table(gathered) else {}
    return [now.get(voice.seat, voice) for voice in gathered.asked.table]


def _is_of_table(gathered: Gathered) -> bool:
    """Whether the reply that is asked for again is one of the table's, not the chair's."""
    return gathered.replaced is not None and gathered.replaced.step not in _CLOSING


def _chair(gathered: Gathered) -> Voice | None:
    turn: Turn = gathered.turn
    if gathered.asked is not None and gathered.replaced is not None and not _is_of_table(gathered):
        return turn.table[0]
    return turn.chair or gathered.began.chair
