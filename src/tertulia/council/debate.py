"""Debate: all voices give an opening, those with an opening give a rebuttal, and the chair writes the
synthesis."""

from __future__ import annotations

from tertulia.core.messages import Step
from tertulia.core.step_instructions import StepInstructions
from tertulia.council.chair import as_shown, conclude
from tertulia.council.table import Table, has_usable_text

_REBUTTAL = (
    "These were the openings. Now reply to the others: take their strongest point and answer it, say "
    "where they have moved you and where not, and why. Speak to what they said, not to what they "
    "might have said. Be brief."
)


async def debate(table: Table) -> None:
    openings = await table.current(await table.ask_all())
    answered = [opening for opening in openings if has_usable_text(opening)]
    if len(answered) < 2:
        return await conclude(table, openings)
    rebuttal = StepInstructions(Step.REBUTTAL, shown=as_shown(answered), task=_REBUTTAL)
    voices = [opening.voice for opening in answered if opening.voice]
    rebuttals = await table.ask_all(voices, rebuttal)
    await conclude(table, (*openings, *rebuttals))
