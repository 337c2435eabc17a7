"""The way in: a gigabyte of text comes up over HTTP and can be found, in memory that does not grow with it.

    python -m benchmarks.indexing          48 MB
    python -m benchmarks.indexing 1024     so many megabytes

Files of 8 MB each, sent to a running server, read in its other process, cut, and written with their words;
no vectors. Then one large file goes up and comes down again. CPU and memory are those of all the server's
processes; pages they share are counted in each.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from benchmarks import client
from benchmarks.client import Answer, Caller
from benchmarks.figures import Figure, tell
from benchmarks.processes import Server
from benchmarks.search import Language
from benchmarks.stage import Person, Stage, stage

FILE_MB = 8
MEGABYTES = 48
LARGE_MB = 300
SAMPLE_S = 0.05
ENDED = ("indexed", "not_indexed", "failed")


async def main(megabytes: int) -> None:
    environ = {"TERTULIA_UPLOAD_LIMIT_MIB": str(LARGE_MB)}
    async with stage(["any"], environ=environ) as there:
        desk = await Desk.at(there)
        many = await _many(desk, there.tertulia, max(2, megabytes // FILE_MB))
        up, down = await _large(desk, there.tertulia)
    figures = [
        Figure(
            "CPU for each chunk, from the upload on", many.cpu_s / many.chunks * 1e6, "µs", 1_000, is_cpu=True
        ),
        Figure("memory at most", many.most_mb / many.first_mb, "× that of the first file", 1.5),
        Figure("memory at most", max(many.most_mb, up, down), "MB", 600),
    ]
    speed = many.megabytes / many.cpu_s
    rows = [
        (f"{many.megabytes} MB in files of {FILE_MB} MB", many.most_mb, many.chunks, speed, many.waited_ms),
        (f"one of {LARGE_MB} MB, up and its beginning found", up, "", "", ""),
        ("the same, down", down, "", "", ""),
    ]
    heads = ("MB of memory at most", "chunks", "MB per CPU s", "small request meanwhile, ms p95")
    tell("indexing", heads, rows, figures, there.pulse)


@dataclass(frozen=True, slots=True)
class Many:
    megabytes: int
    chunks: int
    cpu_s: float
    first_mb: float
    """At most while the first file was read and written."""
    most_mb: float
    waited_ms: float
    """For a small request meanwhile, of twenty the slowest."""


async def _many(desk: Desk, server: Server, count: int) -> Many:
    written = Texts(Language.spoken())
    async with watched(server) as first:
        began = server.cpu_s()
        await desk.until_found(await desk.send("0.md", written.next()))
    async with watched(server) as all_of_them:
        sent = [await desk.send(f"{number}.md", written.next()) for number in range(1, count)]
        for file_id in sent:
            await desk.until_found(file_id)
    spent = server.cpu_s() - began
    most = max(first.most_mb, all_of_them.most_mb)
    return Many(FILE_MB * count, desk.chunks, spent, first.most_mb, most, desk.waited_ms)


async def _large(desk: Desk, server: Server) -> tuple[float, float]:
    """The most memory while it comes up and is read, and while it goes down."""
    line = b"One line of a very long letter, which says the same as every other.\n"
    content = (line * (LARGE_MB * (1 << 20) // len(line) + 1))[: LARGE_MB << 20]
    async with watched(server) as up:
        file_id = await desk.send("large.txt", content)
        await desk.until_found(file_id)
    async with watched(server) as down:
        assert (await desk.read(file_id)).data.endswith(content[-1000:])
    return up.most_mb, down.most_mb


class Texts:
    """One after the other, each another."""

    def __init__(self, language: Language) -> None:
        self._chance = language.chance
        self._paragraphs = [language.text(110) for _ in range(2_000)]

    def next(self) -> bytes:
        parts: list[str] = []
        size = 0
        while size < FILE_MB << 20:
            parts.append(self._chance.choice(self._paragraphs))
            size += len(parts[-1]) + 2
        return "\n\n".join(parts).encode()


@dataclass(slots=True)
class Desk:
    """Someone who sends files and waits until they can be found."""

    person: Person
    port: int
    asking: Caller
    chunks: int = 0
    waits_ms: list[float] = field(default_factory=list)

    @classmethod
    async def at(cls, there: Stage) -> Desk:
        port = there.tertulia.port
        return cls(there.people[0], port, await Caller.connect(port))

    @property
    def _files(self) -> str:
        return f"/api/projects/{self.person.project_id}/files"

    async def send(self, path: str, content: bytes) -> str:
        where = f"{self._files}?path={path}"
        sending = await Caller.connect(self.port)  # the last one may be an hour old, and closed
        answer = await sending.ask(client.post_bytes(self.port, where, content, self.person.cookie))
        sending.close()
        assert answer.status == 201, answer.data
        file_id: str = answer.json()["items"][0]["id"]
        return file_id

    async def until_found(self, file_id: str) -> None:
        request = client.get(self.port, f"{self._files}/{file_id}/info", self.person.cookie)
        while (index := (await self._asked(request)).json()["index"])["state"] not in ENDED:  # noqa: ASYNC110 - nothing tells it here
            await asyncio.sleep(SAMPLE_S)
        assert index["state"] == "indexed", index
        self.chunks += index["chunks"]

    async def _asked(self, request: bytes) -> Answer:
        answer = await self.asking.ask(request)
        self.waits_ms.append(answer.whole_s * 1000)
        return answer

    @property
    def waited_ms(self) -> float:
        return sorted(self.waits_ms)[int(len(self.waits_ms) * 0.95)]

    async def read(self, file_id: str) -> Answer:
        return await self.asking.ask(client.get(self.port, f"{self._files}/{file_id}", self.person.cookie))


@dataclass(slots=True)
class Watch:
    server: Server
    most_mb: float = 0.0

    async def look(self) -> None:
        while True:
            with suppress(FileNotFoundError, ProcessLookupError):  # a child may end while it is looked at
                self.most_mb = max(self.most_mb, self.server.memory_mb())
            await asyncio.sleep(SAMPLE_S)


@asynccontextmanager
async def watched(server: Server) -> AsyncIterator[Watch]:
    """The most memory of the server's processes during the block."""
    watch = Watch(server)
    looking = asyncio.create_task(watch.look())
    try:
        yield watch
    finally:
        looking.cancel()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else MEGABYTES))
