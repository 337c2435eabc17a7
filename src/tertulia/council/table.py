"""The table: the voices seated for a turn, and how a mode asks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tertulia.core.messages import Message
from tertulia.core.voices import Voice


class Table(Protocol):
    @property
    def voices(self) -> Sequence[Voice]: ...

    async def ask(self, voice: Voice) -> Message:
        """One voice answers; the message says how it ended and never raises for a voice that failed."""
        ...

    async def ask_all(self) -> Sequence[Message]:
        """All voices answer at the same time; one that fails leaves the others alone."""
        ...
