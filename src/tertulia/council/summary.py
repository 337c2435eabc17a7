"""Summary: one voice reads a branch and summarises it in the conversation that the branch left."""

from __future__ import annotations

from tertulia.core.messages import Step
from tertulia.core.step_instructions import StepInstructions
from tertulia.council.table import Table

_SUMMARY = (
    "Above stands what was said in a branch of this conversation, after it had left this line. Tell those "
    "who did not follow it what it came to: what was asked, what was found or decided and why, what stayed "
    "open. Use the branch alone, name who said what where it matters, and be brief: whoever wants all of it "
    "can open the branch."
)


async def summary(table: Table) -> None:
    await table.ask(table.voices[0], StepInstructions(Step.SUMMARY, task=_SUMMARY))
