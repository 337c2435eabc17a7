"""Leaderboard: the rating of each voice in a project by people's votes, with its costs and times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from tertulia.core.ratings import PairwiseResult, Rating
from tertulia.core.users import Actor
from tertulia.core.votes import Contender, Vote
from tertulia.providers.registry import ProviderRegistry
from tertulia.store import personas, votes
from tertulia.store.database import Tx
from tertulia.store.votes import ReplyCost


@dataclass(frozen=True, slots=True)
class LeaderboardRow:
    persona_id: str | None
    model: str
    """For a persona: the model that it spoke through last."""
    name: str
    rating: int
    low: int
    high: int
    """`low` to `high` is a 95 % confidence interval."""
    wins: int
    losses: int
    ties: int
    """Rounds without a winner, even if all replies were called bad."""
    rounds: int
    """The number of rounds in which it was voted on."""
    cost_micros: int | None
    """The mean cost of a reply; None if no price is known."""
    latency_ms: int | None
    """The median over its replies."""
    first_token_ms: int | None


@dataclass(frozen=True, slots=True)
class Leaderboard:
    items: tuple[LeaderboardRow, ...]
    """Sorted by rating, the highest first."""
    votes: int


def leaderboard(tx: Tx, actor: Actor, project_id: str, providers: ProviderRegistry) -> Leaderboard:
    all_votes = votes.of_project(tx, actor, project_id)
    costs = votes.reply_costs(tx, actor, project_id)
    from tertulia.library.ratings import rate  # here, because numpy is slow to import

    ratings = rate(
        PairwiseResult(tuple(contender.key for contender in vote.contenders), vote.winner)
        for vote in all_votes
    )
    newest = _newest_contenders(all_votes)
    names = personas.names(tx, {voice.persona_id for voice in newest.values() if voice.persona_id})
    rows = [
        _row(contender, ratings[key], all_votes, costs, _name(contender, names, providers))
        for key, contender in newest.items()
    ]
    return Leaderboard(tuple(sorted(rows, key=lambda row: (-row.rating, row.name))), len(all_votes))


def _newest_contenders(all_votes: Sequence[Vote]) -> dict[str, Contender]:
    """Each voice that was voted on, as it was in its newest vote."""
    newest: dict[str, Contender] = {}
    for vote in all_votes:
        for contender in vote.contenders:
            newest.setdefault(contender.key, contender)
    return newest


def _name(contender: Contender, names: dict[str, str], providers: ProviderRegistry) -> str:
    """The current name; in a round it may have been "The Sage 2"."""
    if contender.persona_id is not None:
        return names.get(contender.persona_id, contender.name)
    model = providers.find(contender.model)
    return model.display_name if model else contender.name


def _row(
    contender: Contender, rating: Rating, all_votes: Sequence[Vote], costs: Sequence[ReplyCost], name: str
) -> LeaderboardRow:
    key = contender.key
    rounds = [vote for vote in all_votes if any(other.key == key for other in vote.contenders)]
    wins = sum(vote.winner == key for vote in rounds)
    ties = sum(vote.winner is None for vote in rounds)
    own = [cost for cost in costs if _is_of(cost, contender)]
    return LeaderboardRow(
        persona_id=contender.persona_id,
        model=contender.model,
        name=name,
        rating=round(rating.rating),
        low=round(rating.low),
        high=round(rating.high),
        wins=wins,
        losses=len(rounds) - wins - ties,
        ties=ties,
        rounds=len(rounds),
        cost_micros=_mean(cost.cost_micros for cost in own),
        latency_ms=_median(cost.latency_ms for cost in own),
        first_token_ms=_median(cost.first_token_ms for cost in own),
    )


def _is_of(cost: ReplyCost, contender: Contender) -> bool:
    if contender.persona_id is not None:
        return cost.persona_id == contender.persona_id
    return cost.persona_id is None and cost.model == contender.model


def _mean(figures: Iterable[int | None]) -> int | None:
    known = [figure for figure in figures if figure is not None]
    return round(sum(known) / len(known)) if known else None


def _median(figures: Iterable[int | None]) -> int | None:
    known = [figure for figure in figures if figure is not None]
    return round(median(known)) if known else None
