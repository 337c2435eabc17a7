"""Figures: a short table, what the machine was like, and on the last line the one figure nearest its bar."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.pulse import Pulse


@dataclass(frozen=True, slots=True)
class Figure:
    what: str
    value: float
    unit: str
    bar: float
    aim: float | None = None
    is_cpu: bool = False
    """CPU time, which a busy machine stretches: judged at the speed of a quiet one."""
    is_floor: bool = False
    """The bar must be reached, not kept below."""

    @property
    def share(self) -> float:
        """Of the bar; above 1 it is missed."""
        if self.is_floor:
            return self.bar / self.value if self.value > 0 else float("inf")
        if self.bar == 0:
            return float("inf") if self.value > 0 else 0.0
        return self.value / self.bar

    def at_quiet_speed(self, pulse: Pulse) -> Figure:
        return replace(self, value=self.value / pulse.slowed) if self.is_cpu else self

    def __str__(self) -> str:
        wanted = f"bar {self.bar:g}" + ("" if self.aim is None else f", aim {self.aim:g}")
        word = "MISSED" if self.share > 1 else "kept"
        value = f"{self.value:.3f}" if self.is_floor else shown(self.value)
        return f"{self.what}: {value} {self.unit} ({wanted}) {word}".replace("  ", " ")


def tell(
    name: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[object]],
    figures: Sequence[Figure],
    pulse: Pulse | None = None,
) -> None:
    """The table as measured, the machine, and the figures; last the one nearest its bar, or beyond it."""
    pulse = pulse or Pulse.of_this_moment()
    print(_table((name, *heads), [[_cell(value) for value in row] for row in rows]))
    print(f"machine: {_machine(pulse)}")
    judged = sorted((figure.at_quiet_speed(pulse) for figure in figures), key=lambda figure: figure.share)
    for figure in judged[:-1]:
        print(f"  {figure}")
    for last in judged[-1:]:
        print(f"{name}: {last}", flush=True)


def _machine(pulse: Pulse) -> str:
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} cores, load {load:.1f}, CPU time {pulse.slowed:.2f} × that of quiet hours"


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
