"""Retrieval quality: public questions with known answers, asked of the same store and library people use.

    python -m benchmarks.retrieval                    all sets, by words and by both
    python -m benchmarks.retrieval locomo scifact     some of them
    python -m benchmarks.retrieval --keyword swelite  without vectors

The sets are not part of the project: they are read from ../shared/data, or from TERTULIA_DATA. Vectors are
kept by the text they were made from in TERTULIA_CACHE, so that a second run takes seconds.
"""

from __future__ import annotations

import asyncio
import csv
import gzip
import hashlib
import json
import math
import os
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
from typing import Any

from sqlalchemy import text

from tertulia import settings
from tertulia.app import new_id, now_ms
from tertulia.core.chunks import Filters, Hit
from tertulia.core.conversations import Visibility
from tertulia.core.files import Content, ProjectFile
from tertulia.core.messages import Message, Role, Status
from tertulia.core.users import Actor, Standing
from tertulia.library.chunk import LINES
from tertulia.library.embed import Embedder, LocalEmbedder
from tertulia.library.index import embed_due, of_file, of_messages, read_rounds, write_rounds
from tertulia.library.search import Library, Mode, find
from tertulia.store import chunks, conversations, files, messages, projects, users
from tertulia.store.database import Database, Tx

DATA = Path(os.environ.get("TERTULIA_DATA", "../shared/data"))
CACHE = Path(os.environ.get("TERTULIA_CACHE", Path(tempfile.gettempdir()) / "tertulia-vectors.db"))
BARS = {"locomo": ("recall@10", 0.77), "scifact": ("nDCG@10", 0.73), "swelite": ("file acc@5", 0.80),
        "chunkeval": ("recall 10 × 200", 0.90)}  # fmt: skip


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

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> tuple[bytes, ...]:
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


