"""Peer review: all voices answer, each ranks the anonymous answers of the others, then the chair writes the
synthesis.

No voice ranks its own answer. Each reviewer reads the other answers in an order of its own. The order and
the letters depend only on the round and the seats, so a review that is repeated gets the same letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from string import ascii_uppercase

from tertulia.core.messages import Message, Role, Step
from tertulia.core.rankings import standings
from tertulia.core.step_instructions import ShownReply, StepInstructions
from tertulia.core.voices import Voice
from tertulia.council.chair import conclude, name_of
from tertulia.council.table import Table, ask_each, has_usable_text

_CRITERION = (
    "by what it would be worth to the person: is it right, does it answer what was asked, can it be used. "
    'Call it by its label, like "Answer A", never by the letter alone.'
)
_REVIEW_ONE = (
    f"The answer above is by another voice, without its name. Judge it in a few sentences {_CRITERION}"
)
_REVIEW_ALL = (
    "The answers above are by other voices, without their names. Judge each in one or two sentences "
    f"{_CRITERION} End with one line that puts all of them in order, best first, like this: "
    '"Ranking: {example}".'
)
_RANKS = (
    "The voices ranked each other's answers without knowing whose they were, nobody its own. Mean place, "
    "1 is best: {ranks}."
)


async def peer_review(table: Table) -> None:
    answers = await table.current(await table.ask_all())
    answered = [answer for answer in answers if has_usable_text(answer)]
    if len(answered) < 2:
        return await conclude(table, answers)
    asks = [(answer.voice, _review(answer, answered)) for answer in answered if answer.voice]
    reviews = await table.current(await ask_each(table, asks))
    await conclude(table, answers, ranks=mean_places(answers, reviews))


def _review(own: Message, answered: Sequence[Message]) -> StepInstructions:
    others = _anonymous_answers(own, answered)
    return StepInstructions(Step.REVIEW, Role.CRITIC, others, _task(others))


def _anonymous_answers(own: Message, answered: Sequence[Message]) -> tuple[ShownReply, ...]:
    """The anonymous answers of the other voices, in this reviewer's order."""
    others = sorted(_others(own, answered), key=lambda answer: _order_key(own, answer, _seed(answered)))
    return tuple(
        ShownReply(f"Answer {letter}", answer)
        for letter, answer in zip(ascii_uppercase, others, strict=False)
    )


def _others(own: Message, answered: Sequence[Message]) -> list[Message]:
    return [answer for answer in answered if _seat(answer) != _seat(own)]


def _seed(answered: Sequence[Message]) -> str:
    """The same for every turn of the round, and in branches that inherit it."""
    return f"{min(answer.conversation_id for answer in answered)}:{answered[0].round_number}"


def _order_key(reviewer: Message, answer: Message, seed: str) -> bytes:
    return sha256(f"{seed}:{_seat(reviewer)}:{_seat(answer)}".encode()).digest()


def _seat(answer: Message) -> int:
    voice: Voice | None = answer.voice
    assert voice is not None
    return voice.seat


def _task(others: Sequence[ShownReply]) -> str:
    """The task of a reviewer. A single answer is judged, not ranked."""
    if len(others) == 1:
        return _REVIEW_ONE
    letters = [answer.name.split()[-1] for answer in others]
    return _REVIEW_ALL.format(example=" > ".join((*letters[1:], letters[0])))


def mean_places(answers: Sequence[Message], reviews: Sequence[Message]) -> str:
    """The sentence about the mean places for the chair; empty if no ranking could be parsed."""
    rankings = [review.findings.ranking for review in reviews if review.findings and review.findings.ranking]
    names = {answer.id: name_of(answer) for answer in answers if has_usable_text(answer)}
    ranked = standings(names, rankings)
    ranks = ", ".join(f"{names[row.message_id]} {float(row.mean):.1f}" for row in ranked)
    return _RANKS.format(ranks=ranks) if ranks else ""
