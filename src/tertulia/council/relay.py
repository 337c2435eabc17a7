"""Relay: the voices answer one after the other, and each reads the answers before its own."""

from __future__ import annotations

from tertulia.core.messages import Message
from tertulia.core.step_instructions import StepInstructions
from tertulia.council.chair import as_shown
from tertulia.council.table import Table

_NEXT = (
    "In this round the table speaks in turn, and you have read those before you. Answer the person. "
    "Build on what was said: correct it, sharpen it, add what is missing. Do not repeat it."
)


async def relay(table: Table) -> None:
    answers: list[Message] = []
    for voice in table.voices:
        earlier = as_shown(await table.current(answers))
        answers.append(await table.ask(voice, StepInstructions(shown=earlier, task=_NEXT if earlier else "")))
