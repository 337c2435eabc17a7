"""The example mode in docs/adding/a-mode.md: the tests run the code from the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tertulia.core.messages import Step
from tertulia.core.voices import SEATS
from tertulia.council import Mode
from tests.council.test_modes import ScriptedTable

PAGE = Path(__file__).parents[2] / "docs" / "adding" / "a-mode.md"


def lightning() -> Mode:
    """The function of the first code block, in the Mode of the second."""
    function, registration = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    namespace: dict[str, Any] = {"Mode": Mode, "SEATS": SEATS}
    exec(compile(function, str(PAGE), "exec"), namespace)
    mode: Mode = eval(registration.strip(), namespace)
    return mode


async def test_the_example_asks_for_answers_and_then_for_rebuttals():
    table = ScriptedTable(3, failing=(2,))
    await lightning().run(table)
    assert table.steps() == [
        (1, Step.ANSWER),
        (2, Step.ANSWER),
        (3, Step.ANSWER),
        (1, Step.REBUTTAL),
        (3, Step.REBUTTAL),
    ]
    assert table.asked[-1].read == ("Ada", "Cleo")


async def test_the_example_stops_if_fewer_than_two_voices_answered():
    table = ScriptedTable(2, failing=(1,))
    await lightning().run(table)
    assert [step for _, step in table.steps()] == [Step.ANSWER, Step.ANSWER]


def test_the_example_fits_in_twenty_lines():
    example = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    assert len([line for line in example.group(1).splitlines() if line.strip()]) <= 20
