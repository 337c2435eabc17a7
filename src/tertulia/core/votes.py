"""Votes: which reply of a round was best, in one person's eyes, and whom it was up against."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tertulia.core.errors import Conflict, Invalid
from tertulia.core.messages import Message, Round


class Choice(StrEnum):
    BEST = "best"
    TIE = "tie"
    BOTH_BAD = "both_bad"
    NONE = "none"
    """Taken back."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A persona, through whichever model it spoke; or a model without one."""

    model: str
    name: str
    message_id: str
    persona_id: str | None = None

    @property
    def key(self) -> str:
        return f"persona:{self.persona_id}" if self.persona_id else self.model


@dataclass(frozen=True, slots=True)
class Vote:
    id: str
    conversation_id: str
    round_number: int
    message_id: str | None
    """The best one; None when it is a tie or all were bad."""
    user_id: str
    verdict: Choice
    is_blind: bool
    """The names were hidden when it was given."""
    contenders: tuple[Contender, ...]
    created_at: int

    @property
    def winner(self) -> str | None:
        """The key of the contender that was best."""
        return next((one.key for one in self.contenders if one.message_id == self.message_id), None)


def contenders(here: Round, meant: Message, verdict: Choice) -> tuple[Contender, ...]:
    """Those who did the same thing in the round: answers against answers, syntheses against syntheses."""
    against = [reply for reply in here.replies if reply.step == meant.step and reply.content and reply.voice]
    if meant not in against:
        raise Conflict("Vote for a reply that has text and was not replaced by a newer one.")
    if verdict in (Choice.TIE, Choice.BOTH_BAD) and len(against) < 2:
        raise Invalid("There is only one reply of this kind in the round, so there is nothing to compare.")
    return tuple(_contender(reply) for reply in against)


def _contender(reply: Message) -> Contender:
    assert reply.voice is not None
    return Contender(reply.voice.model, reply.voice.name, reply.id, reply.voice.persona_id)


def chosen(rounds: Iterable[Round], votes: Sequence[Vote]) -> frozenset[str]:
    """The ids of the replies marked best, one of each round that has one: the newest mark counts."""
    found: set[str] = set()
    for round_ in rounds:
        there = {reply.id for reply in round_.replies}
        said = standing(vote for vote in votes if vote.round_number == round_.number)
        best = [vote for vote in said if vote.verdict is Choice.BEST and vote.message_id in there]
        if best:
            found.add(best[-1].message_id or "")
    return frozenset(found)


def standing(votes: Iterable[Vote]) -> tuple[Vote, ...]:
    """Of what was said on one round the last word of each person, the newest last.

    Whoever voted before a branch and on what the branch made of the round has said two things; the branch
    knows both.
    """
    ordered = sorted(votes, key=lambda vote: (vote.created_at, vote.id))
    last = {vote.user_id: vote for vote in ordered}
    return tuple(vote for vote in ordered if last[vote.user_id] is vote)
