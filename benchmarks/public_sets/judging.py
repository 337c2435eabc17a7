"""How good an answer is: how much of what was wanted is among the first, and how near the top."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.public_sets.bench import Answer
from benchmarks.public_sets.sets import Changed, Question


@dataclass(frozen=True, slots=True)
class Row:
    """What one way of asking found in a set."""

    method: str
    figures: Mapping[str, float]
    cpu_ms: float


def distinct(found: Iterable[str]) -> list[str]:
    """In their order: a document counts where its first chunk is."""
    return list(dict.fromkeys(found))


def ranking(judged: Sequence[tuple[Question, Sequence[str]]]) -> dict[str, float]:
    """Of each question the ids that were found for it, best first; one without an answer does not count."""
    answered = [(question.relevant, found) for question, found in judged if _wanted(question.relevant)]
    measures = {
        "recall@5": [_recall(relevant, found[:5]) for relevant, found in answered],
        "recall@10": [_recall(relevant, found[:10]) for relevant, found in answered],
        "nDCG@10": [_ndcg(relevant, found[:10]) for relevant, found in answered],
    }
    return {name: sum(values) / len(values) for name, values in measures.items()}


def _wanted(relevant: Mapping[str, float]) -> set[str]:
    return {id for id, grade in relevant.items() if grade > 0}


def _recall(relevant: Mapping[str, float], found: Sequence[str]) -> float:
    wanted = _wanted(relevant)
    return len(wanted & set(found)) / len(wanted)


def _ndcg(relevant: Mapping[str, float], found: Sequence[str]) -> float:
    gained = sum(relevant.get(id, 0.0) / math.log2(place + 2) for place, id in enumerate(found))
    ideal = sorted(relevant.values(), reverse=True)[:10]
    best = sum(grade / math.log2(place + 2) for place, grade in enumerate(ideal))
    return gained / best if best else 0.0


def covered(gold: Sequence[tuple[int, int]], found: Sequence[Answer]) -> float:
    """How much of the gold characters these chunks hold."""
    wanted = {place for start, end in gold for place in range(start, end)}
    shown = {
        place
        for one in found
        for place in range(one.location.start_char or 0, one.location.end_char or 0)
        if place in wanted
    }
    return len(shown) / len(wanted) if wanted else 1.0


def shows(found: Sequence[Answer], changed: Changed) -> bool:
    """One of the chunks lies in the function, or touches it."""
    return any(
        one.title == changed.path
        and (one.location.start_line or 0) < changed.lines.stop
        and (one.location.end_line or 0) >= changed.lines.start
        for one in found
    )
