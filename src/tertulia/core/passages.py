"""Passages: what was found for a question and sent along with it, and where such passages are looked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from tertulia.core.chunks import Source


@dataclass(frozen=True, slots=True)
class SearchScope:
    """What is searched for a question, besides what was said earlier in the same conversation."""

    files: bool = True
    conversations: bool = True
    """Other conversations of the project."""


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines of a file, or a message of a round, as they were known when they were found."""

    source_type: Source
    source_id: str
    """The file's or the message's id."""
    name: str
    """The file's path, or the conversation's title; empty for a conversation without one."""
    conversation_id: str | None = None
    round_number: int | None = None
    start_line: int | None = None
    end_line: int | None = None


def united(known: Iterable[Passage], more: Iterable[Passage]) -> tuple[Passage, ...]:
    """Those of both, once each, in the order in which they were found."""
    return tuple({_place(one): one for one in (*known, *more)}.values())


def without(passages: Iterable[Passage], source_ids: Collection[str]) -> tuple[Passage, ...]:
    """Those that are left when some sources are gone."""
    return tuple(one for one in passages if one.source_id not in source_ids)


def _place(one: Passage) -> object:
    return one.source_id, one.conversation_id, one.round_number, one.start_line, one.end_line
