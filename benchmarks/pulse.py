"""The pulse of the machine: how much longer a fixed loop takes while something is measured.

CPU time is no constant: two cores that share a heart, a full cache or a busy neighbour stretch it. The loop
runs for two milliseconds every fifth of a second in a process of its own.
"""

from __future__ import annotations

import select
import subprocess
import sys
import time
from statistics import median

from benchmarks.processes import ROOT

EVERY_S = 0.2
QUIET_MS = 1.7
"""What the loop takes on the machine class of README.md when nothing else runs."""


class Pulse:
    """Taken from the beginning of the block to its end."""

    slowed: float = 1.0
    """Times the quiet time."""

    @classmethod
    def of_this_moment(cls) -> Pulse:
        pulse = cls()
        pulse.slowed = median(beat_ms() for _ in range(25)) / QUIET_MS
        return pulse

    def __enter__(self) -> Pulse:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.pulse"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *raised: object) -> None:
        said, _ = self._process.communicate("enough\n")
        self.slowed = float(said) / QUIET_MS


def beat_until_told() -> None:
    beats = [beat_ms() for _ in range(3)]
    while not select.select([sys.stdin], [], [], EVERY_S)[0]:
        beats.append(beat_ms())
    print(median(beats))


def beat_ms() -> float:
    began = time.process_time()
    value = 1
    for _ in range(20_000):
        value = (value * 1_103_515_245 + 12_345) & 0x7FFFFFFF
    return (time.process_time() - began) * 1000


if __name__ == "__main__":
    beat_until_told()
