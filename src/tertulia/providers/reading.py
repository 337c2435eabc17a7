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
from tertulia.providers.cleaning import Whole, quotable
from tertulia.providers.counting import estimated, size_bytes
from tertulia.providers.faults import Faults
from tertulia.providers.seam import End, Finish, ProviderFault, Source, Text, Thought
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
        self._needs_paragraph = False
        self._instead: str | None = None
        """What came in place of words, such as a call of a tool that the model was not given."""
        self._has_events = False
        self._usage: TokenCount | None = None
        self.finish: Finish | None = None
        self.reason: str | None = None
        self.is_early = False
        self.sources: tuple[Source, ...] = ()
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
            pieces += self.rest()
        return pieces if len(pieces) == 1 and pieces[0].text else _merged(pieces)

    def is_keep_alive(self, event: Event) -> bool:
        """Keeps a model alive that thinks in silence, and not one that fell silent in mid-sentence."""
        return event.name == self.keep_alive and self._has_spoken

    def rest(self) -> Words:
        """What was held back to see how it goes on, when nothing more comes."""
        return _merged([*self._held(), Thought(self._thought.rest()), Text(self._text.rest())])

    def end(self, prompt: Prompt) -> End:
        count = self.count(prompt)
        return End(self.finish or "stop", count, self.reason, self.is_early, self.sources)

    @property
    def has_spoken(self) -> bool:
        """Words came, and not only thoughts."""
        return self._has_spoken

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

    def _held(self) -> Words:
        """Words that a dialect has not passed on yet."""
        return []

    def _end_marker(self) -> Words:
        self.is_over = self.finish is not None
        return []

    # --- what a dialect says it with -----------------------------------------------------------------------

    def _says(self, text: str) -> Text:
        self._said_bytes += size_bytes(text)
        if self._needs_paragraph and text:
            text, self._needs_paragraph = "\n\n" + text, False
        self._has_spoken = self._has_spoken or bool(text)
        return Text(self._text.take(text))

    def _thinks(self, text: str) -> Thought:
        self._said_bytes += size_bytes(text)
        return Thought(self._thought.take(text))

    def _starts_paragraph(self) -> None:
        """What is said next does not belong to the sentence before it."""
        self._needs_paragraph = self._has_spoken

    def _finishes(self, finish: Finish, reason: object = None, *, is_early: bool = False) -> Words:
        """With the provider's reason where the answer was cut, or where it has no words."""
        rest = self.rest()
        self.finish = finish
        self.is_early = is_early
        told = reason if isinstance(reason, str) and reason else None
        if is_early or finish != "stop":
            self.reason = quotable(told) if told else None
        elif not self._has_spoken:
            self.reason = quotable(told or self._instead or "") or None
        return rest

    def _counts(self, count: TokenCount | None) -> None:
        if count is not None:
            self._usage = count if self._usage is None else _updated(self._usage, count)

    def _error(self, error: object) -> ProviderFault:
        return self._faults.error_object(error, has_begun=self._said_bytes > 0)

    def _meaning(self, data: str) -> Words:
        if data[0] == END_MARKER[0] and data.strip() == END_MARKER:
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


def _updated(known: TokenCount, told: TokenCount) -> TokenCount:
    """Told twice: what was sent is corrected, what was said is counted up and never taken back."""
    sent = told if told.input_tokens else known
    return TokenCount(
        sent.input_tokens,
        sent.cached_tokens,
        max(known.output_tokens, told.output_tokens),
        max(known.reasoning_tokens, told.reasoning_tokens),
        written_tokens=sent.written_tokens,
    )


def _merged(pieces: Words) -> Words:
    runs = ((kind, "".join(piece.text for piece in run)) for kind, run in groupby(pieces, type))
    return [kind(text) for kind, text in runs if text]
