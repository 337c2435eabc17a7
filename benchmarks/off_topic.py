"""What enters a prompt: how many messages that ask for nothing get a passage, and how much recall is lost.

    python -m benchmarks.off_topic                  all sets but swelite, by words and by both
    python -m benchmarks.off_topic locomo cosqa     some of them
    python -m benchmarks.off_topic --words swelite --only flask,requests

Each set's questions are asked twice, for the ten that are ranked first and for what of them fits. Half of all
chose the threshold; figures are given for that half and for the half that was kept aside.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean

from benchmarks.figures import Figure, tell
from benchmarks.public_sets import asking, off_topic, sets
from benchmarks.public_sets.asking import Asked
from benchmarks.public_sets.bench import FILES, TALK, Answer, Bench, Wish, bench
from benchmarks.public_sets.judging import covered, distinct, ranking
from benchmarks.public_sets.sets import DATA
from tertulia.core.chunks import Filters
from tertulia.library.search import SearchMode, SearchQuery

FIRST = 10
OFF_TOPIC_BAR, LOST_BAR = 0.05, 0.01


@dataclass(frozen=True, slots=True)
class Case:
    """A question, and how much of its answer some passages hold."""

    project_id: str
    text: str
    recall: Callable[[Sequence[Answer]], float]


@dataclass(frozen=True, slots=True)
class Set:
    cases: list[Case]
    filters: Filters
    is_code: bool = False


def _locomo(here: Bench) -> Set:
    return Set([_case(one, lambda answer: answer.source_id) for one in asking.bring_talks(here)], TALK)


def _scifact(here: Bench) -> Set:
    return Set(_of_documents(asking.bring_documents(here, sets.scifact())), FILES)


def _cosqa(here: Bench) -> Set:
    return Set(_of_documents(asking.bring_documents(here, sets.cosqa())), FILES, is_code=True)


def _of_documents(asked: Sequence[Asked]) -> list[Case]:
    return [_case(one, lambda answer: answer.title) for one in asked]


def _case(asked: Asked, ours: Callable[[Answer], str]) -> Case:
    def recall(found: Sequence[Answer]) -> float:
        ids = distinct(asked.ids[ours(answer)] for answer in found)
        return ranking([(asked.question, ids)])["recall@10"]

    return Case(asked.project_id, asked.question.text, recall)


def _chunkeval(here: Bench) -> Set:
    project_ids = asking.bring_long_documents(here)
    return Set(
        [
            Case(project_ids[one.document], one.text, lambda found, one=one: covered(one.gold, found))  # type: ignore[misc]
            for one in sets.range_questions()
        ],
        FILES,
    )


def _swelite(here: Bench) -> Set:
    def case(task: asking.Task) -> Case:
        paths = task.issue.paths
        return Case(
            task.project_id,
            task.issue.problem,
            lambda found: len(paths & {one.title for one in found}) / len(paths),
        )

    return Set([case(task) for task in asking.bring_issues(here)], FILES, is_code=True)


SETS: dict[str, Callable[[Bench], Set]] = {
    "locomo": _locomo,
    "chunkeval": _chunkeval,
    "cosqa": _cosqa,
    "scifact": _scifact,
    "swelite": _swelite,
}
USUAL = ("locomo", "chunkeval", "cosqa", "scifact")


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    ranked: float
    kept: float
    disturbed: float
    """The share of messages that ask for nothing and got a passage all the same."""

    @property
    def lost(self) -> float:
        return self.ranked - self.kept


async def _measured(here: Bench, given: Set, mode: SearchMode, held_out: bool) -> Row:
    cases = [one for one in here.wish.some(given.cases) if off_topic.is_held_out(one.text) is held_out]
    project_ids = list(dict.fromkeys(one.project_id for one in given.cases))
    messages = off_topic.messages(with_code=not given.is_code)
    asked = [one for one in messages if off_topic.is_held_out(one.text) is held_out]

    async def found(project_id: str, text: str, wanted: SearchQuery) -> tuple[Answer, ...]:
        return await here.found(project_id, text, mode, FIRST, given.filters, wanted)

    ranked = [one.recall(await found(one.project_id, one.text, SearchQuery.ALL)) for one in cases]
    kept = [one.recall(await found(one.project_id, one.text, SearchQuery.PROMPT)) for one in cases]
    disturbed = [
        bool(await found(project_ids[place % len(project_ids)], one.text, SearchQuery.PROMPT))
        for place, one in enumerate(asked)
    ]
    half = "kept aside" if held_out else "chosen on"
    return Row(f"{mode.value}, {half}", mean(ranked), mean(kept), mean(disturbed))


async def main(names: Sequence[str], wish: Wish) -> None:
    modes = (SearchMode.KEYWORD, SearchMode.HYBRID) if wish.has_meaning else (SearchMode.KEYWORD,)
    for name in names:
        async with bench(wish) as here:
            given = SETS[name](here)
            await here.ready()
            rows = [await _measured(here, given, mode, held) for mode in modes for held in (False, True)]
        _tell(name, rows)


def _tell(name: str, rows: Sequence[Row]) -> None:
    heads = ("recall@10", "what fits", "lost", "off topic")
    table = [(row.name, row.ranked, row.kept, row.lost, row.disturbed) for row in rows]
    last = rows[-1]
    figures = [
        Figure(f"off topic, {last.name}", last.disturbed, "", OFF_TOPIC_BAR),
        Figure(f"recall lost, {last.name}", last.lost, "", LOST_BAR),
    ]
    tell(name, heads, [(first, *(f"{value:.3f}" for value in rest)) for first, *rest in table], figures)


def _asked() -> tuple[Sequence[str], Wish]:
    asked = argparse.ArgumentParser(prog="python -m benchmarks.off_topic")
    asked.add_argument("sets", nargs="*", metavar="set", help=", ".join(SETS))
    asked.add_argument("--words", action="store_true", help="without vectors")
    asked.add_argument("--sample", type=int, help="so many questions of each set")
    asked.add_argument("--only", default="", help="issues whose names hold one of these")
    given = asked.parse_args()
    if unknown := set(given.sets) - set(SETS):
        asked.error(f"There is no set called {', '.join(sorted(unknown))}; there are {', '.join(SETS)}.")
    only = tuple(filter(None, given.only.split(",")))
    return given.sets or USUAL, Wish(not given.words, given.sample, only)


if __name__ == "__main__":
    names, wish = _asked()
    if not DATA.is_dir():
        sys.exit(f"There are no sets in {DATA}: nothing to measure.")
    asyncio.run(main(names, wish))
