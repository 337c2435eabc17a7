"""Think tags: separates the thinking that a model writes in <think> tags at the start of its reply.

Qwen, DeepSeek R1 and others do so if the server does not separate it. The text may be split anywhere. Tags
later in the reply are part of its text.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

OPEN = "<think>"
CLOSE = "</think>"


class Part(NamedTuple):
    text: str
    is_thought: bool


class _State(Enum):
    START = auto()
    THOUGHT = auto()
    REPLY = auto()


class ThinkTags:
    __slots__ = ("_state", "_held_back", "_trims")

    def __init__(self) -> None:
        self._state = _State.START
        self._held_back = ""
        """Text that may be the beginning of a tag."""
        self._trims = False
        """Whether to drop empty lines, because they follow a tag."""

    def feed(self, text: str) -> list[Part]:
        match self._state:
            case _State.START:
                return self._read_start(self._held_back + text)
            case _State.THOUGHT:
                return self._read_thinking(self._held_back + text)
            case _State.REPLY:
                return self._part(text)

    def skip(self) -> list[Part]:
        """Stops looking for tags, because the thinking comes in a field of its own. Returns the text held
        back."""
        return self._read_reply(self._held_back) if self._state is _State.START else []

    def flush(self) -> list[Part]:
        """The text held back when the stream ends. Thinking without a closing tag stays thinking."""
        text, self._held_back = self._held_back, ""
        return self._part(text)

    def _read_start(self, text: str) -> list[Part]:
        begin = text.lstrip()
        if begin.startswith(OPEN):
            self._state, self._trims = _State.THOUGHT, True
            return self._read_thinking(begin.removeprefix(OPEN))
        if OPEN.startswith(begin):
            self._held_back = text
            return []
        return self._read_reply(text)

    def _read_thinking(self, text: str) -> list[Part]:
        thinking, tag, reply = text.partition(CLOSE)
        if tag:
            return [*self._part(thinking.rstrip()), *self._read_reply(reply, trims=True)]
        overlap = next((size for size in range(len(CLOSE) - 1, 0, -1) if text.endswith(CLOSE[:size])), 0)
        self._held_back = text[len(text) - overlap :]
        return self._part(text[: len(text) - overlap])

    def _read_reply(self, text: str, *, trims: bool = False) -> list[Part]:
        self._state, self._held_back, self._trims = _State.REPLY, "", trims
        return self._part(text)

    def _part(self, text: str) -> list[Part]:
        if self._trims:
            text = text.lstrip()
        if not text:
            return []
        self._trims = False
        return [Part(text, self._state is _State.THOUGHT)]
