"""Vote routes: vote for a reply, and read the leaderboard."""

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
    """"tie" and "both_bad" apply to the whole round; "none" removes the user's vote."""


@router.post("/api/messages/{message_id}/vote", response_model=Vote)
async def cast_vote(tertulia: InjectedApp, actor: CurrentActor, message_id: str, new: NewVote) -> Response:
    """Votes in a round. Each user has one vote per round; a second one replaces the first."""
    vote = await tertulia.db.write(lambda tx: votes.cast(tx, actor, message_id, new.verdict))
    tertulia.wake_workers()  # a revealed round is indexed again, with the names of its models
    return json_response(vote)


@router.get("/api/projects/{project_id}/leaderboard", response_model=Leaderboard)
async def get_leaderboard(tertulia: InjectedApp, actor: CurrentActor, project_id: str) -> Response:
    """Ratings of each voice from the project's votes, with its cost and time per reply."""
    return json_response(
        await tertulia.db.read(lambda tx: leaderboard(tx, actor, project_id, tertulia.providers))
    )
