"""A Tertulia without a server: a database, an account and an embedder, filled with a set and asked.

TERTULIA_HOME says where the weights are.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from benchmarks.public_sets.remembering import Remembering
from tertulia import settings
from tertulia.app import new_id, now_ms
from tertulia.core.chunks import Filters, Location, Source
from tertulia.core.files import Content, ProjectFile
from tertulia.core.users import Actor, ServerRole
from tertulia.library import rank_fusion
from tertulia.library.chunk import LINES
from tertulia.library.embedders import LocalEmbedder
from tertulia.library.index import embed_due, of_file
from tertulia.library.search import SearchIndex, SearchMode, SearchQuery, find
from tertulia.store import chunks, files, projects, retrieval, users
from tertulia.store.database import Database, Tx
from tertulia.store.sql import sql

SEED = 1
PHRASE = "phrase"
"""The whole question in quotation marks: the baseline to stay away from."""
FILES, TALK = Filters(exclude_conversations=True), Filters(exclude_files=True)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Wish:
    """What the one who runs it wants to know."""

    has_meaning: bool = True
    sample: int | None = None
    only: tuple[str, ...] = ()

    def some(self, asked: Sequence[T]) -> list[T]:
        """All questions, or a sample of them that is always the same."""
        if self.sample is None or self.sample >= len(asked):
            return list(asked)
        return random.Random(SEED).sample(asked, self.sample)

    @property
    def methods(self) -> tuple[str, ...]:
        with_vectors = (SearchMode.MEANING, SearchMode.HYBRID) if self.has_meaning else ()
        return (PHRASE, SearchMode.KEYWORD, *with_vectors)


@dataclass(frozen=True, slots=True)
class Answer:
    source_id: str
    title: str
    location: Location
    token_count: int


@dataclass
class Bench:
    library: SearchIndex
    actor: Actor
    wish: Wish
    _spent: list[float] = field(default_factory=list)

    def write(self, work: Callable[[Tx], T]) -> T:
        return self.library.db.write_now(work)

    def project(self, name: str) -> str:
        return self.write(lambda tx: projects.add(tx, self.actor, name)).id

    def add_files(self, project_id: str, texts: Iterable[tuple[str, str]]) -> None:
        """Paths and texts."""

        def add(tx: Tx, batch: Sequence[tuple[str, str]]) -> None:
            for path, written in batch:
                file = self._file(tx, project_id, path, written)
                chunks.add_to_file(tx, file.id, project_id, 0, tuple(of_file(file, written, LINES)))

        waiting = list(texts)
        for start in range(0, len(waiting), 200):
            self.write(lambda tx, start=start: add(tx, waiting[start : start + 200]))  # type: ignore[misc]

    def _file(self, tx: Tx, project_id: str, path: str, written: str) -> ProjectFile:
        content = Content(hashlib.sha256(written.encode()).hexdigest(), len(written), "text/plain")
        tx.execute(
            sql(
                "INSERT INTO blobs (hash, size_bytes, keeping, used_at, content) "
                "VALUES (:hash, 0, 'row', 0, NULL) ON CONFLICT DO NOTHING"
            ),
            hash=content.hash,
        )
        return files.put(tx, self.actor, project_id, path, content)

    async def ready(self) -> None:
        """Every chunk has its vector."""
        began, done = time.monotonic(), 0
        while self.wish.has_meaning and (due := await embed_due(self.library, 64)):
            done += len(due)
            if done % 3200 == 0:
                speed = done / (time.monotonic() - began)
                print(f"  {done} vectors, {speed:.0f} a second", file=sys.stderr, flush=True)

    async def ask(
        self, project_id: str, question: str, method: str, limit: int, filters: Filters = FILES
    ) -> tuple[Answer, ...]:
        began = time.process_time()
        if method == PHRASE:
            found = await self._phrase(project_id, question, limit, filters)
        else:
            found = await self.found(
                project_id, question, SearchMode(method), limit, filters, SearchQuery.ALL
            )
        self._spent.append((time.process_time() - began) * 1000)
        return found

    async def found(
        self,
        project_id: str,
        question: str,
        mode: SearchMode,
        limit: int,
        filters: Filters,
        wanted: SearchQuery,
    ) -> tuple[Answer, ...]:
        answer = await find(
            self.library, self.actor, [project_id], question, filters, limit, mode, purpose=wanted
        )
        return tuple(Answer(hit.source_id, hit.title, hit.location, hit.token_count) for hit in answer.hits)

    async def _phrase(
        self, project_id: str, question: str, limit: int, filters: Filters
    ) -> tuple[Answer, ...]:
        """All its words, one after the other, as they stand in the question."""
        source = Source.MESSAGE if filters.exclude_files else Source.FILE

        def look(tx: Tx) -> list[chunks.FoundChunk]:
            scored = retrieval.by_words(
                tx, [project_id], source, [question], rank_fusion.WEIGHTS[source], limit
            )
            found = chunks.get_many(tx, self.actor, [one.number for one in scored])
            return [found[one.number] for one in scored]

        return tuple(
            Answer(one.chunk.source_id, one.title, one.chunk.location, one.chunk.token_count)
            for one in await self.library.db.read(look)
        )

    def took_ms(self) -> float:
        """The median question since this was last asked."""
        spent, self._spent = sorted(self._spent), []
        return spent[len(spent) // 2] if spent else 0.0


@asynccontextmanager
async def bench(wish: Wish) -> AsyncIterator[Bench]:
    embedder = Remembering(LocalEmbedder(settings.read(os.environ).home, os.environ))
    with tempfile.TemporaryDirectory() as folder:
        db = Database.open(f"sqlite:///{folder}/bench.db", clock=now_ms, new_id=new_id)
        user = db.write_now(lambda tx: users.add(tx, "Reader", "reader@example.org", "", ServerRole.MEMBER))
        try:
            yield Bench(SearchIndex(db, embedder), Actor(user.id, ServerRole.MEMBER), wish)
        finally:
            await embedder.close()
            db.close()
