"""Code fences: encloses text from files and messages, so that nothing in it looks like a part of the
prompt."""

from __future__ import annotations

import re

from tertulia.core.text import visible

SHORTEST = "```"
MOST = 30
"""The most backticks in a row. A longer row is cut, so that the fence stays short; real texts have fewer."""
_ROWS = re.compile("`{3,}")


def fenced(text: str) -> str:
    """The visible text between two fences that are longer than any row of backticks in it."""
    visible_text, fence = visible(text), SHORTEST
    if fence in visible_text:
        visible_text = _ROWS.sub(lambda row: row[0][:MOST], visible_text)
        fence = "`" * (max(map(len, _ROWS.findall(visible_text))) + 1)
    return "\n".join((fence, visible_text.removesuffix("\n"), fence))
