"""Votes: the reply of a round that a person finds best, and the replies it competed with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tertulia.core.errors import Conflict, Invalid
from tertulia.core.messages import Message, Round


class VoteValue(StrEnum):
    BEST = "best"
    TIE = "tie"
    BOTH_BAD = "both_bad"
    NONE = "none"
    """Withdraws the vote."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A persona, whatever its model; or a model without a persona."""

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
    """The best reply; None if it is a tie or all were bad."""
    user_id: str
    verdict: VoteValue
    is_blind: bool
    """Whether the names were hidden at the time of the vote."""
    contenders: tuple[Contender, ...]
    created_at: int

    @property
    def winner(self) -> str | None:
        """The key of the contender with the best reply."""
        return next(
            (contender.key for contender in self.contenders if contender.message_id == self.message_id), None
        )


def contenders(round_: Round, voted: Message, verdict: VoteValue) -> tuple[Contender, ...]:
    """The replies of the same step in the round: answers compete with answers, syntheses with syntheses."""
    rivals = [reply for reply in round_.replies if reply.step == voted.step and reply.content and reply.voice]
    if voted not in rivals:
        raise Conflict("Vote for a reply that has text and was not replaced by a newer one.")
    if verdict in (VoteValue.TIE, VoteValue.BOTH_BAD) and len(rivals) < 2:
        raise Invalid("There is only one reply of this kind in the round, so there is nothing to compare.")
    return tuple(_contender(reply) for reply in rivals)


def _contender(reply: Message) -> Contender:
    assert reply.voice is not None
    return Contender(reply.voice.model, reply.voice.name, reply.id, reply.voice.persona_id)


def chosen(rounds: Iterable[Round], votes: Sequence[Vote]) -> frozenset[str]:
    """The ids of the replies voted best, at most one per round: the newest vote counts."""
    best_ids: set[str] = set()
    for round_ in rounds:
        reply_ids = {reply.id for reply in round_.replies}
        latest = latest_votes(vote for vote in votes if vote.round_number == round_.number)
        best = [vote for vote in latest if vote.verdict is VoteValue.BEST and vote.message_id in reply_ids]
        if best:
            best_ids.add(best[-1].message_id or "")
    return frozenset(best_ids)


def latest_votes(votes: Iterable[Vote]) -> tuple[Vote, ...]:
    """The latest vote of each person on one round, the newest last.

    A person may have voted before a branch, and again on the branch's version of the round; the branch knows
    both votes.
    """
    ordered = sorted(votes, key=lambda vote: (vote.created_at, vote.id))
    last = {vote.user_id: vote for vote in ordered}
    return tuple(vote for vote in ordered if last[vote.user_id] is vote)
