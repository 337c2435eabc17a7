"""Wire protocol from the worker process to the server: frames, each with its length and its kind.

text* ─▶ outcome                                      extracting, comparing
contents ─▶ (entry ─▶ data* ─▶ spoilt?)* ─▶ outcome   unpacking
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
from enum import IntEnum
from typing import Any

_HEAD = struct.Struct(">IB")
LIMIT = 1 << 20
"""The maximum size of a frame in bytes."""
BLOCK = 256 << 10


class Frame(IntEnum):
    TEXT = 1
    ENTRY = 2
    DATA = 3
    OUTCOME = 4
    CONTENTS = 5
    """The unpacked size of an archive, before its entries."""
    SPOILT = 6
    """The entry sent last cannot be unpacked completely."""


class ProtocolError(Exception):
    """The connection ended, or sent bytes that are no frame."""


def send(pipe: int, kind: Frame, content: bytes) -> None:
    for start in range(0, len(content) or 1, LIMIT):
        part = content[start : start + LIMIT]
        _write(pipe, _HEAD.pack(len(part), kind) + part)


def send_json(pipe: int, kind: Frame, value: Any) -> None:
    send(pipe, kind, json.dumps(value).encode())


def _write(pipe: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(pipe, view) :]


class FrameReader:
    """Reads frames from a non-blocking socket; the caller closes the socket."""

    def __init__(self, source: socket.socket) -> None:
        self._source = source
        self._received = bytearray()

    async def next(self) -> tuple[Frame, bytes]:
        try:
            size, kind = _HEAD.unpack(await self._exactly(_HEAD.size))
            if size > LIMIT:
                raise ProtocolError
            return Frame(kind), await self._exactly(size)
        except (ConnectionError, ValueError):
            raise ProtocolError from None

    async def _exactly(self, size: int) -> bytes:
        loop = asyncio.get_running_loop()
        while len(self._received) < size:
            block = await loop.sock_recv(self._source, BLOCK)
            if not block:
                raise ProtocolError
            self._received += block
        content = bytes(self._received[:size])
        del self._received[:size]
        return content
