"""Think tags: a thought that a model writes into its reply, in <think> tags before the first word.

Qwen, DeepSeek R1 and others do so where the server does not take the tags apart. Text arrives in any pieces;
tags further on in a reply are part of it.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

OPEN = "<think>"
CLOSE = "</think>"


class Part(NamedTuple):
    text: str
    is_thought: bool


class _At(Enum):
    START = auto()
    THOUGHT = auto()
    REPLY = auto()


class ThinkTags:
    __slots__ = ("_at", "_held", "_trims")

    def __init__(self) -> None:
        self._at = _At.START
        self._held = ""
        """May be the beginning of a tag."""
        self._trims = False
        """The empty lines after a tag belong to the tag."""

    def take(self, text: str) -> list[Part]:
        match self._at:
            case _At.START:
                return self._start(self._held + text)
            case _At.THOUGHT:
                return self._think(self._held + text)
            case _At.REPLY:
                return self._part(text)

    def skip(self) -> list[Part]:
        """The thought comes in a field of its own, so tags in the text are only text."""
        return self._reply(self._held) if self._at is _At.START else []

    def rest(self) -> list[Part]:
        """What was held back when nothing more comes; a thought that was never closed stays a thought."""
        held, self._held = self._held, ""
        return self._part(held)

    def _start(self, text: str) -> list[Part]:
        begin = text.lstrip()
        if begin.startswith(OPEN):
            self._at, self._trims = _At.THOUGHT, True
            return self._think(begin.removeprefix(OPEN))
        if OPEN.startswith(begin):
            self._held = text
            return []
        return self._reply(text)

    def _think(self, text: str) -> list[Part]:
        thought, tag, reply = text.partition(CLOSE)
        if tag:
            return [*self._part(thought.rstrip()), *self._reply(reply, trims=True)]
        kept = next((size for size in range(len(CLOSE) - 1, 0, -1) if text.endswith(CLOSE[:size])), 0)
        self._held = text[len(text) - kept :]
        return self._part(text[: len(text) - kept])

    def _reply(self, text: str, *, trims: bool = False) -> list[Part]:
        self._at, self._held, self._trims = _At.REPLY, "", trims
        return self._part(text)

    def _part(self, text: str) -> list[Part]:
        if self._trims:
            text = text.lstrip()
        if not text:
            return []
        self._trims = False
        return [Part(text, self._at is _At.THOUGHT)]
