"""How several voices answer: one short async function per mode, talking to a table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tertulia.core.errors import Invalid
from tertulia.core.voices import SEATS
from tertulia.council.parallel import parallel
from tertulia.council.quick import quick
from tertulia.council.table import Table


@dataclass(frozen=True, slots=True)
class Mode:
    name: str
    run: Callable[[Table], Awaitable[None]]
    least: int
    most: int

    def must_seat(self, voices: int) -> None:
        if not self.least <= voices <= self.most:
            wanted = f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"
            raise Invalid(f"The mode {self.name} takes {wanted} at the table; this turn has {voices}.")


MODES = {
    mode.name: mode
    for mode in (
        Mode("quick", quick, least=1, most=1),
        Mode("parallel", parallel, least=1, most=SEATS),
    )
}


def get(name: str) -> Mode:
    if name not in MODES:
        raise Invalid(f"There is no mode {name!r}. The modes are: {', '.join(MODES)}.")
    return MODES[name]
