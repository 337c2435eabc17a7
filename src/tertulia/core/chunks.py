"""Chunks and hits: the searchable pieces of files and messages, and search results."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Source(StrEnum):
    FILE = "file"
    MESSAGE = "conversation_message"


@dataclass(frozen=True, slots=True)
class Location:
    """The exact place of a chunk: lines and characters of a file, or round and speaker of a conversation."""

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
    """The id of the file or message."""
    project_id: str
    chunk_index: int
    content: str
    heading: str
    """The Markdown heading or function name above the chunk; for a message, its author and date."""
    location: Location
    summary: str
    """The first meaningful line."""
    token_count: int
    created_at: int


@dataclass(frozen=True, slots=True)
class Span:
    """A highlighted part of a snippet, as character offsets."""

    start: int
    end: int


class Match(StrEnum):
    """How well a hit fits the question; absolute, so it does not depend on the other hits."""

    STRONG = "strong"
    GOOD = "match"
    WEAK = "weak"
    """The hit has some of the words, or is a little alike. People see it in a search; it is never added to a
    prompt on its own."""


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
    """The searches that found it: keyword, meaning."""
    why: str
    """The reason in words, such as "3 of 4 words, close in meaning"; may be empty."""
    summary: str
    token_count: int
    created_at: int
    heading: str = ""
    """The heading above the chunk; for a message, its author and date."""
    match: Match = Match.GOOD


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of a matching word in each column of the full-text index."""

    body: float
    heading: float
    place: float
    around: float


@dataclass(frozen=True, slots=True)
class Filters:
    """Search filters: what the person leaves out. They never decide who may see something."""

    file_types: tuple[str, ...] = ()
    """File name endings, such as ".md"."""
    paths: tuple[str, ...] = ()
    """Files, folders, or patterns: "docs", "docs/*", "*.py"."""
    tags: tuple[str, ...] = ()
    speaker: str | None = None
    """Either "user", "agent:" and a model, or the name of a person or a persona."""
    since: int | None = None
    until: int | None = None
    exclude_conversations: bool = False
    exclude_files: bool = False
    conversations: tuple[str, ...] = ()
    """Conversation ids: finds messages in these conversations only. Files are not affected."""
