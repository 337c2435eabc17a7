"""The example of docs/adding/a-mode.md is a mode: it is run here as it stands on the page."""

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
    """The function from the first block, registered as the second one says."""
    written, registered = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    made: dict[str, Any] = {"Mode": Mode, "SEATS": SEATS}
    exec(compile(written, str(PAGE), "exec"), made)
    mode: Mode = eval(registered.strip(), made)
    return mode


async def test_the_example_runs_as_the_page_says():
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


async def test_the_example_stops_where_there_is_nothing_to_choose_from():
    table = ScriptedTable(2, failing=(1,))
    await lightning().run(table)
    assert [step for _, step in table.steps()] == [Step.ANSWER, Step.ANSWER]


def test_the_example_fits_in_twenty_lines():
    written = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert written is not None
    assert len([line for line in written.group(1).splitlines() if line.strip()]) <= 20
