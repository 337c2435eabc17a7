"""Reading: an answer as far as it was read; events go in, pieces come out.

What all dialects have in common. Each says in `_decode` what one of its events means.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from typing import Any, ClassVar

from tertulia.core.models import TokenCount
from tertulia.core.prompts import Prompt
from tertulia.providers.cleaning import Whole
from tertulia.providers.counting import estimated, size_bytes
from tertulia.providers.faults import Faults
from tertulia.providers.seam import Finish, ProviderFault, Text, Thought
from tertulia.providers.sse import Event

Words = list[Text | Thought]

PLAIN_EVENTS = frozenset({"", "message", "data", "error"})
"""What servers call an event that needs no name."""
END_MARKER = "[DONE]"


class Reading:
    names: ClassVar[frozenset[str]] = PLAIN_EVENTS
    """Event names of the dialect; anything else a server calls an event is not for us."""
    keep_alive: ClassVar[str | None] = None
    """The name of an event that only says the line is open."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._text = Whole()
        self._thought = Whole()
        self._said_bytes = 0
        self._has_spoken = False
        self._has_events = False
        self._usage: TokenCount | None = None
        self.finish: Finish | None = None
        self.fault: ProviderFault | None = None
        """What ended the answer badly; the pieces before it are still good."""
        self.is_over = False
        """Nothing that may still come is of interest."""

    def take(self, events: Iterable[Event]) -> Words:
        """The pieces of these events; neighbours of one kind become one."""
        pieces: Words = []
        try:
            for event in events:
                if event.name in self.names and event.data and not self.is_over:
                    pieces += self._meaning(event.data)
        except ProviderFault as fault:
            self.fault = fault
        return pieces if len(pieces) == 1 and pieces[0].text else _merged(pieces)

    def is_keep_alive(self, event: Event) -> bool:
        """Keeps a model alive that thinks in silence, and not one that fell silent in mid-sentence."""
        return event.name == self.keep_alive and self._has_spoken

    def close(self) -> None:
        """The stream has ended; an answer without a last word is cut, whatever arrived."""
        if self.finish is None:
            raise self._faults.cut() if self._has_events else self._faults.empty()

    def count(self, prompt: Prompt) -> TokenCount:
        """As the provider counted, else estimated."""
        return self._usage or estimated(prompt, self._said_bytes)

    # --- what a dialect says -------------------------------------------------------------------------------

    def _decode(self, event: dict[str, Any]) -> Words:
        raise NotImplementedError

    def _end_marker(self) -> Words:
        self.is_over = self.finish is not None
        return []

    # --- what a dialect says it with -----------------------------------------------------------------------

    def _says(self, text: str) -> Text:
        self._said_bytes += size_bytes(text)
        self._has_spoken = True
        return Text(self._text.take(text))

    def _thinks(self, text: str) -> Thought:
        self._said_bytes += size_bytes(text)
        return Thought(self._thought.take(text))

    def _finishes(self, finish: Finish) -> Words:
        self.finish = finish
        return [Thought(self._thought.rest()), Text(self._text.rest())]

    def _counts(self, count: TokenCount | None) -> None:
        if count is not None:
            self._usage = count if self._usage is None else _larger(self._usage, count)

    def _error(self, error: object) -> ProviderFault:
        return self._faults.error_object(error, has_begun=self._said_bytes > 0)

    def _meaning(self, data: str) -> Words:
        if data == END_MARKER:
            return self._end_marker()
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            raise self._faults.malformed(data) from None
        if not isinstance(event, dict):
            raise self._faults.malformed(data)
        self._has_events = True
        return self._decode(event)


def inside(value: object, *names: str) -> object:
    """What is found under these names, one inside the other; None where the way ends."""
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _larger(one: TokenCount, other: TokenCount) -> TokenCount:
    """Told twice: some providers count up as they go, and no later figure takes tokens back."""
    return TokenCount(
        max(one.input_tokens, other.input_tokens),
        max(one.cached_tokens, other.cached_tokens),
        max(one.output_tokens, other.output_tokens),
        max(one.reasoning_tokens, other.reasoning_tokens),
        written_tokens=max(one.written_tokens, other.written_tokens),
    )


def _merged(pieces: Words) -> Words:
    runs = ((kind, "".join(piece.text for piece in run)) for kind, run in groupby(pieces, type))
    return [kind(text) for kind, text in runs if text]
