"""Replay routes: ask the questions of a conversation again in a branch, with another table."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter
from starlette.responses import Response

from tertulia.core.replays import Replay
from tertulia.engine.replays import NewReplay, ReplayEstimate, ReplayProgress
from tertulia.server.access import CurrentActor, InjectedApp, InjectedState
from tertulia.server.responses import json_response
from tertulia.store import replays

router = APIRouter(tags=["branches"])


@dataclass(frozen=True, slots=True)
class ReplayView:
    replay: Replay | None
    """None if the conversation is no replay."""


@router.post("/api/conversations/{conversation_id}/replay/estimate", response_model=ReplayEstimate)
async def estimate_replay(
    state: InjectedState, actor: CurrentActor, conversation_id: str, new: NewReplay
) -> Response:
    """Estimates the cost of each round; nothing is sent or saved."""
    async with state.limiter.slot(actor.user_id):
        return json_response(await state.tertulia.replays.estimate(actor, conversation_id, new))


@router.post("/api/conversations/{conversation_id}/replay", response_model=ReplayProgress, status_code=202)
async def begin_replay(
    tertulia: InjectedApp, actor: CurrentActor, conversation_id: str, new: NewReplay
) -> Response:
    """Starts a replay: creates a branch and asks the questions in it, one after the other."""
    return json_response(await tertulia.replays.begin(actor, conversation_id, new), 202)


@router.get("/api/conversations/{conversation_id}/replay", response_model=ReplayView)
async def get_replay(tertulia: InjectedApp, actor: CurrentActor, conversation_id: str) -> Response:
    """The progress of the replay in this conversation."""
    replay = await tertulia.db.read(lambda tx: replays.find(tx, actor, conversation_id))
    return json_response(ReplayView(replay))


@router.post("/api/conversations/{conversation_id}/replay/stop", response_model=ReplayView)
async def stop_replay(tertulia: InjectedApp, actor: CurrentActor, conversation_id: str) -> Response:
    return json_response(ReplayView(await tertulia.replays.stop(actor, conversation_id)))
