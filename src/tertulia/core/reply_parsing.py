"""Reply parser: reads the outline, critique or ranking in a council's reply, leniently, so that it can be
drawn.

A model may keep to the requested form, nearly keep to it, or ignore it. The parser keeps the parts that it
recognises; the rest is not lost, because the reply's text stays. A quotation counts only if it occurs in the
quoted reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tertulia.core.findings import (
    Critique,
    CritiqueNote,
    NoteVerdict,
    Outline,
    ParsedReply,
    Point,
    Position,
    Ranking,
    Stance,
    StanceCell,
    Tension,
    Topic,
    Verdict,
)
from tertulia.core.messages import Role, Step
from tertulia.core.quoting import find_quote
from tertulia.core.rankings import parse_order, ranking_of
from tertulia.core.step_instructions import ShownReply, StepInstructions

POINTS = 20
"""The most points that are parsed; a longer list is no outline."""


def parse_reply(brief: StepInstructions, text: str) -> ParsedReply | None:
    """Parses a reply to these step instructions; None if it has nothing to draw."""
    if brief.step is Step.CRITIQUE and brief.shown:
        critique = parse_critique(text, brief.shown[0].message.content)
        return ParsedReply(critique=critique) if critique else None
    if brief.step is Step.REVIEW:
        ranking = parse_ranking(text, brief.shown)
        return ParsedReply(ranking=ranking) if ranking else None
    if brief.step is Step.SYNTHESIS:
        outline = parse_synthesis(text, brief.shown)
        return ParsedReply(outline=outline) if outline else None
    if brief.step is Step.OUTLINE:
        outline = parse_outline(text, brief.shown)
        return ParsedReply(outline=outline) if outline else None
    return None


# ── a critique

_VERDICT = re.compile(r"verdict\W{0,6}(does(?:n.t| not) hold|mostly holds?|holds?)\W*", re.IGNORECASE)
_NUMBERED = re.compile(r"^[ \t*]*(\d{1,2})[.)][ \t*]+", re.MULTILINE)
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]{2,600})[\"”“»]")
_INSTEAD = re.compile(r"\binstead\b\W{0,4}[\"“„«]([^\"“”„«»]{1,600})[\"”“»]", re.IGNORECASE)
_NOTE_VERDICT = re.compile(
    r"\b(checks out|confirmed|correct|wrong|incorrect|not shown|unsupported)\b", re.IGNORECASE
)
_NOTE_VERDICTS = {
    "checks out": NoteVerdict.CHECKS_OUT,
    "confirmed": NoteVerdict.CHECKS_OUT,
    "correct": NoteVerdict.CHECKS_OUT,
    "wrong": NoteVerdict.WRONG,
    "incorrect": NoteVerdict.WRONG,
    "not shown": NoteVerdict.NOT_SHOWN,
    "unsupported": NoteVerdict.NOT_SHOWN,
}


def parse_critique(text: str, answer: str) -> Critique | None:
    """The verdict and the numbered notes; None for a critique without either."""
    items = list(_NUMBERED.finditer(text))
    ends = [*(item.start() for item in items[1:]), len(text)][: len(items)]
    notes = tuple(
        _note(text[item.end() : end].strip(), answer) for item, end in zip(items, ends, strict=True)
    )[:POINTS]
    head = text[: items[0].start()] if items else text
    verdict = _VERDICT.search(head)
    if verdict is None and not notes:
        return None
    summary = _tidy(head[verdict.end() :] if verdict else head)
    return Critique(_verdict(verdict.group(1)) if verdict else None, summary, notes)


def _verdict(words: str) -> Verdict:
    if words.lower().startswith("does"):
        return Verdict.DOES_NOT_HOLD
    return Verdict.MOSTLY_HOLDS if words.lower().startswith("mostly") else Verdict.HOLDS


def _note(item: str, answer: str) -> CritiqueNote:
    instead = _INSTEAD.search(item)
    remainder = item[: instead.start()] + item[instead.end() :] if instead else item
    quotation = _QUOTED.search(remainder)
    quote = find_quote(quotation.group(1), answer) if quotation else ""
    if quotation and quote:
        remainder = remainder[: quotation.start()] + remainder[quotation.end() :]
    finding = _NOTE_VERDICT.search(remainder[:80])
    if finding:
        remainder = remainder[: finding.start()] + remainder[finding.end() :]
    return CritiqueNote(
        _NOTE_VERDICTS[finding.group(1).lower()] if finding else None,
        _tidy(remainder),
        quote,
        instead.group(1).strip() if instead else "",
    )


def _tidy(text: str) -> str:
    """The rest of a text after parts were cut out: without stray markup and punctuation, as a sentence."""
    bare = re.sub(r"\s+", " ", text).strip(" \t\n*_-–—:.,;") + _final_punctuation(text)
    return bare[:1].upper() + bare[1:]


def _final_punctuation(text: str) -> str:
    ends = text.rstrip(" *_\n\t")[-1:]
    return ends if ends in ".?!" and re.search(r"\w", text) else ""


# ── a ranking


def parse_ranking(text: str, replies: Sequence[ShownReply]) -> Ranking | None:
    """The order in which a review puts the answers it was shown; None unless each answer has a place."""
    by_letter = {reply.name.split()[-1]: reply.message.id for reply in replies}
    order = parse_order(text, tuple(by_letter))
    return ranking_of(order, by_letter) if order else None


# ── a synthesis, as text

_HEADING = re.compile(r"^\s{0,3}(?:#{1,6}\s+|\*\*)?([^\n*#]{3,60}?)(?:\*\*)?:?\s*$")
_SECTIONS = {"agree": "agreement", "tension": "tensions", "disagree": "tensions", "next": "next_steps"}
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+(?:\[[ xX]?\]\s+)?(.+)$")
_IN_BRACKETS = re.compile(r"[(\[]([^()\[\]]{2,200})[)\]]\s*+(?:\.\s*+)?$")
_QUESTION = re.compile(r"^\*\*(.{3,200}?)\*\*\W*\s*(.*)$", re.DOTALL)


def parse_synthesis(text: str, replies: Sequence[ShownReply]) -> Outline | None:
    """The sections under their headings; without a map, which only the outline's JSON has."""
    seats = _seats(replies)
    sections: dict[str, list[str]] = {"agreement": [], "tensions": [], "next_steps": []}
    head: list[str] = []
    section: str | None = None
    for line in text.splitlines():
        if heading := _section(line):
            section = heading
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
        (name for prefix, name in _SECTIONS.items() if words.startswith(prefix) or f" {prefix}" in words),
        None,
    )


