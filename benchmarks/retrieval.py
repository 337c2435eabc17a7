"""Retrieval quality: asks the public sets and prints a table for each.

python -m benchmarks.retrieval                     all sets: a phrase, words, meaning and both
python -m benchmarks.retrieval locomo scifact      some of them
python -m benchmarks.retrieval --words swelite     without vectors: minutes instead of an hour
python -m benchmarks.retrieval --sample 100        that many questions of each set, always the same ones
python -m benchmarks.retrieval swelite --only flask,requests   issues of these projects
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence

from benchmarks.figures import Figure, tell
from benchmarks.public_sets import asking
from benchmarks.public_sets.bench import Bench, Wish, bench
from benchmarks.public_sets.judging import Row
from benchmarks.public_sets.sets import DATA

SETS: dict[str, Callable[[Bench], Awaitable[list[Row]]]] = {
    "locomo": asking.locomo,
    "chunkeval": asking.chunkeval,
    "cosqa": asking.cosqa,
    "scifact": asking.scifact,
    "swelite": asking.swelite,
}
BARS = {
    "locomo": ("recall@10", 0.77, 0.81),
    "scifact": ("nDCG@10", 0.73, 0.745),
    "swelite": ("file acc@5", 0.80, 0.825),
    "chunkeval": ("10 chunks", 0.90, 0.92),
}
"""What both together must reach, and the best that was ever measured without a language model."""


async def main(names: Sequence[str], wish: Wish) -> None:
    for name in names:
        async with bench(wish) as here:
            _tell(name, await SETS[name](here))


def _tell(name: str, rows: Sequence[Row]) -> None:
    heads = tuple(rows[0].figures)
    table = [(row.method, *(f"{row.figures[head]:.3f}" for head in heads), row.cpu_ms) for row in rows]
    tell(name, (*heads, "ms CPU"), table, [_figure(name, rows[-1])] if name in BARS else [])


def _figure(name: str, row: Row) -> Figure:
    what, bar, best = BARS[name]
    return Figure(f"{what} by {row.method}", row.figures[what], "", bar, best, is_floor=True)


def _asked() -> tuple[Sequence[str], Wish]:
    asked = argparse.ArgumentParser(prog="python -m benchmarks.retrieval")
    asked.add_argument("sets", nargs="*", metavar="set", help=", ".join(SETS))
    asked.add_argument("--words", action="store_true", help="without vectors")
    asked.add_argument("--sample", type=int, help="so many questions of each set")
    asked.add_argument("--only", default="", help="issues whose names hold one of these")
    given = asked.parse_args()
    if unknown := set(given.sets) - set(SETS):
        asked.error(f"There is no set called {', '.join(sorted(unknown))}; there are {', '.join(SETS)}.")
    only = tuple(filter(None, given.only.split(",")))
    return given.sets or tuple(SETS), Wish(not given.words, given.sample, only)


if __name__ == "__main__":
    names, wish = _asked()
    if not DATA.is_dir():
        sys.exit(f"There are no sets in {DATA}: nothing to measure.")
    asyncio.run(main(names, wish))
