"""Reply parser: it is lenient with forms and strict with quotations."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.core.findings import CritiqueNote, NoteVerdict, Stance, Verdict
from tertulia.core.messages import Message, Role, Status, Step
from tertulia.core.quoting import find_quote
from tertulia.core.reply_parsing import (
    as_markdown,
    parse_critique,
    parse_outline,
    parse_ranking,
    parse_reply,
    parse_synthesis,
)
from tertulia.core.step_instructions import ShownReply, StepInstructions
from tertulia.core.voices import Voice

ANSWER = (
    "The gateway reads **warm sessions** from\nmemory, so they never touch the database. It has held since."
)


def shown_reply(name: str, seat: int, content: str, role: Role = Role.ADVISOR) -> ShownReply:
    voice = Voice(f"voices:{name}:0", seat, name, "voices:alpha")
    message = Message(
        f"M{seat}{role.value}", "C", 1, "T", "agent:alpha", role, content, Status.COMPLETE, "U", 1, voice
    )
    return ShownReply(name, message)


TABLE = (
    shown_reply("The Sage", 1, "Keep sessions. Issue short-lived tokens at the gateway."),
    shown_reply("The Skeptic", 2, "Neither, yet. First ask what breaks if nothing changes."),
)


# ── quotations


@pytest.mark.parametrize(
    ("quote", "match"),
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
def test_a_quote_is_returned_exactly_as_in_the_text_or_empty(quote, match):
    assert find_quote(quote, ANSWER) == match


@given(st.text(min_size=1), st.integers(0, 200), st.integers(1, 40))
def test_every_span_of_words_is_found_in_its_text(text, start, length):
    quote = find_quote(text[start : start + length], text)
    assert quote in text
    words = text[start : start + length].split()
    if words and all(word.isalnum() for word in words):
        assert [part.strip("*_`~>") for part in quote.split()] == words


@given(st.text(), st.text())
def test_a_found_quote_is_always_part_of_the_text(quote, text):
    assert find_quote(quote, text) in text


# ── critiques


def test_a_critique_in_the_requested_form_is_parsed_completely():
    text = (
        "Verdict: mostly holds. The cause is right. One claim is wrong.\n\n"
        '1. "reads warm sessions from memory" - checks out: it is in the source.\n'
        '2. "never touch the database" - wrong: they do at night. Instead: "rarely touch the database"\n'
        '3. "It has held since" - not shown: nothing records a test.\n'
    )
    critique = parse_critique(text, ANSWER)
    assert critique is not None
    assert critique.verdict is Verdict.MOSTLY_HOLDS
    assert critique.summary == "The cause is right. One claim is wrong."
    assert critique.notes == (
        CritiqueNote(NoteVerdict.CHECKS_OUT, "It is in the source.", "reads **warm sessions** from\nmemory"),
        CritiqueNote(
            NoteVerdict.WRONG, "They do at night.", "never touch the database", "rarely touch the database"
        ),
        CritiqueNote(NoteVerdict.NOT_SHOWN, "Nothing records a test.", "It has held since"),
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
def test_a_verdict_is_parsed_despite_markup_and_punctuation(line, verdict):
    critique = parse_critique(line, ANSWER)
    assert critique is not None
    assert critique.verdict is verdict


def test_an_invented_quotation_stays_in_the_notes_text_and_is_no_quote():
    critique = parse_critique('1. "an invented claim" - wrong: nobody said so.', ANSWER)
    assert critique is not None
    [note] = critique.notes
    assert (note.quote, note.finding) == ("", NoteVerdict.WRONG)
    assert "an invented claim" in note.text


def test_a_critique_without_verdict_or_notes_is_not_parsed():
    assert parse_critique("I quite agree with all of it.", ANSWER) is None


# ── rankings

ANONYMOUS = tuple(
    ShownReply(f"Answer {letter}", reply.message) for letter, reply in zip("AB", TABLE, strict=True)
)


@pytest.mark.parametrize(
    "text",
    [
        "Answer A is fine, B better.\nRanking: B > A",
        "**Ranking:** Answer B, Answer A",
        "Ranking:\n1. Answer B\n2. Answer A",
    ],
)
def test_a_ranking_is_parsed_from_the_last_order_in_a_review(text):
    ranking = parse_ranking(text, ANONYMOUS)
    assert ranking is not None
    assert ranking.message_ids == (ANONYMOUS[1].message.id, ANONYMOUS[0].message.id)


def test_a_ranking_without_every_answer_is_not_parsed():
    assert parse_ranking("Ranking: B", ANONYMOUS) is None


# ── syntheses


def test_a_synthesis_is_parsed_by_its_headings():
    text = (
        "Keep sessions for now.\n\n## Points of agreement\n- Nothing breaks today. (The Sage, Skeptic)\n"
        "- Measure first.\n\n## Tensions\n"
        "- **Tokens or not?** The Sage issues them, the Skeptic waits. (The Sage vs The Skeptic)\n\n"
        "### Next steps\n1. Write the stop rule.\n2. [ ] Chart it,\n   by platform. (The Skeptic)\n"
    )
    outline = parse_synthesis(text, TABLE)
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


def test_a_point_with_many_spaces_is_parsed_in_linear_time():
    blanks = " " * 100_000
    outline = parse_synthesis(f"## Agreement\n- So it is.{blanks}(Sage){blanks}or not\n", TABLE)
    assert outline is not None
    assert [point.seats for point in outline.agreement] == [()]


def test_a_synthesis_without_headings_is_not_parsed():
    assert parse_synthesis("They all agree, more or less.\n\nKind regards", TABLE) is None


# ── outlines


def outline_of(*cells: dict[str, str], **more: object) -> str:
    data = {"headline": "H", "agreement": [], "map": [{"topic": "Tokens", "cells": list(cells)}], **more}
    return "Here it is:\n```json\n" + json.dumps(data) + "\n```\nDone."


def test_a_cell_stays_if_its_voice_wrote_the_quoted_words():
    outline = parse_outline(
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
def test_a_cell_without_a_valid_quotation_is_dropped(cell):
    outline = parse_outline(outline_of(cell, next_steps=[{"text": "Go on"}]), TABLE)
    assert outline is not None
    assert outline.map == ()


def test_a_cell_that_quotes_the_synthesis_is_dropped():
    closing = shown_reply("The Chair", 3, "All is well.", Role.SYNTHESIS)
    text = outline_of(
        {"who": "The Chair", "stance": "agrees", "quote": "All is well."}, agreement=[{"text": "x"}]
    )
    outline = parse_outline(text, (*TABLE, closing))
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
def test_any_json_is_parsed_without_error_and_every_cell_quotes_its_voice(data):
    outline = parse_outline(json.dumps(data), TABLE)
    for topic in outline.map if outline else ():
        for cell in topic.cells:
            assert cell.quote in TABLE[cell.seat - 1].message.content


@given(st.text(max_size=300), st.sampled_from(list(Step)))
def test_any_text_is_parsed_without_error_in_every_step(text, step):
    brief = StepInstructions(step, shown=TABLE if step is not Step.REVIEW else ANONYMOUS)
    assert parse_reply(brief, text) == parse_reply(brief, text)


def test_an_outline_is_written_as_a_markdown_table():
    outline = parse_outline(
        outline_of({"who": "The Sage", "stance": "agrees", "quote": "Keep sessions."}), TABLE
    )
    assert outline is not None
    assert "| Tokens | agrees | seat 1 | Keep sessions |" in as_markdown(outline)
