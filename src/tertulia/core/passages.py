"""Passages: the search results that were added to a prompt, and the scope of the search."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from tertulia.core.chunks import Source


@dataclass(frozen=True, slots=True)
class SearchScope:
    """The sources to search for a question, besides the earlier rounds of the same conversation."""

    files: bool = True
    conversations: bool = True
    """Whether other conversations of the project are searched."""


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines of a file, or a message of a round, as they were at the time of the search."""

    source_type: Source
    source_id: str
    """The id of the file or message."""
    name: str
    """The file's path, or the conversation's title; empty for a conversation without one."""
    conversation_id: str | None = None
    round_number: int | None = None
    start_line: int | None = None
    end_line: int | None = None


def united(first: Iterable[Passage], second: Iterable[Passage]) -> tuple[Passage, ...]:
    """All passages without duplicates, in the order of the search."""
    return tuple({_key(passage): passage for passage in (*first, *second)}.values())


def without(passages: Iterable[Passage], source_ids: Collection[str]) -> tuple[Passage, ...]:
    """The passages whose source is not among these ids."""
    return tuple(passage for passage in passages if passage.source_id not in source_ids)


def _key(passage: Passage) -> object:
    return (
        passage.source_id,
        passage.conversation_id,
        passage.round_number,
        passage.start_line,
        passage.end_line,
    )
