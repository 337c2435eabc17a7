"""Peer review: answers at once, then each voice ranks them without names, then the chair answers."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase

from tertulia.core.briefs import Brief, Shown
from tertulia.core.messages import Message, Role, Step
from tertulia.council.chair import conclude, name_of
from tertulia.council.table import Table, was_heard

_REVIEW = (
    "The answers above came from this table without their names; one may be your own. Judge each in "
    "one or two sentences by what it would be worth to the person: is it right, does it answer what "
    "was asked, can it be used. End with one line that puts all of them in order, best first, like "
    'this: "Ranking: {example}".'
)
_RANKS = "The table ranked the answers without knowing whose they were. Mean place, 1 is best: {ranks}."


async def peer_review(table: Table) -> None:
    answers = await table.current(await table.ask_all())
    heard = [answer for answer in answers if was_heard(answer)]
    if len(heard) < 2:
        return await conclude(table, answers)
    nameless = _nameless(heard)
    task = _REVIEW.format(example=" > ".join(one.name.split()[-1] for one in reversed(nameless)))
    review = Brief(Step.REVIEW, Role.CRITIC, nameless, task)
    reviews = await table.ask_all([answer.voice for answer in heard if answer.voice], review)
    await conclude(table, answers, ranks=_ranks(heard, reviews))


def _nameless(heard: Sequence[Message]) -> tuple[Shown, ...]:
    """In an order that has nothing to do with the seats: that of their ids, read backwards."""
    mixed = sorted(heard, key=lambda answer: answer.id[::-1])
    return tuple(
        Shown(f"Answer {letter}", answer) for letter, answer in zip(ascii_uppercase, mixed, strict=False)
    )


def _ranks(heard: Sequence[Message], reviews: Sequence[Message]) -> str:
    rankings = [review.findings.ranking for review in reviews if review.findings and review.findings.ranking]
    means = []
    for answer in heard:
        places = [
            ranking.message_ids.index(answer.id) + 1
            for ranking in rankings
            if answer.id in ranking.message_ids
        ]
        if places:
            means.append((sum(places) / len(places), name_of(answer)))
    return (
        _RANKS.format(ranks=", ".join(f"{name} {mean:.1f}" for mean, name in sorted(means))) if means else ""
    )
