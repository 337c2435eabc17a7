"""Reading: what a council's reply says in a form that can be drawn, taken leniently out of its text.

A model may keep to the form it was asked for, nearly, or not at all. What is recognised is kept; what is not
costs nothing, because the text itself is always there. A quotation counts only if it is one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tertulia.core.briefs import Brief, Shown
from tertulia.core.findings import (
    Cell,
    Critique,
    Finding,
    Findings,
    Note,
    Outline,
    Point,
    Position,
    Ranking,
    Stance,
    Tension,
    Topic,
    Verdict,
)
from tertulia.core.messages import Role, Step
from tertulia.core.quoting import find_quote
from tertulia.core.rankings import parse_order, ranking_of

POINTS = 20
"""More points than this are no outline."""


def read(brief: Brief, text: str) -> Findings | None:
    """What can be drawn of a reply to this brief."""
    if brief.step is Step.CRITIQUE and brief.shown:
        critique = read_critique(text, brief.shown[0].message.content)
        return Findings(critique=critique) if critique else None
    if brief.step is Step.REVIEW:
        ranking = read_ranking(text, brief.shown)
        return Findings(ranking=ranking) if ranking else None
    if brief.step is Step.SYNTHESIS:
        outline = read_synthesis(text, brief.shown)
        return Findings(outline=outline) if outline else None
    if brief.step is Step.OUTLINE:
        outline = read_outline(text, brief.shown)
        return Findings(outline=outline) if outline else None
    return None


# ── a critique

_VERDICT = re.compile(r"verdict\W{0,6}(does(?:n.t| not) hold|mostly holds?|holds?)\W*", re.IGNORECASE)
_NUMBERED = re.compile(r"^[ \t*]*(\d{1,2})[.)][ \t*]+", re.MULTILINE)
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]{2,600})[\"”“»]")
_INSTEAD = re.compile(r"\binstead\b\W{0,4}[\"“„«]([^\"“”„«»]{1,600})[\"”“»]", re.IGNORECASE)
_FINDING = re.compile(
    r"\b(checks out|confirmed|correct|wrong|incorrect|not shown|unsupported)\b", re.IGNORECASE
)
_FINDINGS = {
    "checks out": Finding.CHECKS_OUT,
    "confirmed": Finding.CHECKS_OUT,
    "correct": Finding.CHECKS_OUT,
    "wrong": Finding.WRONG,
    "incorrect": Finding.WRONG,
    "not shown": Finding.NOT_SHOWN,
    "unsupported": Finding.NOT_SHOWN,
}


def read_critique(text: str, answer: str) -> Critique | None:
    """Verdict and numbered notes; None for a critique that keeps to no form at all."""
    items = list(_NUMBERED.finditer(text))
    ends = [*(item.start() for item in items[1:]), len(text)][: len(items)]
    notes = tuple(
        _note(text[item.end() : end].strip(), answer) for item, end in zip(items, ends, strict=True)
    )[:POINTS]
    head = text[: items[0].start()] if items else text
    verdict = _VERDICT.search(head)
    if verdict is None and not notes:
        return None
    summary = _unmarked(head[verdict.end() :] if verdict else head)
    return Critique(_verdict(verdict.group(1)) if verdict else None, summary, notes)


def _verdict(words: str) -> Verdict:
    if words.lower().startswith("does"):
        return Verdict.DOES_NOT_HOLD
    return Verdict.MOSTLY_HOLDS if words.lower().startswith("mostly") else Verdict.HOLDS


def _note(item: str, answer: str) -> Note:
    instead = _INSTEAD.search(item)
    rest = item[: instead.start()] + item[instead.end() :] if instead else item
    quoted = _QUOTED.search(rest)
    quote = find_quote(quoted.group(1), answer) if quoted else ""
    if quoted and quote:
        rest = rest[: quoted.start()] + rest[quoted.end() :]
    finding = _FINDING.search(rest[:80])
    if finding:
        rest = rest[: finding.start()] + rest[finding.end() :]
    return Note(
        _FINDINGS[finding.group(1).lower()] if finding else None,
        _unmarked(rest),
        quote,
        instead.group(1).strip() if instead else "",
    )


def _unmarked(text: str) -> str:
    """Without what was left standing around the parts that were taken out; a sentence of its own."""
    bare = re.sub(r"\s+", " ", text).strip(" \t\n*_-–—:.,;") + _stop(text)
    return bare[:1].upper() + bare[1:]


def _stop(text: str) -> str:
    ends = text.rstrip(" *_\n\t")[-1:]
    return ends if ends in ".?!" and re.search(r"\w", text) else ""


# ── a ranking


def read_ranking(text: str, shown: Sequence[Shown]) -> Ranking | None:
    """The order a review gives the answers it was shown; None unless each of them has a place."""
    by_letter = {one.name.split()[-1]: one.message.id for one in shown}
    order = parse_order(text, tuple(by_letter))
    return ranking_of(order, by_letter) if order else None


# ── a synthesis, as text

_HEADING = re.compile(r"^\s{0,3}(?:#{1,6}\s+|\*\*)?([^\n*#]{3,60}?)(?:\*\*)?:?\s*$")
_SECTIONS = {"agree": "agreement", "tension": "tensions", "disagree": "tensions", "next": "next_steps"}
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+(?:\[[ xX]?\]\s+)?(.+)$")
_IN_BRACKETS = re.compile(r"[(\[]([^()\[\]]{2,200})[)\]]\s*+(?:\.\s*+)?$")
_QUESTION = re.compile(r"^\*\*(.{3,200}?)\*\*\W*\s*(.*)$", re.DOTALL)


def read_synthesis(text: str, shown: Sequence[Shown]) -> Outline | None:
    """The sections under their headings; a map only the data has."""
    seats = _seats(shown)
    sections: dict[str, list[str]] = {"agreement": [], "tensions": [], "next_steps": []}
    head: list[str] = []
    section: str | None = None
    for line in text.splitlines():
        if named := _section(line):
            section = named
        elif section is None:
            head.append(line)
        elif bullet := _BULLET.match(line):
            sections[section].append(bullet.group(1).strip())
        elif line.strip() and sections[section]:
            sections[section][-1] += " " + line.strip()
    if section is None:
        return None
    return Outline(
        headline=" ".join(" ".join(head).split()).strip("# "),
        agreement=tuple(_point(item, seats) for item in sections["agreement"][:POINTS]),
        tensions=tuple(_tension(item, seats) for item in sections["tensions"][:POINTS]),
        next_steps=tuple(_point(item, seats) for item in sections["next_steps"][:POINTS]),
    )


def _section(line: str) -> str | None:
    heading = _HEADING.match(line)
    if heading is None or not line.lstrip().startswith(("#", "**")):
        return None
    words = heading.group(1).lower()
    return next(
        (name for mark, name in _SECTIONS.items() if words.startswith(mark) or f" {mark}" in words), None
    )


def _point(item: str, seats: Mapping[str, int]) -> Point:
    bracketed = _IN_BRACKETS.search(item)
    if bracketed and (who := _who(re.split(r"[,;&]|\band\b", bracketed.group(1)), seats)):
        return Point(item[: bracketed.start()].strip(), who)
    return Point(item)


def _tension(item: str, seats: Mapping[str, int]) -> Tension:
    bracketed = _IN_BRACKETS.search(item)
    sides: tuple[Position, ...] = ()
    if bracketed and re.search(r"\bvs?\b", bracketed.group(1)):
        parts = re.split(r"\bvs?\b\.?", bracketed.group(1))
        sides = tuple(Position("", _who(re.split(r"[,;&]|\band\b", part), seats)) for part in parts)
        item = item[: bracketed.start()].strip()
    question = _QUESTION.match(item)
    if question is None:
        return Tension(item, sides)
    text = question.group(2).strip()
    return Tension(question.group(1).strip(), (Position(text), *sides) if text else sides)


# ── a synthesis, as data


def _shape(**fields: object) -> dict[str, object]:
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def _many(item: object) -> dict[str, object]:
    return {"type": "array", "items": item}


_STRING = {"type": "string"}
_SAID = _shape(text=_STRING, who=_many(_STRING))
_STANDS = _shape(who=_STRING, stance={"type": "string", "enum": [*Stance]}, quote=_STRING)
OUTLINE_SCHEMA = _shape(
    headline=_STRING,
    agreement=_many(_SAID),
    tensions=_many(_shape(question=_STRING, sides=_many(_SAID))),
    next_steps=_many(_SAID),
    map=_many(_shape(topic=_STRING, cells=_many(_STANDS))),
)
"""For models that keep to one; what the others write is read just the same."""


def read_outline(text: str, shown: Sequence[Shown]) -> Outline | None:
    """A JSON object, wherever it stands in the text; parts that are not what they should be are left out."""
    data = _object_in(text)
    if data is None:
        return None
    shown = [one for one in shown if one.message.role is not Role.SYNTHESIS]
    seats = _seats(shown)
    outline = Outline(
        headline=_words(data.get("headline")),
        agreement=tuple(_points(data.get("agreement"), seats)),
        tensions=tuple(_tensions(data.get("tensions"), seats)),
        next_steps=tuple(_points(data.get("next_steps"), seats)),
        map=tuple(_topics(data.get("map"), shown, seats)),
    )
    return outline if outline.agreement or outline.tensions or outline.next_steps or outline.map else None


def _object_in(text: str) -> dict[str, Any] | None:
    decoder = json.JSONDecoder()
    for brace in (found.start() for found in re.finditer(r"\{", text)):
        try:
            data, _ = decoder.raw_decode(text, brace)
        except (ValueError, RecursionError):
            continue
        return data if isinstance(data, dict) else None
    return None


def _points(data: object, seats: Mapping[str, int]) -> Iterator[Point]:
    for one in _objects(data):
        if text := _words(one.get("text")):
            yield Point(text, _who(_list(one.get("who")), seats))


def _tensions(data: object, seats: Mapping[str, int]) -> Iterator[Tension]:
    for one in _objects(data):
        sides = (Position(side.text, side.seats) for side in _points(one.get("sides"), seats))
        if question := _words(one.get("question")):
            yield Tension(question, tuple(sides))


def _topics(data: object, shown: Sequence[Shown], seats: Mapping[str, int]) -> Iterator[Topic]:
    for one in _objects(data):
        cells = {cell.seat: cell for cell in _cells(one.get("cells"), shown, seats)}
        if (name := _words(one.get("topic"))) and cells:
            yield Topic(name, tuple(cells[seat] for seat in sorted(cells)))


def _cells(data: object, shown: Sequence[Shown], seats: Mapping[str, int]) -> Iterator[Cell]:
    """Only those whose words are found in a reply of the voice they are given to."""
    for one in _objects(data):
        who = _who([_words(one.get("who"))], seats)
        stance = _words(one.get("stance")).lower()
        if len(who) != 1 or stance not in tuple(Stance):
            continue
        for reply in (each.message for each in shown if seats[each.name] == who[0]):
            if quote := find_quote(_words(one.get("quote")), reply.content):
                yield Cell(who[0], Stance(stance), quote, reply.id)
                break


def _objects(data: object) -> list[dict[str, Any]]:
    return [one for one in data if isinstance(one, dict)][:POINTS] if isinstance(data, list) else []


def _list(data: object) -> list[str]:
    return [_words(one) for one in data] if isinstance(data, list) else [_words(data)]


def _words(data: object) -> str:
    return " ".join(data.split()) if isinstance(data, str) else ""


def written(outline: Outline) -> str:
    """An outline's map as a table anyone can read; its other parts stand in the synthesis."""
    rows = [
        f"| {topic.name} | {cell.stance} | seat {cell.seat} | {_in_cell(cell.quote)} |"
        for topic in outline.map
        for cell in topic.cells
    ]
    if not rows:
        return outline.headline
    return "\n".join(("| Topic | Stance | Who | In their words |", "| --- | --- | --- | --- |", *rows))


def _in_cell(quote: str) -> str:
    return " ".join(quote.split()).replace("|", "\\|")


# ── who


def _seats(shown: Sequence[Shown]) -> dict[str, int]:
    return {one.name: one.message.voice.seat for one in shown if one.message.voice}


def _who(names: Sequence[str], seats: Mapping[str, int]) -> tuple[int, ...]:
    """The seats of those who are named, with or without their article."""
    known = {_bare(name): seat for name, seat in seats.items()}
    return tuple(dict.fromkeys(known[_bare(name)] for name in names if _bare(name) in known))


def _bare(name: str) -> str:
    return name.strip(" \t[]().*_\"'").lower().removeprefix("the ")
