"""Second opinion: one voice answers, and the others review the answer point by point."""

from __future__ import annotations

from tertulia.core.messages import Message, Role, Step
from tertulia.core.step_instructions import ShownReply, StepInstructions
from tertulia.council.chair import name_of
from tertulia.council.table import Table, has_usable_text

_CRITIQUE = """\
Give a second opinion on {name}'s answer above. Check it; do not answer the question anew.

First line: "Verdict: holds", "Verdict: mostly holds" or "Verdict: does not hold", and after a \
full stop one or two sentences on why. Then at most seven numbered points, the most important \
first, each in this form:

1. "words of the answer, copied exactly" - checks out: how you know.
2. "other words of the answer" - wrong: what is the case. Instead: "how it should read"
3. "other words of the answer" - not shown: what is missing to believe it.

Quote a few words, never a paragraph. Confirm what matters and is right; a fault you cannot \
explain is not a point."""


async def second_opinion(table: Table) -> None:
    """If the first voice fails, the next one answers instead."""
    remaining = list(table.voices)
    while remaining:
        answer = await table.ask(remaining.pop(0))
        if has_usable_text(answer):
            await table.ask_all(remaining, _critique(answer))
            return


def _critique(answer: Message) -> StepInstructions:
    task = _CRITIQUE.format(name=name_of(answer))
    return StepInstructions(
        Step.CRITIQUE, Role.CRITIC, (ShownReply(name_of(answer), answer),), task, answer.id
    )
