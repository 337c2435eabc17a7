"""Chunks and hits: pieces of files and messages that can be found, and what was found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Source(StrEnum):
    FILE = "file"
    MESSAGE = "conversation_message"


@dataclass(frozen=True, slots=True)
class Location:
    """Exactly where: lines and characters of a file, or round and speaker of a conversation."""

    path: str | None = None
    start_line: int | None = None
    end_line: int | None = None
    start_char: int | None = None
    end_char: int | None = None
    conversation_id: str | None = None
    round_number: int | None = None
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    id: str
    source_type: Source
    source_id: str
    """The file's or the message's id."""
    project_id: str
    chunk_index: int
    content: str
    heading: str
    """What it stands under: a Markdown heading, a function's name; for a message, who said it and when."""
    location: Location
    summary: str
    """First meaningful line."""
    token_count: int
    created_at: int


@dataclass(frozen=True, slots=True)
class Span:
    """A highlighted part of a snippet, in characters."""

    start: int
    end: int


class Match(StrEnum):
    """How well a hit fits the question; the same everywhere, whatever else was found."""

    STRONG = "strong"
    GOOD = "match"
    WEAK = "weak"
    """It has some of the words, or is a little alike: shown to who searches, never sent along unasked."""


CALLED = {Match.STRONG: "strong match", Match.GOOD: "match", Match.WEAK: "weak match"}


@dataclass(frozen=True, slots=True)
class Hit:
    chunk_id: str
    source_type: Source
    source_id: str
    project_id: str
    title: str
    """The file's path, or the conversation's title."""
    location: Location
    content: str
    snippet: str
    highlights: tuple[Span, ...]
    score: float
    found_by: tuple[str, ...]
    """keyword, meaning."""
    why: str
    """In words: "3 of 4 words, close in meaning"; may be empty."""
    summary: str
    token_count: int
    created_at: int
    heading: str = ""
    """What it stands under; of a message, who said it and when."""
    match: Match = Match.GOOD


@dataclass(frozen=True, slots=True)
class Weights:
    """How much a word counts in each column."""

    body: float
    heading: float
    place: float
    around: float


@dataclass(frozen=True, slots=True)
class Filters:
    """What a search leaves out; access is never a matter of these."""

    file_types: tuple[str, ...] = ()
    """Endings, ".md"."""
    paths: tuple[str, ...] = ()
    """Files, folders, or patterns: "docs", "docs/*", "*.py"."""
    tags: tuple[str, ...] = ()
    speaker: str | None = None
    """"user", "agent:" and a model, or the name of a person or a persona."""
    since: int | None = None
    until: int | None = None
    exclude_conversations: bool = False
    exclude_files: bool = False
    conversations: tuple[str, ...] = ()
    """Ids: of what was said, only in these; files are no matter of it."""
