"""Figures: a short table, what the machine was like, and on the last line the one figure nearest its bar."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

QUIET_MS = 18.5
"""What the fixed loop takes on the machine class of README.md when nothing else runs."""


@dataclass(frozen=True, slots=True)
class Figure:
    what: str
    value: float
    unit: str
    bar: float
    aim: float | None = None

    @property
    def share(self) -> float:
        """Of the bar; above 1 it is missed."""
        if self.bar == 0:
            return float("inf") if self.value > 0 else 0.0
        return self.value / self.bar

    def __str__(self) -> str:
        wanted = f"bar {self.bar:g}" + ("" if self.aim is None else f", aim {self.aim:g}")
        word = "MISSED" if self.share > 1 else "kept"
        return f"{self.what}: {shown(self.value)} {self.unit} ({wanted}) {word}".replace("  ", " ")


def tell(
    name: str, heads: Sequence[str], rows: Sequence[Sequence[object]], figures: Sequence[Figure]
) -> None:
    """The table, the machine, and the figures; last the one nearest to its bar, or the furthest beyond."""
    print(_table((name, *heads), [[_cell(value) for value in row] for row in rows]))
    print(f"machine: {machine()}")
    *others, last = sorted(figures, key=lambda figure: figure.share)
    for figure in others:
        print(f"  {figure}")
    print(f"{name}: {last}", flush=True)


def machine() -> str:
    """Times taken while the loop is slower than usual are too high by about as much."""
    slowed = calibration_ms() / QUIET_MS
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} cores, load {load:.1f}, a fixed loop takes {slowed:.2f} × its quiet time"


def calibration_ms() -> float:
    return median(_loop_ms() for _ in range(7))


def _loop_ms() -> float:
    began = time.process_time()
    value = 1
    for _ in range(200_000):
        value = (value * 1_103_515_245 + 12_345) & 0x7FFFFFFF
    return (time.process_time() - began) * 1000


def shown(value: float) -> str:
    if value == int(value) and abs(value) < 100_000:
        return f"{value:.0f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _cell(value: object) -> str:
    return shown(value) if isinstance(value, float | int) else str(value)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    columns = list(zip(heads, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    return "\n".join(_line(line, widths) for line in (heads, ["-" * width for width in widths], *rows))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = zip(cells, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)])
