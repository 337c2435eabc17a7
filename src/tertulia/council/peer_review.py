"""Peer review: answers at once, then each voice ranks the others' without names, then the chair answers.

Nobody ranks its own answer. Each reviewer reads the others in an order of its own, under letters that follow
from the round and the seats alone: a review that is asked for again finds the same letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from string import ascii_uppercase

from tertulia.core.briefs import Brief, Shown
from tertulia.core.messages import Message, Role, Step
from tertulia.core.rankings import standings
from tertulia.core.voices import Voice
from tertulia.council.chair import conclude, name_of
from tertulia.council.table import Table, ask_each, was_heard

_WORTH = (
    "by what it would be worth to the person: is it right, does it answer what was asked, can it be used. "
    'Call it by its label, like "Answer A", never by the letter alone.'
)
_REVIEW_ONE = f"The answer above is by another voice, without its name. Judge it in a few sentences {_WORTH}"
_REVIEW_ALL = (
    "The answers above are by other voices, without their names. Judge each in one or two sentences "
    f"{_WORTH} End with one line that puts all of them in order, best first, like this: "
    '"Ranking: {example}".'
)
_RANKS = (
    "The voices ranked each other's answers without knowing whose they were, nobody its own. Mean place, "
    "1 is best: {ranks}."
)


async def peer_review(table: Table) -> None:
    answers = await table.current(await table.ask_all())
    heard = [answer for answer in answers if was_heard(answer)]
    if len(heard) < 2:
        return await conclude(table, answers)
    asks = [(answer.voice, _review(answer, heard)) for answer in heard if answer.voice]
    reviews = await table.current(await ask_each(table, asks))
    await conclude(table, answers, ranks=mean_places(answers, reviews))


def _review(own: Message, heard: Sequence[Message]) -> Brief:
    others = _nameless(own, heard)
    return Brief(Step.REVIEW, Role.CRITIC, others, _task(others))


def _nameless(own: Message, heard: Sequence[Message]) -> tuple[Shown, ...]:
    """The answers of the others, in this reviewer's order."""
    others = sorted(_others(own, heard), key=lambda answer: _mixed(own, answer, _seed(heard)))
    return tuple(
        Shown(f"Answer {letter}", answer) for letter, answer in zip(ascii_uppercase, others, strict=False)
    )


def _others(own: Message, heard: Sequence[Message]) -> list[Message]:
    return [answer for answer in heard if _seat(answer) != _seat(own)]


def _seed(heard: Sequence[Message]) -> str:
    """The same for every turn of the round, and in branches that go on from it."""
    return f"{min(answer.conversation_id for answer in heard)}:{heard[0].round_number}"


def _mixed(reviewer: Message, answer: Message, seed: str) -> bytes:
    return sha256(f"{seed}:{_seat(reviewer)}:{_seat(answer)}".encode()).digest()


def _seat(answer: Message) -> int:
    voice: Voice | None = answer.voice
    assert voice is not None
    return voice.seat


def _task(others: Sequence[Shown]) -> str:
    """One answer alone is judged and not ranked."""
    if len(others) == 1:
        return _REVIEW_ONE
    letters = [one.name.split()[-1] for one in others]
    return _REVIEW_ALL.format(example=" > ".join((*letters[1:], letters[0])))


def mean_places(answers: Sequence[Message], reviews: Sequence[Message]) -> str:
    """What the chair is told of the rankings; nothing where none could be read."""
    rankings = [review.findings.ranking for review in reviews if review.findings and review.findings.ranking]
    names = {answer.id: name_of(answer) for answer in answers if was_heard(answer)}
    ranked = standings(names, rankings)
    told = ", ".join(f"{names[one.message_id]} {float(one.mean):.1f}" for one in ranked)
    return _RANKS.format(ranks=told) if told else ""
