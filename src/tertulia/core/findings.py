"""Findings: what a reply of a council says in a form that can be drawn: an outline, a critique, a ranking.

A reply is text first. What can be read out of the text is found by parsing it leniently, and every quotation
is checked against the words it claims to quote: one that does not occur there is not shown.
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
    """Something several voices say, or someone should do."""

    text: str
    seats: tuple[int, ...] = ()
    """Who says it; of a next step, who proposed it."""


@dataclass(frozen=True, slots=True)
class Position:
    text: str
    seats: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Tension:
    question: str
    sides: tuple[Position, ...] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """Where one voice stands on a topic, in its own words."""

    seat: int
    stance: Stance
    quote: str
    message_id: str
    """The reply the quote is from."""


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    cells: tuple[Cell, ...]
    """A voice that says nothing of it has none."""


@dataclass(frozen=True, slots=True)
class Outline:
    """What a synthesis holds."""

    headline: str
    agreement: tuple[Point, ...] = ()
    tensions: tuple[Tension, ...] = ()
    next_steps: tuple[Point, ...] = ()
    map: tuple[Topic, ...] = ()


class Verdict(StrEnum):
    HOLDS = "holds"
    MOSTLY_HOLDS = "mostly_holds"
    DOES_NOT_HOLD = "does_not_hold"


class Finding(StrEnum):
    CHECKS_OUT = "checks_out"
    WRONG = "wrong"
    NOT_SHOWN = "not_shown"


@dataclass(frozen=True, slots=True)
class Note:
    """One numbered point of a critique."""

    finding: Finding | None
    text: str
    quote: str = ""
    """Words of the answer, as they stand there; empty when the note is about the whole."""
    instead: str = ""
    """What the quoted words should be."""


@dataclass(frozen=True, slots=True)
class Critique:
    verdict: Verdict | None
    summary: str
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranking:
    """The answers of the others from best to worst, by a reviewer who did not know whose they are."""

    message_ids: tuple[str, ...]
    places: tuple[int, ...] = ()
    """The place of each: 1, 2, 2, 4 where two tie. Empty: 1, 2, 3 …"""


@dataclass(frozen=True, slots=True)
class Findings:
    """At most one of them."""

    outline: Outline | None = None
    critique: Critique | None = None
    ranking: Ranking | None = None
