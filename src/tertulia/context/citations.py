"""Citations: how a model cites what it was shown, such as [docs/plan.md:12-40], so that a person can open
it."""

from __future__ import annotations

HOW_TO_CITE = (
    "When you rely on a file or on an earlier round that you were shown, put its mark right after the "
    "statement, like [docs/plan.md:12-40] for lines of a file or [round 7] for a round of this conversation."
)
"""The instruction for models. It is always the same, so that the prompt stays cached."""


def of_lines(path: str, start_line: int | None, end_line: int | None) -> str:
    """The citation of lines of a file, such as "[docs/plan.md:12-40]"."""
    return f"[{place(path, start_line, end_line)}]"


def place(path: str, start_line: int | None, end_line: int | None) -> str:
    if start_line is None:
        return path
    return f"{path}:{start_line}-{end_line if end_line is not None else start_line}"


def of_round(number: int) -> str:
    return f"[round {number}]"
