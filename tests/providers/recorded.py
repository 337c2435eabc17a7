"""Recorded provider responses, and a loopback server that replays them; see recordings/README.md."""

import asyncio
import gzip
import json
import random
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from tertulia.providers.catalogue import Dialect

HOME = Path(__file__).parent / "recordings"
MAX_SPLITS = 48


@dataclass(frozen=True)
class Recording:
    dialect: Dialect
    id: str
    status: int
    headers: Mapping[str, str]
    request: Mapping[str, Any]
    body: str
    expected: Mapping[str, Any]

    @property
    def has_succeeded(self) -> bool:
        return 200 <= self.status < 300

    def with_lines_ending_in(self, end: str) -> bytes:
        return self.body.replace("\r\n", "\n").replace("\n", end).encode()

    def forms(self) -> Iterator[tuple[bytes, ...]]:
        """The body as recorded, and with each line end, split at random places that are the same in every
        run."""
        yield (self.body.encode(),)
        for end in ("\n", "\r\n"):
            yield pieces(self.with_lines_ending_in(end), random.Random(f"{self.id} {end!r}"))


def pieces(body: bytes, random_source: random.Random) -> tuple[bytes, ...]:
    """Splits the body at random places, even inside lines, characters and line ends."""
    splits = sorted(random_source.sample(range(1, len(body)), min(MAX_SPLITS, len(body) - 1)))
    return tuple(body[start:end] for start, end in zip([0, *splits], [*splits, len(body)], strict=True))


def recordings() -> list[Recording]:
    return [recording for dialect in get_args(Dialect) for recording in _load(dialect)]


def _load(dialect: Dialect) -> Iterator[Recording]:
    with gzip.open(HOME / f"{dialect}.jsonl.gz", "rt", encoding="utf-8", newline="\n") as lines:
        for row in map(json.loads, lines):
            fields = ("id", "status", "headers", "request", "body", "expected")
            yield Recording(dialect, *(row[name] for name in fields))


@asynccontextmanager
async def played(recording: Recording, form: tuple[bytes, ...]) -> AsyncIterator[str]:
    """The address of a server that sends this response piece by piece."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.partition(b":")[2]))
        content_type = recording.headers.get("content-type", "text/event-stream")
        writer.write(f"HTTP/1.1 {recording.status} Recorded\r\nContent-Type: {content_type}\r\n".encode())
        writer.write(b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
        for piece in form:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(0)
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await server.wait_closed()