def _point(item: str, seats: Mapping[str, int]) -> Point:
    brackets = _IN_BRACKETS.search(item)
    if brackets and (seats_named := _seats_of(re.split(r"[,;&]|\band\b", brackets.group(1)), seats)):
        return Point(item[: brackets.start()].strip(), seats_named)
    return Point(item)


def _tension(item: str, seats: Mapping[str, int]) -> Tension:
    brackets = _IN_BRACKETS.search(item)
    sides: tuple[Position, ...] = ()
    if brackets and re.search(r"\bvs?\b", brackets.group(1)):
        parts = re.split(r"\bvs?\b\.?", brackets.group(1))
        sides = tuple(Position("", _seats_of(re.split(r"[,;&]|\band\b", part), seats)) for part in parts)
        item = item[: brackets.start()].strip()
    question = _QUESTION.match(item)
    if question is None:
        return Tension(item, sides)
    text = question.group(2).strip()
    return Tension(question.group(1).strip(), (Position(text), *sides) if text else sides)


# ── a synthesis, as data


def _object(**fields: object) -> dict[str, object]:
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def _array(item: object) -> dict[str, object]:
    return {"type": "array", "items": item}


_STRING = {"type": "string"}
_POINT = _object(text=_STRING, who=_array(_STRING))
_CELL = _object(who=_STRING, stance={"type": "string", "enum": [*Stance]}, quote=_STRING)
OUTLINE_SCHEMA = _object(
    headline=_STRING,
    agreement=_array(_POINT),
    tensions=_array(_object(question=_STRING, sides=_array(_POINT))),
    next_steps=_array(_POINT),
    map=_array(_object(topic=_STRING, cells=_array(_CELL))),
)
"""The JSON schema for models that support one; the output of other models is parsed in the same way."""


