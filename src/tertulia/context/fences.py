"""Fences: where a text that was brought in begins and ends; nothing in it passes for what stands around."""

from __future__ import annotations

import re

from tertulia.core.text import visible

SHORTEST = "```"
MOST = 30
"""No honest text has more backticks in a row; a longer row is cut, so that its fence stays short."""
_ROWS = re.compile("`{3,}")


def fenced(text: str) -> str:
    """What a person sees of the text, between two fences longer than any row of backticks in it."""
    shown, fence = visible(text), SHORTEST
    if fence in shown:
        shown = _ROWS.sub(lambda row: row[0][:MOST], shown)
        fence = "`" * (max(map(len, _ROWS.findall(shown))) + 1)
    return "\n".join((fence, shown.removesuffix("\n"), fence))
