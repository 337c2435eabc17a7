"""The leaderboard of a project: what its people's votes say of each voice, beside what it costs and takes."""

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
    """Of a persona: the one it spoke through last."""
    name: str
    rating: int
    low: int
    high: int
    """Of a hundred such intervals, about 95 hold the true figure."""
    wins: int
    losses: int
    ties: int
    """Also where all were bad."""
    rounds: int
    """That it was voted on in."""
    cost_micros: int | None
    """Of a reply, on average; None when no price is known."""
    latency_ms: int | None
    """Of a reply, in the middle of all."""
    first_token_ms: int | None


@dataclass(frozen=True, slots=True)
class Leaderboard:
    items: tuple[LeaderboardRow, ...]
    """The strongest first."""
    votes: int


def leaderboard(tx: Tx, actor: Actor, project_id: str, providers: ProviderRegistry) -> Leaderboard:
    from tertulia.library.ratings import rate  # here, because numpy is slow to import

    cast = votes.of_project(tx, actor, project_id)
    spent = votes.reply_costs(tx, actor, project_id)
    rated = rate(PairwiseResult(tuple(one.key for one in vote.contenders), vote.winner) for vote in cast)
    names = personas.names(tx, {one.persona_id for one in _newest(cast).values() if one.persona_id})
    items = [
        _standing(one, rated[key], cast, spent, _name(one, names, providers))
        for key, one in _newest(cast).items()
    ]
    return Leaderboard(tuple(sorted(items, key=lambda item: (-item.rating, item.name))), len(cast))


def _newest(cast: Sequence[Vote]) -> dict[str, Contender]:
    """Everyone who was voted on, as they were last."""
    found: dict[str, Contender] = {}
    for vote in cast:
        for one in vote.contenders:
            found.setdefault(one.key, one)
    return found


def _name(one: Contender, names: dict[str, str], providers: ProviderRegistry) -> str:
    """What it is called now: in a round it may have been "The Sage 2"."""
    if one.persona_id is not None:
        return names.get(one.persona_id, one.name)
    model = providers.find(one.model)
    return model.display_name if model else one.name


def _standing(
    one: Contender, rating: Rating, cast: Sequence[Vote], spent: Sequence[ReplyCost], name: str
) -> LeaderboardRow:
    rounds = [vote for vote in cast if any(other.key == one.key for other in vote.contenders)]
    wins = sum(vote.winner == one.key for vote in rounds)
    ties = sum(vote.winner is None for vote in rounds)
    own = [effort for effort in spent if _is_of(effort, one)]
    return LeaderboardRow(
        persona_id=one.persona_id,
        model=one.model,
        name=name,
        rating=round(rating.rating),
        low=round(rating.low),
        high=round(rating.high),
        wins=wins,
        losses=len(rounds) - wins - ties,
        ties=ties,
        rounds=len(rounds),
        cost_micros=_mean(effort.cost_micros for effort in own),
        latency_ms=_middle(effort.latency_ms for effort in own),
        first_token_ms=_middle(effort.first_token_ms for effort in own),
    )


def _is_of(effort: ReplyCost, one: Contender) -> bool:
    if one.persona_id is not None:
        return effort.persona_id == one.persona_id
    return effort.persona_id is None and effort.model == one.model


def _mean(figures: Iterable[int | None]) -> int | None:
    known = [figure for figure in figures if figure is not None]
    return round(sum(known) / len(known)) if known else None


def _middle(figures: Iterable[int | None]) -> int | None:
    known = [figure for figure in figures if figure is not None]
    return round(median(known)) if known else None
