"""Retrieval quality: public questions with known answers, asked of the same store and library people use.

    python -m benchmarks.retrieval                     all sets: a phrase, words, meaning and both
    python -m benchmarks.retrieval locomo scifact      some of them
    python -m benchmarks.retrieval --words swelite     without vectors: minutes instead of an hour
    python -m benchmarks.retrieval --sample 100        that many questions of each set, always the same ones
    python -m benchmarks.retrieval swelite --only flask,requests   issues of these projects

The sets are not part of the project: they are read from ../shared/data, or from TERTULIA_DATA. Vectors are
kept by the text they were made from in TERTULIA_CACHE: a run that was ended goes on where it was, and
the next one takes minutes. TERTULIA_HOME says where the weights are.

The phrase, the whole question in quotation marks, is the baseline to stay away from.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import csv
import gzip
import hashlib
import json
import math
import os
import random
import sqlite3
import sys
import tempfile
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import text

from benchmarks.figures import Figure, tell
from tertulia import settings
from tertulia.app import new_id, now_ms
from tertulia.core.chunks import Filters, Location, Source
from tertulia.core.conversations import Visibility
from tertulia.core.files import Content, ProjectFile
from tertulia.core.messages import Message, Role, Status
from tertulia.core.users import Actor, Standing
from tertulia.library import fuse
from tertulia.library.chunk import LINES
from tertulia.library.embed import Billed, Embedder, LocalEmbedder, for_nothing
from tertulia.library.index import embed_due, of_file, of_messages, read_rounds, write_rounds
from tertulia.library.search import Library, Mode, find
from tertulia.store import chunks, conversations, files, messages, projects, retrieval, users
from tertulia.store.database import Database, Tx

DATA = Path(os.environ.get("TERTULIA_DATA", "../shared/data"))
CACHE = Path(os.environ.get("TERTULIA_CACHE", Path(tempfile.gettempdir()) / "tertulia-vectors.db"))
SEED = 1
PHRASE = "phrase"
BARS = {
    "locomo": ("recall@10", 0.77, 0.81),
    "scifact": ("nDCG@10", 0.73, 0.745),
    "swelite": ("file acc@5", 0.80, 0.825),
    "chunkeval": ("10 chunks", 0.90, 0.92),
}
"""What both together must reach, and the best that was ever measured without a language model."""
FILES, TALK = Filters(exclude_conversations=True), Filters(exclude_files=True)
Q = TypeVar("Q")


class Cached:
    """An embedder that remembers, across runs, what it was asked."""

    def __init__(self, inner: Embedder, path: Path) -> None:
        self._inner = inner
        self.model, self.dimensions = inner.model, inner.dimensions
        self._kept = sqlite3.connect(path, isolation_level=None)
        self._kept.execute("PRAGMA journal_mode = WAL")
        self._kept.execute("PRAGMA busy_timeout = 20000")
        self._kept.execute(
            "CREATE TABLE IF NOT EXISTS kept (hash BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID"
        )

    def unavailable_reason(self) -> str | None:
        return self._inner.unavailable_reason()

    async def embed(
        self, texts: Sequence[str], *, is_query: bool = False, billed: Billed = for_nothing
    ) -> tuple[bytes, ...]:
        hashes = [hashlib.sha256(one.encode()).digest() for one in texts]
        found = {
            h: self._kept.execute("SELECT vector FROM kept WHERE hash = ?", (h,)).fetchone() for h in hashes
        }
        missing = {h: one for h, one in zip(hashes, texts, strict=True) if found[h] is None}
        made = await self._inner.embed(list(missing.values()), is_query=is_query) if missing else ()
        for h, vector in zip(missing, made, strict=True):
            self._kept.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (h, vector))
            found[h] = (vector,)
        return tuple(found[h][0] for h in hashes)

    async def close(self) -> None:
        await self._inner.close()


@dataclass(frozen=True, slots=True)
class Answer:
    source_id: str
    title: str
    location: Location
    token_count: int


@dataclass
class Bench:
    """A Tertulia without a server: a database, an account and an embedder."""

    library: Library
    actor: Actor
    has_meaning: bool
    sample: int | None = None
    only: tuple[str, ...] = ()
    spent: list[float] = field(default_factory=list)

    @property
    def db(self) -> Database:
        return self.library.db

    def project(self, name: str) -> str:
        return self.db.write_now(lambda tx: projects.add(tx, self.actor, name)).id

    def add_files(self, project_id: str, texts: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Paths and texts; gives the path of each file id."""
        paths: dict[str, str] = {}

        def add(tx: Tx, batch: Sequence[tuple[str, str]]) -> None:
            for path, written in batch:
                file = self._file(tx, project_id, path, written)
                paths[file.id] = path
                chunks.add_to_file(tx, file.id, project_id, 0, tuple(of_file(file, written, LINES)))

        waiting = list(texts)
        for start in range(0, len(waiting), 200):
            self.db.write_now(lambda tx, start=start: add(tx, waiting[start : start + 200]))  # type: ignore[misc]
        return paths

    def _file(self, tx: Tx, project_id: str, path: str, written: str) -> ProjectFile:
        content = Content(hashlib.sha256(written.encode()).hexdigest(), len(written), "text/plain")
        tx.execute(
            text(
                "INSERT INTO blobs (hash, size_bytes, keeping, used_at, content) "
                "VALUES (:hash, 0, 'row', 0, NULL) ON CONFLICT DO NOTHING"
            ),
            hash=content.hash,
        )
        return files.put(tx, self.actor, project_id, path, content)

    async def ready(self) -> None:
        """Every chunk has its vector."""
        began, done = time.monotonic(), 0
        while self.has_meaning and (due := await embed_due(self.library, 64)):
            done += len(due)
            if done % 3200 == 0:
                speed = done / (time.monotonic() - began)
                print(f"  {done} vectors, {speed:.0f} a second", file=sys.stderr, flush=True)

    def some(self, asked: Sequence[Q]) -> list[Q]:
        """All questions, or a sample of them that is always the same."""
        if self.sample is None or self.sample >= len(asked):
            return list(asked)
        return random.Random(SEED).sample(asked, self.sample)

    @property
    def methods(self) -> tuple[str, ...]:
        with_vectors = (Mode.MEANING, Mode.HYBRID) if self.has_meaning else ()
        return (PHRASE, Mode.KEYWORD, *with_vectors)

    async def ask(
        self, project_id: str, question: str, method: str, limit: int, filters: Filters = FILES
    ) -> tuple[Answer, ...]:
        began = time.process_time()
        if method == PHRASE:
            found = await self.db.read(lambda tx: self._phrase(tx, project_id, question, limit, filters))
        else:
            mode = Mode(method)
            answer = await find(self.library, self.actor, [project_id], question, filters, limit, mode)
            found = tuple(
                Answer(hit.source_id, hit.title, hit.location, hit.token_count) for hit in answer.hits
            )
        self.spent.append((time.process_time() - began) * 1000)
        return found

    def _phrase(
        self, tx: Tx, project_id: str, question: str, limit: int, filters: Filters
    ) -> tuple[Answer, ...]:
        """All its words, one after the other, as they stand in the question."""
        source = Source.MESSAGE if filters.exclude_files else Source.FILE
        scored = retrieval.by_words(tx, [project_id], source, [question], fuse.WEIGHTS[source], limit)
        found = chunks.get_many(tx, self.actor, [one.number for one in scored])
        best = [found[one.number] for one in scored]
        return tuple(
            Answer(one.chunk.source_id, one.title, one.chunk.location, one.chunk.token_count) for one in best
        )

    def took_ms(self) -> float:
        spent, self.spent = sorted(self.spent), []
        return spent[len(spent) // 2] if spent else 0.0


@asynccontextmanager
async def bench(has_meaning: bool, sample: int | None, only: tuple[str, ...]) -> AsyncIterator[Bench]:
    home = settings.read(os.environ).home
    embedder = Cached(LocalEmbedder(home, os.environ), CACHE)
    with tempfile.TemporaryDirectory() as folder:
        db = Database.open(f"sqlite:///{folder}/bench.db", clock=now_ms, new_id=new_id)
        user = db.write_now(lambda tx: users.add(tx, "Reader", "reader@example.org", "", Standing.MEMBER))
        try:
            yield Bench(Library(db, embedder), Actor(user.id, Standing.MEMBER), has_meaning, sample, only)
        finally:
            await embedder.close()
            db.close()


@dataclass(frozen=True)
class Row:
    method: str
    figures: dict[str, float]
    cpu_ms: float


def collections(name: str) -> list[dict[str, Any]]:
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


# ── conversations


async def locomo(here: Bench) -> list[Row]:
    """Each session is a conversation, each turn a message of the one who said it."""
    asked = []
    for collection in collections("locomo-dev"):
        project_id = here.project(collection["name"])
        ids = here.db.write_now(lambda tx, c=collection, p=project_id: _talk(tx, here.actor, c, p))  # type: ignore[misc]
        asked += [(project_id, ids, query) for query in collection["queries"]]
    await here.ready()

    async def ranked(method: str) -> AsyncIterator[tuple[list[str], dict[str, float]]]:
        for project_id, ids, query in here.some(asked):
            found = await here.ask(project_id, query["text"], method, 30, TALK)
            yield _distinct(ids[one.source_id] for one in found), query["relevant"]

    return await _ranking(here, ranked)


def _talk(tx: Tx, actor: Actor, collection: dict[str, Any], project_id: str) -> dict[str, str]:
    """Gives the turn's id of each message's id."""
    people: dict[str, str] = {}
    sessions: dict[int, str] = {}
    ids: dict[str, str] = {}
    for doc in sorted(collection["docs"], key=lambda doc: doc["meta"]["order"]):
        meta = doc["meta"]
        if meta["speaker"] not in people:
            email = f"{meta['speaker']}.{collection['name']}@example.org"
            people[meta["speaker"]] = users.add(tx, meta["speaker"], email, "", Standing.MEMBER).id
        if meta["session"] not in sessions:
            said = conversations.add(
                tx, actor, project_id, mode="parallel", table=(), visibility=Visibility.OPEN
            )
            sessions[meta["session"]] = said.id
        message_id = tx.new_id()
        ids[message_id] = doc["id"]
        at = int(datetime.fromisoformat(meta["date"]).replace(tzinfo=UTC).timestamp() * 1000)
        conversation_id = sessions[meta["session"]]
        number = 1 + sum(1 for other in ids if other != message_id and _where.get(other) == conversation_id)
        _where[message_id] = conversation_id
        messages.add(
            tx,
            Message(
                id=message_id,
                conversation_id=conversation_id,
                round_number=number,
                turn_id=message_id,
                speaker="user",
                role=Role.USER,
                content=doc["text"],
                status=Status.COMPLETE,
                created_by=people[meta["speaker"]],
                created_at=at,
            ),
        )
    for conversation_id in sessions.values():
        spoken = read_rounds(tx, conversation_id, 1, 1_000)
        assert spoken is not None
        write_rounds(tx, spoken, of_messages(spoken.said))
    return ids


_where: dict[str, str] = {}


# ── documents and functions


async def scifact(here: Bench) -> list[Row]:
    return await _documents(here, collections("scifact-train"), _article)


async def cosqa(here: Bench) -> list[Row]:
    return await _documents(here, collections("cosqa-dev"), lambda doc: (f"f{doc['id']}.py", doc["text"]))


def _article(doc: dict[str, Any]) -> tuple[str, str]:
    title, body = doc["meta"]["title"], doc["meta"].get("body") or doc["text"]
    body = body.removeprefix(title).lstrip(" .")
    return f"{doc['id']}.md", f"# {title}\n\n{body}\n"


async def _documents(
    here: Bench, sets: list[dict[str, Any]], as_file: Callable[[dict[str, Any]], tuple[str, str]]
) -> list[Row]:
    asked = []
    for collection in sets:
        project_id = here.project(collection["name"])
        names = {as_file(doc)[0]: doc["id"] for doc in collection["docs"]}
        here.add_files(project_id, map(as_file, collection["docs"]))
        asked += [(project_id, names, query) for query in collection["queries"]]
    await here.ready()

    async def ranked(method: str) -> AsyncIterator[tuple[list[str], dict[str, float]]]:
        for project_id, names, query in here.some(asked):
            found = await here.ask(project_id, query["text"], method, 30)
            yield _distinct(names[one.title] for one in found), query["relevant"]

    return await _ranking(here, ranked)


def _distinct(found: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(found))


async def _ranking(
    here: Bench, ranked: Callable[[str], AsyncIterator[tuple[list[str], dict[str, float]]]]
) -> list[Row]:
    rows = []
    for method in here.methods:
        at5, at10, gain, count = 0.0, 0.0, 0.0, 0
        async for found, relevant in ranked(method):
            wanted = {id for id, grade in relevant.items() if grade > 0}
            if not wanted:
                continue
            count += 1
            at5 += len(wanted & set(found[:5])) / len(wanted)
            at10 += len(wanted & set(found[:10])) / len(wanted)
            gain += _ndcg(found[:10], relevant)
        figures = {"recall@5": at5 / count, "recall@10": at10 / count, "nDCG@10": gain / count}
        rows.append(Row(method, figures, here.took_ms()))
    return rows


def _ndcg(found: Sequence[str], relevant: dict[str, float]) -> float:
    gained = sum(relevant.get(id, 0.0) / math.log2(place + 2) for place, id in enumerate(found))
    ideal = sorted(relevant.values(), reverse=True)[:10]
    best = sum(grade / math.log2(place + 2) for place, grade in enumerate(ideal))
    return gained / best if best else 0.0


# ── code


@dataclass(frozen=True, slots=True)
class Issue:
    project_id: str
    problem: str
    files: frozenset[str]
    functions: tuple[tuple[str, range], ...]
    """Path and lines of what was changed to solve it."""


async def swelite(here: Bench) -> list[Row]:
    """Each issue against every Python file of its project as it was."""
    source = sqlite3.connect(f"file:{DATA / 'swelite-dev.db'}?mode=ro&immutable=1", uri=True)
    rows = source.execute("SELECT id, problem, files, functions FROM instance ORDER BY id").fetchall()
    rows = [row for row in rows if not here.only or any(name in row[0] for name in here.only)]
    issues = [_issue(here, source, *row) for row in here.some(rows)]
    await here.ready()
    return [await _solved(here, issues, method) for method in here.methods]


def _issue(
    here: Bench, source: sqlite3.Connection, id: str, problem: str, paths: str, functions: str
) -> Issue:
    found = source.execute(
        "SELECT f.path, b.z FROM file AS f JOIN blob AS b ON b.sha = f.sha WHERE f.instance = ?", (id,)
    )
    texts = {path: zlib.decompress(z).decode("utf-8", "replace") for path, z in found}
    project_id = here.project(id)
    here.add_files(project_id, ((path, written) for path, written in texts.items() if written.strip()))
    named = [one.partition(":")[::2] for one in json.loads(functions)]
    lines = [(path, _lines(texts.get(path, ""), name)) for path, name in named]
    return Issue(project_id, problem, frozenset(json.loads(paths)), tuple(one for one in lines if one[1]))


def _lines(written: str, name: str) -> range:
    """Of a function or class, named with what it is inside of."""
    node: ast.AST = ast.parse(written)
    for part in name.split("."):
        inside = (child for child in ast.walk(node) if getattr(child, "name", None) == part)
        if (found := next(inside, None)) is None:
            return range(0)
        node = found
    return range(getattr(node, "lineno", 0), (getattr(node, "end_lineno", 0) or 0) + 1)


async def _solved(here: Bench, issues: Sequence[Issue], method: str) -> Row:
    at = {1: 0, 5: 0, 10: 0}
    shown: list[bool] = []
    for issue in issues:
        found = await here.ask(issue.project_id, issue.problem, method, 60)
        ranked = _distinct(one.title for one in found)
        for k in at:
            at[k] += issue.files <= set(ranked[:k])
        if issue.functions:
            shown.append(all(_shows(found[:10], path, lines) for path, lines in issue.functions))
    figures = {f"file acc@{k}": hits / len(issues) for k, hits in at.items()}
    return Row(method, figures | {"func acc@10": sum(shown) / max(1, len(shown))}, here.took_ms())


def _shows(found: Sequence[Answer], path: str, lines: range) -> bool:
    """One of the chunks lies in the function, or touches it."""
    return any(
        one.title == path
        and (one.location.start_line or 0) < lines.stop
        and (one.location.end_line or 0) >= lines.start
        for one in found
    )


# ── exact ranges


async def chunkeval(here: Bench) -> list[Row]:
    """How much of the gold characters the first ten chunks hold."""
    folder = DATA / "chunkeval"
    project_ids: dict[str, str] = {}
    for path in sorted(folder.glob("*.md")):
        project_ids[path.stem] = here.project(path.stem)
        here.add_files(project_ids[path.stem], [(path.name, path.read_text("utf-8"))])
    await here.ready()
    with (folder / "questions_df.csv").open(newline="", encoding="utf-8") as lines:
        questions = here.some(list(csv.DictReader(lines)))
    rows = []
    for method in here.methods:
        recall, handed = {5: 0.0, 10: 0.0}, 0
        for question in questions:
            found = await here.ask(project_ids[question["corpus_id"]], question["question"], method, 10)
            gold = [(one["start_index"], one["end_index"]) for one in json.loads(question["references"])]
            for k in recall:
                recall[k] += _covered(gold, found[:k])
            handed += sum(one.token_count for one in found)
        figures = {f"{k} chunks": sum_ / len(questions) for k, sum_ in recall.items()}
        rows.append(Row(method, figures | {"tokens": handed / len(questions)}, here.took_ms()))
    return rows


def _covered(gold: Sequence[tuple[int, int]], found: Sequence[Answer]) -> float:
    wanted = {place for start, end in gold for place in range(start, end)}
    shown = {
        place
        for one in found
        for place in range(one.location.start_char or 0, one.location.end_char or 0)
        if place in wanted
    }
    return len(shown) / len(wanted) if wanted else 1.0


SETS: dict[str, Callable[[Bench], Awaitable[list[Row]]]] = {
    "locomo": locomo,
    "chunkeval": chunkeval,
    "cosqa": cosqa,
    "scifact": scifact,
    "swelite": swelite,
}


async def main(names: Sequence[str], has_meaning: bool, sample: int | None, only: tuple[str, ...]) -> None:
    for name in names or SETS:
        async with bench(has_meaning, sample, only) as here:
            rows = await SETS[name](here)
        heads = tuple(rows[0].figures)
        table = [(row.method, *(f"{row.figures[head]:.3f}" for head in heads), row.cpu_ms) for row in rows]
        figures = [_figure(name, rows[-1])] if name in BARS else []
        tell(name, (*heads, "ms CPU"), table, figures)


def _figure(name: str, row: Row) -> Figure:
    what, bar, best = BARS[name]
    return Figure(f"{what} by {row.method}", row.figures[what], "", bar, best, is_floor=True)


if __name__ == "__main__":
    asked = argparse.ArgumentParser(prog="python -m benchmarks.retrieval")
    asked.add_argument("sets", nargs="*", metavar="set", help=", ".join(SETS))
    asked.add_argument("--words", action="store_true", help="without vectors")
    asked.add_argument("--sample", type=int, help="so many questions of each set")
    asked.add_argument("--only", default="", help="issues whose names hold one of these")
    given = asked.parse_args()
    if unknown := set(given.sets) - set(SETS):
        asked.error(f"There is no set called {', '.join(sorted(unknown))}; there are {', '.join(SETS)}.")
    if not DATA.is_dir():
        sys.exit(f"There are no sets in {DATA}: nothing to measure.")
    only = tuple(filter(None, given.only.split(",")))
    asyncio.run(main(given.sets, not given.words, given.sample, only))
