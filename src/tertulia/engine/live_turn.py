"""Live turn: the state of a turn that runs or has just ended, and the log of its events.

The log is numbered. A watcher is a position in it, so that a slow reader costs no memory and many readers
share one text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tertulia.core.blind import anonymised_draft
from tertulia.core.turns import Draft, Turn
from tertulia.engine.turn_events import Delta, ReplyFinished, TurnEvent

FRAME_CHARS = 256 << 10
"""The most text that a reader far behind receives at once."""


class LiveReply:
    """The text of a reply while it is written."""

    __slots__ = ("_draft", "_text", "_thinking", "number", "waiting")

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._text = [draft.content] if draft.content else []
        self._thinking = [draft.thinking] if draft.thinking else []
        self.number = draft.number
        self.waiting = draft.waiting

    def add(self, text: str, is_thought: bool) -> int:
        """Appends text and returns the number of the delta."""
        (self._thinking if is_thought else self._text).append(text)
        self.number += 1
        return self.number

    @property
    def text(self) -> str:
        self._text = ["".join(self._text)]
        return self._text[0]

    @property
    def thinking(self) -> str:
        self._thinking = ["".join(self._thinking)]
        return self._thinking[0]

    def draft(self) -> Draft:
        return replace(
            self._draft, content=self.text, thinking=self.thinking, number=self.number, waiting=self.waiting
        )


@dataclass(slots=True)
class LiveTurn:
    turn: Turn
    log: list[TurnEvent] = field(default_factory=list)
    replies: dict[str, LiveReply] = field(default_factory=dict)
    """The replies that are being written, by id."""
    watchers: set[Callable[[], None]] = field(default_factory=set)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the last reply is stored."""
    mirror_id: str = ""
    """Empty on the node that runs the turn; elsewhere the name of this copy (node_relay.py)."""

    def after(self, number: int) -> Sequence[TurnEvent]:
        """The events after a number, up to FRAME_CHARS of text; a reader far behind asks again."""
        size, end = 0, number
        while end < len(self.log) and size < FRAME_CHARS:
            event = self.log[end]
            size += len(event.text) if isinstance(event, Delta) else 0
            end += 1
        return self.log[number:end]

    @property
    def number(self) -> int:
        return len(self.log)

    @property
    def name(self) -> str:
        """The name of this log. A mirror numbers its events itself, so no reader may continue one log by a
        number of another."""
        return f"{self.turn.id}-{self.mirror_id}" if self.mirror_id else self.turn.id

    @property
    def is_here(self) -> bool:
        """Whether this node runs the turn."""
        return not self.mirror_id

    @property
    def is_over(self) -> bool:
        return self.turn.state.is_over

    def drafts(self) -> tuple[Draft, ...]:
        """The running replies; without names if the turn is blind."""
        drafts = (reply.draft() for reply in self.replies.values())
        return tuple(anonymised_draft(draft) if self.turn.is_blind else draft for draft in drafts)

    def has_ended(self, reply_id: str) -> bool:
        """Whether the reply is stored as a message; deltas of another node may still arrive after that."""
        if reply_id in self.replies:
            return False
        return any(isinstance(event, ReplyFinished) and event.message.id == reply_id for event in self.log)

    def append(self, event: TurnEvent) -> None:
        self.log.append(event)
        for wake in self.watchers:
            wake()
