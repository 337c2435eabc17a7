"""Events: committed changes, numbered per topic, that every client follows.

An event carries the new value, so a client applies it with one rule: `changed` puts the value under its id
into the table of its noun, `removed` deletes it.

topic                 its events
user:<id>             the user's account, projects, sessions, personas, tables and defaults
project:<id>          the project, its people, conversations, files, personas and tables
conversation:<id>     its messages, turns and votes
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class EventKind(StrEnum):
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Event:
    topic: str
    number: int
    kind: EventKind
    noun: str
    """The kind of value: project, conversation, file, message, turn, vote, session, user, person, persona,
    table or defaults."""
    id: str
    value: str | None
    """The new value as JSON; None when removed."""
    at: int


def user_topic(user_id: str) -> str:
    return f"user:{user_id}"


def project_topic(project_id: str) -> str:
    return f"project:{project_id}"


def conversation_topic(conversation_id: str) -> str:
    return f"conversation:{conversation_id}"
