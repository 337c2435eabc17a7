"""SSE decoder: parses server-sent events from chunks of bytes that may be split anywhere."""

from __future__ import annotations

from typing import NamedTuple

BOM = b"\xef\xbb\xbf"


class SseEvent(NamedTuple):
    name: str
    data: str


class LineTooLong(Exception):
    """A line, or an event of many lines, exceeds the limit."""


class SseDecoder:
    """Takes bytes and returns the complete events. Comments, ids and retry hints are dropped."""

    __slots__ = ("_data", "_limit", "_line", "_name", "_size", "_skips_newline", "_is_at_start")

    def __init__(self, line_limit: int) -> None:
        self._limit = line_limit
        self._line = bytearray()
        self._name = ""
        self._data: list[bytes] = []
        self._size = 0
        self._is_at_start = True
        self._skips_newline = False

    def feed(self, chunk: bytes) -> list[SseEvent]:
        if self._is_at_start:
            chunk = self._without_bom(chunk)
        if self._skips_newline and chunk:
            # The previous chunk ended in CR; this LF belongs to it.
            self._skips_newline = False
            if chunk[0] == 10:
                chunk = chunk[1:]
        lines = self._lines(chunk)
        events: list[SseEvent] = []
        for line in lines:
            if not line:
                if self._data:
                    events.append(self._event())
                self._name = ""
            else:
                self._field(line)
        return events

    def close(self) -> list[SseEvent]:
        """The event that was incomplete when the stream ended, if any."""
        if self._line:
            self._field(bytes(self._line))
            self._line.clear()
        return [self._event()] if self._data else []

    def _without_bom(self, chunk: bytes) -> bytes:
        start = bytes(self._line) + chunk
        self._line.clear()
        if len(start) < len(BOM) and BOM.startswith(start):
            self._line += start
            return b""
        self._is_at_start = False
        return start.removeprefix(BOM)

    def _lines(self, chunk: bytes) -> list[bytes]:
        if b"\r" not in chunk:
            lines = chunk.split(b"\n")
        else:
            self._skips_newline = chunk[-1] == 13
            lines = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        unfinished = lines.pop()
        if lines and self._line:
            lines[0] = bytes(self._line) + lines[0]
            self._line.clear()
        self._line += unfinished
        if len(self._line) > self._limit or any(len(line) > self._limit for line in lines):
            raise LineTooLong
        return lines

    def _field(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._add(line[6:] if line[5:6] == b" " else line[5:])
        elif line == b"data":
            self._add(b"")
        elif line.startswith(b"event:"):
            self._name = line[6:].decode("utf-8", "replace").strip()

    def _add(self, data: bytes) -> None:
        self._data.append(data)
        self._size += len(data)
        if self._size > self._limit:
            raise LineTooLong

    def _event(self) -> SseEvent:
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        event = SseEvent(self._name, data.decode("utf-8", "replace"))
        self._data.clear()
        self._size = 0
        self._name = ""
        return event
