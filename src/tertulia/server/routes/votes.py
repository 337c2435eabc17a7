"""Votes: which reply was best, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter
from starlette.responses import Response

from tertulia.core.votes import Vote, VoteValue
from tertulia.engine.leaderboard import Leaderboard, leaderboard
from tertulia.server.access import CurrentActor, InjectedApp
from tertulia.server.responses import json_response
from tertulia.store import votes

router = APIRouter(tags=["votes"])


@dataclass(frozen=True, slots=True)
class NewVote:
    verdict: VoteValue
    """"tie" and "both_bad" are about the round of the reply, "none" takes one's vote back."""


@router.post("/api/messages/{message_id}/vote", response_model=Vote)
async def cast_vote(tertulia: InjectedApp, actor: CurrentActor, message_id: str, new: NewVote) -> Response:
    """One vote of each person in a round; a second one takes the place of the first."""
    vote = await tertulia.db.write(lambda tx: votes.cast(tx, actor, message_id, new.verdict))
    tertulia.wake_workers()  # a blind round is indexed anew, with its names
    return json_response(vote)


@router.get("/api/projects/{project_id}/leaderboard", response_model=Leaderboard)
async def get_leaderboard(tertulia: InjectedApp, actor: CurrentActor, project_id: str) -> Response:
    """Ratings of each voice from the project's votes, with its cost and time per reply."""
    return json_response(
        await tertulia.db.read(lambda tx: leaderboard(tx, actor, project_id, tertulia.providers))
    )
