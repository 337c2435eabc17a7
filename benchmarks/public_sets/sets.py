"""The public sets, as they are read from their files: texts, questions, and what answers them.

They are not part of the project: they are looked for in ../shared/data, or where TERTULIA_DATA says.
"""

from __future__ import annotations

import ast
import csv
import gzip
import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

DATA = Path(os.environ.get("TERTULIA_DATA", "../shared/data"))


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    relevant: Mapping[str, float]
    """How much each document is worth as an answer, by its id."""


# ── conversations


@dataclass(frozen=True, slots=True)
class Said:
    id: str
    speaker: str
    session: int
    at_ms: int
    text: str


@dataclass(frozen=True, slots=True)
class Talk:
    name: str
    said: tuple[Said, ...]
    questions: tuple[Question, ...]


def locomo() -> Iterator[Talk]:
    for collection in _collections("locomo-dev"):
        docs = sorted(collection["docs"], key=lambda doc: doc["meta"]["order"])
        yield Talk(collection["name"], tuple(map(_said, docs)), _questions(collection))


def _said(doc: Any) -> Said:
    meta = doc["meta"]
    at = datetime.fromisoformat(meta["date"]).replace(tzinfo=UTC)
    return Said(doc["id"], meta["speaker"], meta["session"], int(at.timestamp() * 1000), doc["text"])


# ── documents and functions


@dataclass(frozen=True, slots=True)
class Document:
    id: str
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Collection:
    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]


def scifact() -> Iterator[Collection]:
    for collection in _collections("scifact-train"):
        articles = tuple(map(_article, collection["docs"]))
        yield Collection(collection["name"], articles, _questions(collection))


def _article(doc: Any) -> Document:
    title, body = doc["meta"]["title"], doc["meta"].get("body") or doc["text"]
    body = body.removeprefix(title).lstrip(" .")
    return Document(doc["id"], f"{doc['id']}.md", f"# {title}\n\n{body}\n")


def cosqa() -> Iterator[Collection]:
    for collection in _collections("cosqa-dev"):
        functions = tuple(Document(doc["id"], f"f{doc['id']}.py", doc["text"]) for doc in collection["docs"])
        yield Collection(collection["name"], functions, _questions(collection))


def _collections(name: str) -> Iterator[Any]:
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt") as lines:
        yield from map(json.loads, lines)


def _questions(collection: Any) -> tuple[Question, ...]:
    return tuple(Question(query["text"], query["relevant"]) for query in collection["queries"])


# ── exact ranges


@dataclass(frozen=True, slots=True)
class RangeQuestion:
    text: str
    document: str
    gold: tuple[tuple[int, int], ...]
    """From a character to another."""


def long_documents() -> Iterator[tuple[str, Document]]:
    """Each with the name its questions call it by."""
    for path in sorted((DATA / "chunkeval").glob("*.md")):
        yield path.stem, Document(path.stem, path.name, path.read_text("utf-8"))


def range_questions() -> Iterator[RangeQuestion]:
    with (DATA / "chunkeval" / "questions_df.csv").open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            gold = tuple((one["start_index"], one["end_index"]) for one in json.loads(row["references"]))
            yield RangeQuestion(row["question"], row["corpus_id"], gold)


# ── code


@dataclass(frozen=True, slots=True)
class Changed:
    """A function or class that was changed to solve an issue."""

    path: str
    lines: range


@dataclass(frozen=True, slots=True)
class Issue:
    id: str
    problem: str
    paths: frozenset[str]
    """The files that were changed to solve it."""
    functions: tuple[str, ...]
    """What was changed in them: the path, a colon and the name."""


class Issues:
    """The issues, and every Python file of the project as it was when each was written."""

    def __init__(self) -> None:
        self._rows = sqlite3.connect(f"file:{DATA / 'swelite-dev.db'}?mode=ro&immutable=1", uri=True)

    def every(self) -> list[Issue]:
        rows = self._rows.execute("SELECT id, problem, files, functions FROM instance ORDER BY id")
        return [
            Issue(id, problem, frozenset(json.loads(paths)), tuple(json.loads(functions)))
            for id, problem, paths, functions in rows
        ]

    def files(self, issue: Issue) -> dict[str, str]:
        """Texts by path."""
        rows = self._rows.execute(
            "SELECT f.path, b.z FROM file AS f JOIN blob AS b ON b.sha = f.sha WHERE f.instance = ?",
            (issue.id,),
        )
        return {path: zlib.decompress(z).decode("utf-8", "replace") for path, z in rows}


def changed(issue: Issue, texts: Mapping[str, str]) -> tuple[Changed, ...]:
    """Without what is not in these texts: it was written to solve it."""
    named = (one.partition(":")[::2] for one in issue.functions)
    found = (Changed(path, _lines(texts.get(path, ""), name)) for path, name in named)
    return tuple(one for one in found if one.lines)


def _lines(written: str, name: str) -> range:
    """Of a function or class, named with what it is inside of."""
    node: ast.AST = ast.parse(written)
    for part in name.split("."):
        inside = (child for child in ast.walk(node) if getattr(child, "name", None) == part)
        if (found := next(inside, None)) is None:
            return range(0)
        node = found
    return range(getattr(node, "lineno", 0), (getattr(node, "end_lineno", 0) or 0) + 1)
