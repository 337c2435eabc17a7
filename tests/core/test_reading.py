"""Reading: what a council's reply says is found leniently, and a quotation counts only if it is one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.core.briefs import Brief, Shown
from tertulia.core.findings import Finding, Note, Stance, Verdict
from tertulia.core.messages import Message, Role, Status, Step
from tertulia.core.quoting import find_quote
from tertulia.core.reading import (
    read,
    read_critique,
    read_outline,
    read_ranking,
    read_synthesis,
    written,
)
from tertulia.core.voices import Voice

ANSWER = (
    "The gateway reads **warm sessions** from\nmemory, so they never touch the database. It has held since."
)


def said(name: str, seat: int, content: str, role: Role = Role.ADVISOR) -> Shown:
    voice = Voice(f"voices:{name}:0", seat, name, "voices:alpha")
    message = Message(
        f"M{seat}{role.value}", "C", 1, "T", "agent:alpha", role, content, Status.COMPLETE, "U", 1, voice
    )
    return Shown(name, message)


TABLE = (
    said("The Sage", 1, "Keep sessions. Issue short-lived tokens at the gateway."),
    said("The Skeptic", 2, "Neither, yet. First ask what breaks if nothing changes."),
)


# ── quotations


@pytest.mark.parametrize(
    ("quote", "stands"),
    [
        ("warm sessions from memory", "warm sessions** from\nmemory"),
        ("“It has held since.”", "It has held since"),
        ("never touch the database", "never touch the database"),
        ("never touched the database", ""),
        ("Never touch the database", ""),
        ("...", ""),
        ("", ""),
    ],
)
def test_a_quote_is_found_as_it_stands_in_the_text_or_not_at_all(quote, stands):
    assert find_quote(quote, ANSWER) == stands


@given(st.text(min_size=1), st.integers(0, 200), st.integers(1, 40))
def test_every_span_of_a_text_that_has_words_is_found_in_it(text, start, length):
    found = find_quote(text[start : start + length], text)
    assert found in text
    words = text[start : start + length].split()
    if words and all(word.isalnum() for word in words):
        assert [part.strip("*_`~>") for part in found.split()] == words


@given(st.text(), st.text())
def test_what_is_found_always_stands_in_the_text(quote, text):
    assert find_quote(quote, text) in text


# ── critiques


def test_a_critique_that_keeps_to_its_form_is_read_whole():
    text = (
        "Verdict: mostly holds. The cause is right. One claim is wrong.\n\n"
        '1. "reads warm sessions from memory" - checks out: it is in the source.\n'
        '2. "never touch the database" - wrong: they do at night. Instead: "rarely touch the database"\n'
        '3. "It has held since" - not shown: nothing records a test.\n'
    )
    critique = read_critique(text, ANSWER)
    assert critique is not None
    assert critique.verdict is Verdict.MOSTLY_HOLDS
    assert critique.summary == "The cause is right. One claim is wrong."
    assert critique.notes == (
        Note(Finding.CHECKS_OUT, "It is in the source.", "reads **warm sessions** from\nmemory"),
        Note(Finding.WRONG, "They do at night.", "never touch the database", "rarely touch the database"),
        Note(Finding.NOT_SHOWN, "Nothing records a test.", "It has held since"),
    )


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("**Verdict:** holds.", Verdict.HOLDS),
        ("Verdict - does not hold. Why:", Verdict.DOES_NOT_HOLD),
        ("verdict: doesn't hold", Verdict.DOES_NOT_HOLD),
        ("Verdict: Mostly holds", Verdict.MOSTLY_HOLDS),
    ],
)
def test_a_verdict_is_read_however_it_is_dressed(line, verdict):
    critique = read_critique(line, ANSWER)
    assert critique is not None
    assert critique.verdict is verdict


def test_words_the_answer_does_not_hold_stay_in_the_note_and_tie_it_to_nothing():
    critique = read_critique('1. "an invented claim" - wrong: nobody said so.', ANSWER)
    assert critique is not None
    [note] = critique.notes
    assert (note.quote, note.finding) == ("", Finding.WRONG)
    assert "an invented claim" in note.text


def test_a_critique_without_any_form_is_only_text():
    assert read_critique("I quite agree with all of it.", ANSWER) is None


# ── rankings

NAMELESS = tuple(Shown(f"Answer {letter}", one.message) for letter, one in zip("AB", TABLE, strict=True))


@pytest.mark.parametrize(
    "text",
    [
        "Answer A is fine, B better.\nRanking: B > A",
        "**Ranking:** Answer B, Answer A",
        "Ranking:\n1. Answer B\n2. Answer A",
    ],
)
def test_a_ranking_is_the_order_named_last(text):
    ranking = read_ranking(text, NAMELESS)
    assert ranking is not None
    assert ranking.message_ids == (NAMELESS[1].message.id, NAMELESS[0].message.id)


def test_a_ranking_that_leaves_one_out_is_none():
    assert read_ranking("Ranking: B", NAMELESS) is None


# ── syntheses


def test_a_synthesis_is_read_by_its_headings():
    text = (
        "Keep sessions for now.\n\n## Points of agreement\n- Nothing breaks today. (The Sage, Skeptic)\n"
        "- Measure first.\n\n## Tensions\n"
        "- **Tokens or not?** The Sage issues them, the Skeptic waits. (The Sage vs The Skeptic)\n\n"
        "### Next steps\n1. Write the stop rule.\n2. [ ] Chart it,\n   by platform. (The Skeptic)\n"
    )
    outline = read_synthesis(text, TABLE)
    assert outline is not None
    assert outline.headline == "Keep sessions for now."
    assert [(point.text, point.seats) for point in outline.agreement] == [
        ("Nothing breaks today.", (1, 2)),
        ("Measure first.", ()),
    ]
    [tension] = outline.tensions
    assert tension.question == "Tokens or not?"
    assert [side.seats for side in tension.sides] == [(), (1,), (2,)]
    assert [(step.text, step.seats) for step in outline.next_steps] == [
        ("Write the stop rule.", ()),
        ("Chart it, by platform.", (2,)),
    ]
    assert outline.map == ()


def test_a_point_full_of_blanks_is_read_in_one_look():
    blanks = " " * 100_000
    outline = read_synthesis(f"## Agreement\n- So it is.{blanks}(Sage){blanks}or not\n", TABLE)
    assert outline is not None
    assert [point.seats for point in outline.agreement] == [()]


def test_a_synthesis_without_headings_is_only_text():
    assert read_synthesis("They all agree, more or less.\n\nKind regards", TABLE) is None


# ── outlines


def outline_of(*cells: dict[str, str], **more: object) -> str:
    data = {"headline": "H", "agreement": [], "map": [{"topic": "Tokens", "cells": list(cells)}], **more}
    return "Here it is:\n```json\n" + json.dumps(data) + "\n```\nDone."


def test_a_cell_is_kept_when_its_words_are_that_voices_own():
    outline = read_outline(
        outline_of(
            {"who": "The Sage", "stance": "agrees", "quote": "Issue short-lived tokens"},
            {"who": "Skeptic", "stance": "disagrees", "quote": "Neither, yet."},
        ),
        TABLE,
    )
    assert outline is not None
    [topic] = outline.map
    assert [(cell.seat, cell.stance, cell.quote) for cell in topic.cells] == [
        (1, Stance.AGREES, "Issue short-lived tokens"),
        (2, Stance.DISAGREES, "Neither, yet"),
    ]


@pytest.mark.parametrize(
    "cell",
    [
        {"who": "The Sage", "stance": "agrees", "quote": "Tokens are wonderful"},
        {"who": "The Sage", "stance": "agrees", "quote": "Neither, yet."},
        {"who": "The Sage", "stance": "shouts", "quote": "Keep sessions."},
        {"who": "The Cook", "stance": "agrees", "quote": "Keep sessions."},
        {"who": "The Sage", "stance": "agrees", "quote": ""},
        {"who": "The Sage", "stance": "agrees"},
    ],
    ids=["invented", "another's words", "no stance", "nobody", "empty", "none"],
)
def test_a_cell_that_proves_nothing_is_not_shown(cell):
    outline = read_outline(outline_of(cell, next_steps=[{"text": "Go on"}]), TABLE)
    assert outline is not None
    assert outline.map == ()


def test_the_chairs_own_synthesis_is_no_advisors_words():
    closing = said("The Chair", 3, "All is well.", Role.SYNTHESIS)
    text = outline_of(
        {"who": "The Chair", "stance": "agrees", "quote": "All is well."}, agreement=[{"text": "x"}]
    )
    outline = read_outline(text, (*TABLE, closing))
    assert outline is not None
    assert outline.map == ()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["headline", "agreement", "tensions", "next_steps", "map", "cells", "topic", "who", "quote",
                 "stance", "text", "sides", "question"]
            ),
            inner,
            max_size=6,
        ),
        max_leaves=30,
    )
)  # fmt: skip
def test_no_data_breaks_the_reading_and_every_cell_shown_quotes_its_voice(data):
    outline = read_outline(json.dumps(data), TABLE)
    for topic in outline.map if outline else ():
        for cell in topic.cells:
            assert cell.quote in TABLE[cell.seat - 1].message.content


@given(st.text(max_size=300), st.sampled_from(list(Step)))
def test_no_text_breaks_the_reading(text, step):
    brief = Brief(step, shown=TABLE if step is not Step.REVIEW else NAMELESS)
    assert read(brief, text) == read(brief, text)


def test_an_outline_reads_as_a_table():
    outline = read_outline(
        outline_of({"who": "The Sage", "stance": "agrees", "quote": "Keep sessions."}), TABLE
    )
    assert outline is not None
    assert "| Tokens | agrees | seat 1 | Keep sessions |" in written(outline)
