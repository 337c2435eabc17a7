"""The table: the voices of a turn, and the methods that a mode calls to ask them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Protocol

from tertulia.core.messages import Message, Status
from tertulia.core.step_instructions import ANSWER, StepInstructions
from tertulia.core.voices import Voice


class Table(Protocol):
    @property
    def voices(self) -> Sequence[Voice]: ...

    @property
    def chair(self) -> Voice:
        """The voice that writes the synthesis; may be one of the voices."""
        ...

    @property
    def earlier_replies(self) -> Sequence[Message]:
        """The replies that the round already has: answers, rebuttals and critiques, but no synthesis."""
        ...

    @property
    def earlier_reviews(self) -> Sequence[Message]:
        """The reviews that the round already has."""
        ...

    @property
    def brief(self) -> str:
        """The person's own instructions for the synthesis; empty if there are none."""
        ...

    @property
    def can_outline(self) -> bool:
        """Whether the chair's model can write a synthesis as JSON."""
        ...

    async def ask(self, voice: Voice, step: StepInstructions = ANSWER) -> Message:
        """Asks one voice. A voice that fails raises no error: its message says how it ended."""
        ...

    async def ask_all(
        self, voices: Sequence[Voice] | None = None, step: StepInstructions = ANSWER
    ) -> Sequence[Message]:
        """Asks these voices, or all, at the same time; a failure does not affect the others."""
        ...

    async def current(self, replies: Sequence[Message]) -> Sequence[Message]:
        """The newest version of each reply: a failed one may have been retried in the meantime."""
        ...


async def ask_each(table: Table, asks: Iterable[tuple[Voice, StepInstructions]]) -> Sequence[Message]:
    """Asks each voice with instructions of its own, at the same time; a failure does not affect the
    others."""
    results = await asyncio.gather(*(table.ask(voice, step) for voice, step in asks), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if isinstance(result, Message)]


def has_usable_text(reply: Message) -> bool:
    """Whether the reply has text to work with; the text of an interrupted reply counts too."""
    return bool(reply.content.strip()) and reply.status is not Status.FAILED