@dataclass
class Bench:
    """A Tertulia without a server: a database, an account and an embedder."""

    library: Library
    actor: Actor
    has_meaning: bool
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
        if self.has_meaning:
            done, began = 0, time.monotonic()
            while due := await embed_due(self.library, 64):
                done += len(due)
                if done % 3200 == 0:
                    print(
                        f"  {done} vectors, {done / (time.monotonic() - began):.0f}/s",
                        file=sys.stderr,
                        flush=True,
                    )

    async def ask(
        self, project_id: str, question: str, mode: Mode, limit: int, filters: Filters
    ) -> tuple[Hit, ...]:
        began = time.process_time()
        found = await find(self.library, self.actor, [project_id], question, filters, limit, mode)
        self.spent.append((time.process_time() - began) * 1000)
        return found.hits

    def took_ms(self) -> float:
        spent, self.spent = sorted(self.spent), []
        return spent[len(spent) // 2] if spent else 0.0


@asynccontextmanager
async def bench(has_meaning: bool) -> AsyncIterator[Bench]:
    home = settings.read(os.environ).home
    embedder = Cached(LocalEmbedder(home, os.environ), CACHE)
    with tempfile.TemporaryDirectory() as folder:
        db = Database.open(f"sqlite:///{folder}/bench.db", clock=now_ms, new_id=new_id)
        user = db.write_now(lambda tx: users.add(tx, "Reader", "reader@example.org", "", Standing.MEMBER))
        try:
            yield Bench(Library(db, embedder), Actor(user.id, Standing.MEMBER), has_meaning)
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


def modes(has_meaning: bool) -> tuple[Mode, ...]:
    return (Mode.KEYWORD, Mode.MEANING, Mode.HYBRID) if has_meaning else (Mode.KEYWORD,)


# ── conversations


async def locomo(here: Bench) -> list[Row]:
    """Each session is a conversation, each turn a message of the one who said it."""
    asked = []
    for collection in collections("locomo-dev"):
        project_id = here.project(collection["name"])
        ids = here.db.write_now(lambda tx, c=collection, p=project_id: _talk(tx, here.actor, c, p))
        asked += [(project_id, ids, query) for query in collection["queries"]]
    await here.ready()

    async def ranked(mode: Mode) -> AsyncIterator[tuple[list[str], dict[str, float]]]:
        for project_id, ids, query in asked:
            hits = await here.ask(project_id, query["text"], mode, 30, Filters(exclude_files=True))
            yield _distinct(ids[hit.source_id] for hit in hits), query["relevant"]

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

    async def ranked(mode: Mode) -> AsyncIterator[tuple[list[str], dict[str, float]]]:
        for project_id, names, query in asked:
            hits = await here.ask(project_id, query["text"], mode, 30, Filters())
            yield _distinct(names[hit.title] for hit in hits), query["relevant"]

    return await _ranking(here, ranked)


def _distinct(found: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(found))


async def _ranking(
    here: Bench, ranked: Callable[[Mode], AsyncIterator[tuple[list[str], dict[str, float]]]]
) -> list[Row]:
    rows = []
    for mode in modes(here.has_meaning):
        at5, at10, gain, count = 0.0, 0.0, 0.0, 0
        async for found, relevant in ranked(mode):
            wanted = {id for id, grade in relevant.items() if grade > 0}
            if not wanted:
                continue
            count += 1
            at5 += len(wanted & set(found[:5])) / len(wanted)
            at10 += len(wanted & set(found[:10])) / len(wanted)
            gain += _ndcg(found[:10], relevant)
        figures = {"recall@5": at5 / count, "recall@10": at10 / count, "nDCG@10": gain / count}
        rows.append(Row(mode.value, figures, here.took_ms()))
    return rows


def _ndcg(found: Sequence[str], relevant: dict[str, float]) -> float:
    gained = sum(relevant.get(id, 0.0) / math.log2(place + 2) for place, id in enumerate(found))
    ideal = sorted(relevant.values(), reverse=True)[:10]
    best = sum(grade / math.log2(place + 2) for place, grade in enumerate(ideal))
    return gained / best if best else 0.0


# ── code


async def swelite(here: Bench) -> list[Row]:
    """Each issue against every Python file of its project as it was."""
    source = sqlite3.connect(f"file:{DATA / 'swelite-dev.db'}?mode=ro&immutable=1", uri=True)
    only = os.environ.get("SWELITE_REPOS", "")
    asked = []
    for id, repo, problem, _, functions, wanted in source.execute("SELECT * FROM instance"):
        if only and repo not in only.split(","):
            continue
        project_id = here.project(id)
        rows = source.execute(
            "SELECT f.path, b.z FROM file AS f JOIN blob AS b ON b.sha = f.sha WHERE f.instance = ?", (id,)
        )
        texts = ((path, zlib.decompress(z).decode("utf-8", "replace")) for path, z in rows)
        here.add_files(project_id, ((path, written) for path, written in texts if written.strip()))
        asked.append((project_id, problem, json.loads(wanted), json.loads(functions)))
    await here.ready()
    found = []
    for mode in modes(here.has_meaning):
        at = {1: 0, 5: 0, 10: 0}
        functions_at_10 = 0
        for project_id, problem, wanted, functions in asked:
            hits = await here.ask(project_id, problem, mode, 60, Filters())
            ranked = _distinct(hit.title for hit in hits)
            for k in at:
                at[k] += set(wanted) <= set(ranked[:k])
            functions_at_10 += _has_functions(hits[:10], functions)
        figures = {f"file acc@{k}": hit / len(asked) for k, hit in at.items()}
        found.append(Row(mode.value, figures | {"func acc@10": functions_at_10 / len(asked)}, here.took_ms()))
    return found


def _has_functions(hits: Sequence[Hit], functions: Sequence[str]) -> bool:
    shown = {hit.title for hit in hits}
    return bool(functions) and all(one.partition(":")[0] in shown for one in functions)


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
        questions = list(csv.DictReader(lines))
    rows = []
    for mode in modes(here.has_meaning):
        recall, handed = {5: 0.0, 10: 0.0}, 0
        for question in questions:
            hits = await here.ask(
                project_ids[question["corpus_id"]], question["question"], mode, 10, Filters()
            )
            gold = [(one["start_index"], one["end_index"]) for one in json.loads(question["references"])]
            for k in recall:
                recall[k] += _covered(gold, hits[:k])
            handed += sum(hit.token_count for hit in hits)
        figures = {
            "recall 5": recall[5] / len(questions),
            "recall 10 × 200": recall[10] / len(questions),
            "tokens": handed / len(questions),
        }
        rows.append(Row(mode.value, figures, here.took_ms()))
    return rows


def _covered(gold: Sequence[tuple[int, int]], hits: Sequence[Hit]) -> float:
    wanted = {place for start, end in gold for place in range(start, end)}
    shown = {
        place
        for hit in hits
        for place in range(hit.location.start_char or 0, hit.location.end_char or 0)
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


async def main(names: Sequence[str], has_meaning: bool) -> None:
    for name in names or SETS:
        async with bench(has_meaning) as here:
            rows = await SETS[name](here)
        heads = list(rows[0].figures)
        print(f"{name:10} {'':8} " + " ".join(f"{head:>16}" for head in [*heads, "CPU ms"]))
        for row in rows:
            values = [f"{row.figures[head]:16.3f}" for head in heads] + [f"{row.cpu_ms:16.1f}"]
            print(f"{'':10} {row.method:8} " + " ".join(values))
        if name in BARS:
            what, bar = BARS[name]
            value = rows[-1].figures[what]
            print(
                f"{name}: {what} {value:.3f} (bar {bar}) {'kept' if value >= bar else 'MISSED'}", flush=True
            )


if __name__ == "__main__":
    given = sys.argv[1:]
    if not DATA.is_dir():
        sys.exit(f"There are no sets in {DATA}: nothing to measure.")
    asyncio.run(main([name for name in given if not name.startswith("-")], "--keyword" not in given))
