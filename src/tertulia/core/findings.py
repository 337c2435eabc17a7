"""Parsed replies: the outline, critique or ranking that a council's reply contains, in a form that can be
drawn.

A reply is text first. The parser is lenient, and it checks every quotation against the text that it claims
to quote: a quotation that does not occur there is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Stance(StrEnum):
    AGREES = "agrees"
    PARTLY = "partly"
    DISAGREES = "disagrees"


@dataclass(frozen=True, slots=True)
class Point:
    """A statement that several voices make, or a next step."""

    text: str
    seats: tuple[int, ...] = ()
    """The seats of the voices that say it; for a next step, of those that propose it."""


@dataclass(frozen=True, slots=True)
class Position:
    text: str
    seats: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Tension:
    question: str
    sides: tuple[Position, ...] = ()


@dataclass(frozen=True, slots=True)
class StanceCell:
    """The stance of one voice on a topic, with a quotation from its reply."""

    seat: int
    stance: Stance
    quote: str
    message_id: str
    """The reply that the quotation is from."""


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    cells: tuple[StanceCell, ...]
    """The stances, one cell for each voice that says something about the topic."""


@dataclass(frozen=True, slots=True)
class Outline:
    """The content of a synthesis as data: headline, agreement, tensions, next steps and map."""

    headline: str
    agreement: tuple[Point, ...] = ()
    tensions: tuple[Tension, ...] = ()
    next_steps: tuple[Point, ...] = ()
    map: tuple[Topic, ...] = ()


class Verdict(StrEnum):
    HOLDS = "holds"
    MOSTLY_HOLDS = "mostly_holds"
    DOES_NOT_HOLD = "does_not_hold"


class NoteVerdict(StrEnum):
    CHECKS_OUT = "checks_out"
    WRONG = "wrong"
    NOT_SHOWN = "not_shown"


@dataclass(frozen=True, slots=True)
class CritiqueNote:
    """A numbered point of a critique."""

    finding: NoteVerdict | None
    text: str
    quote: str = ""
    """Words of the answer, exactly as they occur there; empty if the note is about the whole answer."""
    instead: str = ""
    """The critic's replacement for the quoted words."""


@dataclass(frozen=True, slots=True)
class Critique:
    verdict: Verdict | None
    summary: str
    notes: tuple[CritiqueNote, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranking:
    """A reviewer's order of the others' answers, best first; the reviewer does not know who wrote them."""

    message_ids: tuple[str, ...]
    places: tuple[int, ...] = ()
    """The place of each answer: 1, 2, 2, 4 if two tie. Empty means 1, 2, 3 …"""


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """The parsed form of one reply: at most one field is set."""

    outline: Outline | None = None
    critique: Critique | None = None
    ranking: Ranking | None = None