def parse_outline(text: str, replies: Sequence[ShownReply]) -> Outline | None:
    """Parses the first JSON object in the text; leaves out parts of a wrong type."""
    data = _object_in(text)
    if data is None:
        return None
    replies = [reply for reply in replies if reply.message.role is not Role.SYNTHESIS]
    seats = _seats(replies)
    outline = Outline(
        headline=_text(data.get("headline")),
        agreement=tuple(_points(data.get("agreement"), seats)),
        tensions=tuple(_tensions(data.get("tensions"), seats)),
        next_steps=tuple(_points(data.get("next_steps"), seats)),
        map=tuple(_topics(data.get("map"), replies, seats)),
    )
    return outline if outline.agreement or outline.tensions or outline.next_steps or outline.map else None


def _object_in(text: str) -> dict[str, Any] | None:
    decoder = json.JSONDecoder()
    for brace in (match.start() for match in re.finditer(r"\{", text)):
        try:
            data, _ = decoder.raw_decode(text, brace)
        except (ValueError, RecursionError):
            continue
        return data if isinstance(data, dict) else None
    return None


def _points(data: object, seats: Mapping[str, int]) -> Iterator[Point]:
    for item in _objects(data):
        if text := _text(item.get("text")):
            yield Point(text, _seats_of(_texts(item.get("who")), seats))


def _tensions(data: object, seats: Mapping[str, int]) -> Iterator[Tension]:
    for item in _objects(data):
        sides = (Position(side.text, side.seats) for side in _points(item.get("sides"), seats))
        if question := _text(item.get("question")):
            yield Tension(question, tuple(sides))


def _topics(data: object, replies: Sequence[ShownReply], seats: Mapping[str, int]) -> Iterator[Topic]:
    for item in _objects(data):
        cells = {cell.seat: cell for cell in _cells(item.get("cells"), replies, seats)}
        if (name := _text(item.get("topic"))) and cells:
            yield Topic(name, tuple(cells[seat] for seat in sorted(cells)))


def _cells(data: object, replies: Sequence[ShownReply], seats: Mapping[str, int]) -> Iterator[StanceCell]:
    """The cells whose quotation occurs in a reply of the voice they name."""
    for item in _objects(data):
        seats_named = _seats_of([_text(item.get("who"))], seats)
        stance = _text(item.get("stance")).lower()
        if len(seats_named) != 1 or stance not in tuple(Stance):
            continue
        for reply in (entry.message for entry in replies if seats[entry.name] == seats_named[0]):
            if quote := find_quote(_text(item.get("quote")), reply.content):
                yield StanceCell(seats_named[0], Stance(stance), quote, reply.id)
                break


def _objects(data: object) -> list[dict[str, Any]]:
    return [item for item in data if isinstance(item, dict)][:POINTS] if isinstance(data, list) else []


def _texts(data: object) -> list[str]:
    return [_text(item) for item in data] if isinstance(data, list) else [_text(data)]


def _text(data: object) -> str:
    return " ".join(data.split()) if isinstance(data, str) else ""


def as_markdown(outline: Outline) -> str:
    """The map of an outline as a Markdown table; the other parts are in the synthesis."""
    rows = [
        f"| {topic.name} | {cell.stance} | seat {cell.seat} | {_escape_cell(cell.quote)} |"
        for topic in outline.map
        for cell in topic.cells
    ]
    if not rows:
        return outline.headline
    return "\n".join(("| Topic | Stance | Who | In their words |", "| --- | --- | --- | --- |", *rows))


def _escape_cell(quote: str) -> str:
    return " ".join(quote.split()).replace("|", "\\|")


# ── names and seats


def _seats(replies: Sequence[ShownReply]) -> dict[str, int]:
    return {reply.name: reply.message.voice.seat for reply in replies if reply.message.voice}


def _seats_of(names: Sequence[str], seats: Mapping[str, int]) -> tuple[int, ...]:
    """The seats of these names; "The" at the start of a name does not matter."""
    known = {_normalised_name(name): seat for name, seat in seats.items()}
    return tuple(
        dict.fromkeys(known[_normalised_name(name)] for name in names if _normalised_name(name) in known)
    )


def _normalised_name(name: str) -> str:
    return name.strip(" \t[]().*_\"'").lower().removeprefix("the ")
