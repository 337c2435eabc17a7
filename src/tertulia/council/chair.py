"""The chair: writes the synthesis of a round from its replies."""

from __future__ import annotations

from collections.abc import Sequence

from tertulia.core.messages import Message, Role, Step
from tertulia.core.step_instructions import ShownReply, StepInstructions
from tertulia.core.voices import Voice
from tertulia.council.table import Table, has_usable_text

_SYNTHESIS = """\
You are in the chair for this round and have read what everyone said above. Write the synthesis \
for the person.

Begin with one sentence that answers the question as well as the table can. Then three sections \
under exactly these headings:

## Points of agreement
One line each, beginning with "- ", ending with the names of those who say it, in brackets: (Name, \
Name).

## Tensions
One line each: "- **What is at issue?** Who holds what, and why it matters." ending with (Name vs \
Name).

## Next steps
One line each, beginning with "- ": what to do, in the order to do it.

Be fair to every voice, above all to one that stands alone. Smooth nothing over. What is your own \
and nobody's at the table, mark as yours. Leave a section out if it would be empty."""

_OUTLINE = """\
Now give your synthesis as data, so that it can be drawn. Answer with one JSON object and nothing \
else:

{"headline": "the one-sentence answer",
 "agreement": [{"text": "a point", "who": ["Name"]}],
 "tensions": [{"question": "what is at issue", "sides": [{"text": "what they hold", "who": \
["Name"]}]}],
 "next_steps": [{"text": "a step", "who": ["Name"]}],
 "map": [{"topic": "two to five words", "cells": [{"who": "Name", "stance": "agrees", "quote": \
"their words"}]}]}

The map has three to seven topics that matter for the decision, and for each voice that says \
something about a topic one cell: stance "agrees", "partly" or "disagrees". Every quote is four to \
thirty words copied letter by letter from that voice's own reply above; a quote that is not found \
there is thrown away, so leave out a cell you cannot quote. Use the names exactly as they stand in \
the brackets above."""


async def conclude(table: Table, replies: Sequence[Message], *, ranks: str = "") -> None:
    """Asks the chair for the synthesis, then for its outline. Does nothing if no reply has text."""
    replies = await table.current(replies)
    readable = as_shown(replies)
    if not readable:
        return
    task = "\n\n".join(
        part for part in (_absence_note(table.voices, replies), ranks, _SYNTHESIS, _brief_note(table)) if part
    )
    synthesis = await table.ask(table.chair, StepInstructions(Step.SYNTHESIS, Role.SYNTHESIS, readable, task))
    if has_usable_text(synthesis) and table.can_outline and len({reply.name for reply in readable}) > 1:
        read = (*readable, *as_shown((synthesis,)))
        await table.ask(table.chair, StepInstructions(Step.OUTLINE, Role.SYNTHESIS, read, _OUTLINE))


def as_shown(replies: Sequence[Message]) -> tuple[ShownReply, ...]:
    """The replies that have text, with the names of their voices."""
    return tuple(ShownReply(name_of(reply), reply) for reply in replies if has_usable_text(reply))


def name_of(reply: Message) -> str:
    assert reply.voice is not None
    return reply.voice.name


def _absence_note(voices: Sequence[Voice], replies: Sequence[Message]) -> str:
    """The sentence about voices without an answer. Counts by seat: a seat may have been asked again with
    another model."""
    answered_seats = {reply.voice.seat for reply in replies if reply.voice and has_usable_text(reply)}
    names = [voice.name for voice in voices if voice.seat not in answered_seats]
    if not names:
        return ""
    absent_names = ", ".join(names)
    return f"Absent this round, because no answer came: {absent_names}. Say so in one sentence; do not guess."


def _brief_note(table: Table) -> str:
    return f"The person asks of this synthesis: {table.brief}" if table.brief else ""
