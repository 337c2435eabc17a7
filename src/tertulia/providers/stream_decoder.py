"""Stream decoder: turns the events of one reply into text and thinking deltas.

Holds what all dialects share. Each dialect overrides `_decode` for its own events.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from typing import Any, ClassVar

from tertulia.core.models import TokenCount
from tertulia.core.prompts import Prompt
from tertulia.providers.errors import ErrorFactory
from tertulia.providers.interface import Completed, Finish, ProviderError, TextDelta, ThinkingDelta, WebSource
from tertulia.providers.sanitize import SurrogateJoiner, quotable
from tertulia.providers.sse import SseEvent
from tertulia.providers.tokens import estimated_usage, size_bytes

Deltas = list[TextDelta | ThinkingDelta]

PLAIN_EVENTS = frozenset({"", "message", "data", "error"})
"""Names that servers give to an event that needs no name."""
END_MARKER = "[DONE]"


class StreamDecoder:
    names: ClassVar[frozenset[str]] = PLAIN_EVENTS
    """The event names of the dialect. Events with other names are ignored."""
    keep_alive: ClassVar[str | None] = None
    """The name of an event that only keeps the connection open."""

    def __init__(self, errors: ErrorFactory) -> None:
        self._errors = errors
        self._text_joiner = SurrogateJoiner()
        self._thinking_joiner = SurrogateJoiner()
        self._output_bytes = 0
        self._has_text = False
        self._needs_paragraph = False
        self._non_text_output: str | None = None
        """The output that came instead of text, for example a call of a tool that the model was not given."""
        self._has_events = False
        self._usage: TokenCount | None = None
        self.finish: Finish | None = None
        self.reason: str | None = None
        self.is_early = False
        self.sources: tuple[WebSource, ...] = ()
        self.error: ProviderError | None = None
        """The error that ended the reply; the deltas before it are still valid."""
        self.is_over = False
        """True if nothing that may still arrive matters."""

    def decode(self, events: Iterable[SseEvent]) -> Deltas:
        """The deltas of these events. Neighbours of the same kind are joined."""
        deltas: Deltas = []
        try:
            for event in events:
                if event.name in self.names and event.data and not self.is_over:
                    deltas += self._decode_data(event.data)
        except ProviderError as error:
            self.error = error
            deltas += self.flush()
        return deltas if len(deltas) == 1 and deltas[0].text else _join_neighbours(deltas)

    def is_keep_alive(self, event: SseEvent) -> bool:
        """True for a keep-alive event after the first text. Before it, such an event counts as progress,
        because the model may think in silence."""
        return event.name == self.keep_alive and self._has_text

    def flush(self) -> Deltas:
        """The text that was held back, once no more events come."""
        return _join_neighbours(
            [
                *self._flush_dialect(),
                ThinkingDelta(self._thinking_joiner.flush()),
                TextDelta(self._text_joiner.flush()),
            ]
        )

    def completed(self, prompt: Prompt) -> Completed:
        count = self.count(prompt)
        return Completed(self.finish or "stop", count, self.reason, self.is_early, self.sources)

    @property
    def has_text(self) -> bool:
        """True if text has arrived, and not only thinking."""
        return self._has_text

    def must_be_finished(self) -> None:
        """Called at the end of the stream. Raises an error if the provider sent no finish reason."""
        if self.finish is None:
            raise self._errors.connection_lost() if self._has_events else self._errors.empty()

    def count(self, prompt: Prompt) -> TokenCount:
        """The provider's token count, else an estimate."""
        return self._usage or estimated_usage(prompt, self._output_bytes)

    # --- overridden by the dialects ------------------------------------------------------------------------

    def _decode(self, event: dict[str, Any]) -> Deltas:
        raise NotImplementedError

    def _flush_dialect(self) -> Deltas:
        """The text that the dialect itself has held back."""
        return []

    def _end_marker(self) -> Deltas:
        self.is_over = self.finish is not None
        return []

    # --- used by the dialects ------------------------------------------------------------------------------

    def _text_delta(self, text: str) -> TextDelta:
        self._output_bytes += size_bytes(text)
        if self._needs_paragraph and text:
            text, self._needs_paragraph = "\n\n" + text, False
        self._has_text = self._has_text or bool(text)
        return TextDelta(self._text_joiner.feed(text))

    def _thinking_delta(self, text: str) -> ThinkingDelta:
        self._output_bytes += size_bytes(text)
        return ThinkingDelta(self._thinking_joiner.feed(text))

    def _start_paragraph(self) -> None:
        """Separates the next text from the text before it with an empty line."""
        self._needs_paragraph = self._has_text

    def _finish(self, finish: Finish, reason: object = None, *, is_early: bool = False) -> Deltas:
        """Sets the finish reason. Keeps the provider's explanation if the reply was cut or has no text."""
        held_back = self.flush()
        self.finish = finish
        self.is_early = is_early
        explanation = reason if isinstance(reason, str) and reason else None
        if is_early or finish != "stop":
            self.reason = quotable(explanation) if explanation else None
        elif not self._has_text:
            self.reason = quotable(explanation or self._non_text_output or "") or None
        return held_back

    def _merge_usage(self, count: TokenCount | None) -> None:
        if count is not None:
            self._usage = count if self._usage is None else _merge_counts(self._usage, count)

    def _error(self, error: object) -> ProviderError:
        return self._errors.stream_error(error, has_begun=self._output_bytes > 0)

    def _decode_data(self, data: str) -> Deltas:
        if data[0] == END_MARKER[0] and data.strip() == END_MARKER:
            return self._end_marker()
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            raise self._errors.malformed(data) from None
        if not isinstance(event, dict):
            raise self._errors.malformed(data)
        self._has_events = True
        return self._decode(event)


def inside(value: object, *names: str) -> object:
    """The value under nested field names; None if one of them is missing."""
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _merge_counts(older: TokenCount, newer: TokenCount) -> TokenCount:
    """Merges a second count: the input is replaced by the newer figure, the output never decreases."""
    input_count = newer if newer.input_tokens else older
    return TokenCount(
        input_count.input_tokens,
        input_count.cached_tokens,
        max(older.output_tokens, newer.output_tokens),
        max(older.reasoning_tokens, newer.reasoning_tokens),
        written_tokens=input_count.written_tokens,
    )


def _join_neighbours(deltas: Deltas) -> Deltas:
    runs = ((kind, "".join(delta.text for delta in run)) for kind, run in groupby(deltas, type))
    return [kind(text) for kind, text in runs if text]
