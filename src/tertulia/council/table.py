"""The table: the voices seated for a turn, and how a mode asks them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Protocol

from tertulia.core.briefs import ANSWER, Brief
from tertulia.core.messages import Message, Status
from tertulia.core.voices import Voice


class Table(Protocol):
    @property
    def voices(self) -> Sequence[Voice]: ...

    @property
    def chair(self) -> Voice:
        """Who writes the synthesis; may be one of the voices."""
        ...

    @property
    def said(self) -> Sequence[Message]:
        """What stands in the round already: answers, rebuttals and critiques, but no closing."""
        ...

    @property
    def reviews(self) -> Sequence[Message]:
        """The reviews that stand in the round already."""
        ...

    @property
    def wish(self) -> str:
        """The person's own words on what the synthesis should do; empty where they have none."""
        ...

    @property
    def can_outline(self) -> bool:
        """Whether the chair's model is able to give a synthesis as data."""
        ...

    async def ask(self, voice: Voice, brief: Brief = ANSWER) -> Message:
        """One voice answers; the message says how it ended and never raises for a voice that failed."""
        ...

    async def ask_all(
        self, voices: Sequence[Voice] | None = None, brief: Brief = ANSWER
    ) -> Sequence[Message]:
        """These voices, or all, at the same time; one that fails leaves the others alone."""
        ...

    async def current(self, replies: Sequence[Message]) -> Sequence[Message]:
        """The newest version of each of these: one that failed may have been retried meanwhile."""
        ...


async def ask_each(table: Table, asks: Iterable[tuple[Voice, Brief]]) -> Sequence[Message]:
    """Each voice its own brief, at the same time; one that fails leaves the others alone."""
    asked = await asyncio.gather(*(table.ask(voice, brief) for voice, brief in asks), return_exceptions=True)
    for one in asked:
        if isinstance(one, BaseException):
            raise one
    return [one for one in asked if isinstance(one, Message)]


def was_heard(reply: Message) -> bool:
    """Whether there is something to go on with: a reply that broke off still said something."""
    return bool(reply.content.strip()) and reply.status is not Status.FAILED
